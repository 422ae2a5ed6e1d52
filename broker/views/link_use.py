# SPDX-License-Identifier: Apache-2.0
"""A link's bookings by transfer, without released capacity, as steps to stack in a plot."""

from typing import NamedTuple

import numpy as np

from broker.core.scans import Int64Array
from broker.core.units import MICROBITS_PER_BYTE, span_edges
from broker.store.link_use import Rows

Stretch = tuple[int, int, int]  # [begin_us, end_us) at so many bit/s


class Use(NamedTuple):
    """`which`: index of the transfer in `Rows.ids`. Stretches without a rate are left out."""

    which: int
    volume_bytes: int
    stretches: list[Stretch]


def uses(found: Rows, begin_us: int, end_us: int) -> list[Use]:
    """Those that have anything booked in [begin, end), the largest volume there first."""
    made = []
    for index, (first, last) in enumerate(zip(found.starts, found.starts[1:], strict=False)):
        part = slice(first, last)
        stretches = _net(found.begins[part], found.ends[part], found.deltas[part], begin_us, end_us)
        if stretches:
            made.append(Use(index, _volume(stretches), stretches))
    return sorted(made, key=lambda use: (-use.volume_bytes, use.which))


def together(parts: list[Use], begin_us: int, end_us: int, points: int) -> Use:
    """The sum of some, thinned out to about `points` stretches where there are more: of each span of time its highest rate."""
    every = [stretch for part in parts for stretch in part.stretches]
    columns = np.array(every, np.int64).reshape(-1, 3)
    stretches = _net(columns[:, 0], columns[:, 1], columns[:, 2], begin_us, end_us)
    volume = _volume(stretches)
    if len(stretches) > points:
        stretches = _thinned(stretches, begin_us, end_us, points)
    return Use(-1, volume, stretches)


def _net(begins: Int64Array, ends: Int64Array, deltas: Int64Array, begin_us: int, end_us: int) -> list[Stretch]:
    begins, ends = np.clip(begins, begin_us, end_us), np.clip(ends, begin_us, end_us)
    instants, where = np.unique(np.concatenate((begins, ends)), return_inverse=True)
    changes = np.zeros(len(instants), np.int64)
    np.add.at(changes, where, np.concatenate((deltas, -deltas)))
    rates = np.cumsum(changes)
    kept = np.flatnonzero(np.diff(rates, prepend=0))  # where the rate changes
    edges, levels = instants[kept].tolist(), rates[kept].tolist()
    return [(begin, end, rate) for begin, end, rate in zip(edges, edges[1:], levels, strict=False) if rate]


def _volume(stretches: list[Stretch]) -> int:
    return sum((end - begin) * rate for begin, end, rate in stretches) // MICROBITS_PER_BYTE


def _thinned(stretches: list[Stretch], begin_us: int, end_us: int, points: int) -> list[Stretch]:
    edges = np.unique(np.array(span_edges(begin_us, end_us, points), np.int64))
    columns = np.array(stretches, np.int64)
    first = np.searchsorted(columns[:, 1], edges[:-1], side="right")
    last = np.searchsorted(columns[:, 0], edges[1:], side="left")
    return [
        (begin, end, int(columns[low:high, 2].max()))
        for begin, end, low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), first.tolist(), last.tolist(), strict=True)
        if low < high
    ]
