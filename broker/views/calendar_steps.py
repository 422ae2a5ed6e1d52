# SPDX-License-Identifier: Apache-2.0
"""A link's calendar for people and plots: capacity and booked rate as steps, thinned out if there are too many to draw."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from broker.core.network import Link
from broker.core.scans import Int64Array
from broker.store.bookings import Bookings


class Row(NamedTuple):
    """From `begin_us` on, until the next one."""

    begin_us: int
    capacity_bps: int
    booked_bps: int
    reverse_booked_bps: int | None  # on the way back, where that was asked for


def calendar_steps(
    link: Link, booked: Bookings, begin_us: int, end_us: int, points: int, reverse: Bookings | None = None
) -> tuple[list[Row], bool]:
    """Steps on [begin, end), and whether some were left out.

    Then there is the first, and of each bucket of time the step with the most booked (each way), the least booked and the least free.
    """
    capacity = link.capacity()
    capacity_times = np.array([at for at, _ in capacity], np.int64)
    capacity_rates = np.array([rate for _, rate in capacity], np.int64)
    ways = [_clipped(way, begin_us, end_us) for way in (booked, reverse) if way is not None]
    inside = capacity_times[(capacity_times > begin_us) & (capacity_times < end_us)]
    edges = [edge for way in ways for edge in (way.begins, way.ends)]
    instants = np.unique(np.concatenate((*edges, inside, np.array([begin_us], np.int64))))
    instants = instants[instants < end_us]
    rates = capacity_rates[np.searchsorted(capacity_times, instants, side="right") - 1]
    columns = np.stack([rates, *(_level(way, instants) for way in ways)])
    differs = np.ones(len(instants), bool)
    differs[1:] = (np.diff(columns) != 0).any(axis=0)
    instants, columns = instants[differs], columns[:, differs]
    decimated = len(instants) > points
    if decimated:
        looked_at = (columns[1], -columns[1], columns[1] - columns[0], *columns[2:])
        kept = _highest(instants, looked_at, begin_us, end_us, max(points // len(looked_at), 1))
        instants, columns = instants[kept], columns[:, kept]
    rates, taken, *back = columns.tolist()
    on_the_way_back = back[0] if back else [None] * len(taken)
    return list(map(Row, instants.tolist(), rates, taken, on_the_way_back)), decimated


def _clipped(way: Bookings, begin_us: int, end_us: int) -> Bookings:
    return Bookings(np.clip(way.begins, begin_us, end_us), np.clip(way.ends, begin_us, end_us), way.deltas)


def _level(way: Bookings, instants: Int64Array) -> Int64Array:
    """What is booked from each instant on."""
    changes = np.zeros(len(instants) + 1, np.int64)
    np.add.at(changes, np.searchsorted(instants, way.begins), way.deltas)
    np.subtract.at(changes, np.searchsorted(instants, way.ends), way.deltas)
    return np.cumsum(changes)[:-1]


def _highest(instants: Int64Array, columns: Sequence[Int64Array], begin_us: int, end_us: int, buckets: int) -> list[int]:
    """Indices of the peak of each column in each of `buckets` equal spans of time, and the first, which says how it begins."""
    bucket = (instants - begin_us) // -(-(end_us - begin_us) // buckets)
    edges = np.flatnonzero(np.diff(bucket, prepend=-1))
    kept = {0}
    for first, last in zip(edges.tolist(), [*edges.tolist()[1:], len(instants)], strict=True):
        part = slice(first, last)
        kept.update(first + int(column[part].argmax()) for column in columns)
    return sorted(kept)
