# SPDX-License-Identifier: Apache-2.0
"""A link's calendar for people and plots: capacity and booked rate as steps, thinned out where there are too many to draw."""

import numpy as np

from broker.core.network import Link
from broker.core.scans import Int64Array
from broker.store.bookings import Bookings

Row = tuple[int, int, int]  # (begin_us, capacity bit/s, booked bit/s)


def calendar_steps(link: Link, booked: Bookings, begin_us: int, end_us: int, points: int) -> tuple[list[Row], bool]:
    """Steps on [begin, end), and whether some were left out.

    Then there is the first, and of each bucket of time the step with the most booked, the least booked and the least free.
    """
    capacity = link.capacity()
    capacity_times = np.array([at for at, _ in capacity], np.int64)
    capacity_rates = np.array([rate for _, rate in capacity], np.int64)
    begins, ends = np.clip(booked.begins, begin_us, end_us), np.clip(booked.ends, begin_us, end_us)
    inside = capacity_times[(capacity_times > begin_us) & (capacity_times < end_us)]
    instants = np.unique(np.concatenate((begins, ends, inside, np.array([begin_us], np.int64))))
    instants = instants[instants < end_us]
    changes = np.zeros(len(instants) + 1, np.int64)
    np.add.at(changes, np.searchsorted(instants, begins), booked.deltas)
    np.subtract.at(changes, np.searchsorted(instants, ends), booked.deltas)
    taken = np.cumsum(changes)[:-1]
    rates = capacity_rates[np.searchsorted(capacity_times, instants, side="right") - 1]
    differs = np.ones(len(instants), bool)
    differs[1:] = (np.diff(taken) != 0) | (np.diff(rates) != 0)
    instants, rates, taken = instants[differs], rates[differs], taken[differs]
    decimated = len(instants) > points
    if decimated:
        kept = _extremes(instants, taken, rates - taken, begin_us, end_us, max(points // 3, 1))
        instants, rates, taken = instants[kept], rates[kept], taken[kept]
    return list(zip(instants.tolist(), rates.tolist(), taken.tolist(), strict=True)), decimated


def _extremes(instants: Int64Array, taken: Int64Array, free: Int64Array, begin_us: int, end_us: int, buckets: int) -> list[int]:
    """Indices of what must be seen of each of `buckets` equal spans of time, and the first, which says how it begins."""
    bucket = (instants - begin_us) // -(-(end_us - begin_us) // buckets)
    edges = np.flatnonzero(np.diff(bucket, prepend=-1))
    kept = {0}
    for first, last in zip(edges.tolist(), [*edges.tolist()[1:], len(instants)], strict=True):
        part = slice(first, last)
        kept.update(first + int(index) for index in (taken[part].argmax(), taken[part].argmin(), free[part].argmin()))
    return sorted(kept)
