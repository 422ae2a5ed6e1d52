# SPDX-License-Identifier: Apache-2.0
"""The linear programs over a time expansion.

The unit of a cell's variable is the rate that would carry the request's whole volume over its whole window, so that coefficients
are near one for all volumes and rates.
"""

from typing import NamedTuple

import numpy as np

from broker.planners.optimal.expansion import Expansion
from broker.planners.optimal.solver import Flags, Floats, Ints, Program

_UNFIT = 1e3  # the cost of exceeding a hard limit by 100 %: far more than any congestion factor


class Rows(NamedTuple):
    """The (link, interval) pairs that can bind, and for each relevant entry its cell and its row."""

    link: Ints
    interval: Ints
    cell: Ints
    row: Ints


def rows_of(expansion: Expansion) -> Rows:
    """The capacity rows of a program: one for each link and interval that can bind."""
    counts = expansion.binding[expansion.entry_link]
    cell, link = expansion.entry_cell[counts], expansion.entry_link[counts]
    n = len(expansion.seconds)
    pairs, row = np.unique(link * n + expansion.interval_of[cell], return_inverse=True)
    return Rows(pairs // max(n, 1), pairs % max(n, 1), cell, row)


def units(expansion: Expansion) -> Floats:
    """The bit/s that one unit of each cell's variable stands for."""
    spans = np.array([max(end - begin, 1) / 1e6 for begin, end in expansion.windows])
    each: Floats = np.maximum(expansion.volumes / spans, 1.0)
    return each[expansion.request_of]


class _Builder:
    """Collects rows of a program, block by block."""

    def __init__(self, variables: int) -> None:
        self.variables = variables
        self.rows: list[Ints] = []
        self.columns: list[Ints] = []
        self.values: list[Floats] = []
        self.lower: list[Floats] = []
        self.upper: list[Floats] = []
        self.n = 0

    def block(self, n: int, lower: Floats | float, upper: Floats | float, *entries: tuple[Ints, Ints, Floats]) -> None:
        """`n` rows; each entry (rows counted from the block's first, columns, values)."""
        self.lower.append(np.broadcast_to(np.asarray(lower, np.float64), n))
        self.upper.append(np.broadcast_to(np.asarray(upper, np.float64), n))
        for rows, columns, values in entries:
            self.rows.append(rows + self.n)
            self.columns.append(columns)
            self.values.append(values)
        self.n += n

    def program(self, cost: Floats, lower: Floats, upper: Floats, whole: Flags | None = None) -> Program:
        return Program(
            cost, lower, upper, np.concatenate(self.rows), np.concatenate(self.columns), np.concatenate(self.values),
            np.concatenate(self.lower), np.concatenate(self.upper), whole,
        )  # fmt: skip


def least_congestion(expansion: Expansion, rows: Rows) -> Program:
    """Minimise theta so that every request is carried and no link that is used is booked above the share theta.

    Variables: cells, theta, and the excess over limits that theta does not express (temporarily lowered capacity). The first block
    of rows are the shares (`bounds` uses their prices), then the hard limits of the same pairs.
    """
    n = expansion.cells
    theta, excess = n, n + 1
    unit = units(expansion)
    whole = expansion.whole[rows.link]
    booked = expansion.booked_high[rows.link, rows.interval]
    free = expansion.free_low[rows.link, rows.interval]
    build = _Builder(n + 2)
    m = len(rows.link)
    loads = (rows.row, rows.cell, unit[rows.cell] / whole[rows.row])
    every = np.arange(m)
    build.block(m, -np.inf, -booked / whole, loads, (every, np.full(m, theta), -np.ones(m)))
    lowered = free + booked < whole * (1 - 1e-12)
    position = np.cumsum(lowered) - 1
    on = lowered[rows.row]
    hard = np.flatnonzero(lowered)
    build.block(
        len(hard), -np.inf, (free / whole)[hard],
        (position[rows.row[on]], rows.cell[on], (unit[rows.cell] / whole[rows.row])[on]),
        (np.arange(len(hard)), np.full(len(hard), excess), -np.ones(len(hard))),
    )  # fmt: skip
    _carried(build, expansion, unit)
    _caps(build, expansion, unit)
    cost, lower, upper = np.zeros(n + 2), np.zeros(n + 2), np.full(n + 2, np.inf)
    cost[theta], cost[excess] = 1.0, _UNFIT
    upper[:n] = _upper(expansion, unit)
    return build.program(cost, lower, upper)


def max_weight(expansion: Expansion, rows: Rows, weights: Floats, least: Floats, most: Floats, integer: bool) -> Program:
    """Maximise (minimise the negative of) the weights of the requests served; the served part of each is in [least, most].

    Variables: cells, then one part for each request. The first block of rows are the limits of the links.
    """
    n, r = expansion.cells, len(expansion.requests)
    unit = units(expansion)
    free = expansion.free_low[rows.link, rows.interval].astype(np.float64)
    build = _Builder(n + r)
    scale = np.maximum(free, 1.0)[rows.row]
    build.block(len(rows.link), -np.inf, free / np.maximum(free, 1.0), (rows.row, rows.cell, unit[rows.cell] / scale))
    _carried(build, expansion, unit, parts=True)
    _caps(build, expansion, unit)
    cost = np.concatenate((np.zeros(n), -weights))
    lower = np.concatenate((np.zeros(n), least))
    upper = np.concatenate((_upper(expansion, unit), most))
    whole = np.arange(n + r) >= n if integer else None
    return build.program(cost, lower, upper, whole)


def earliest(expansion: Expansion, rows: Rows, weights: Floats) -> Program:
    """Minimise the weighted mean time at which bits are sent: sum of w * (begin of the interval) * (part of the volume sent in it)."""
    n = expansion.cells
    unit = units(expansion)
    free = expansion.free_low[rows.link, rows.interval].astype(np.float64)
    build = _Builder(n)
    scale = np.maximum(free, 1.0)[rows.row]
    build.block(len(rows.link), -np.inf, free / np.maximum(free, 1.0), (rows.row, rows.cell, unit[rows.cell] / scale))
    _carried(build, expansion, unit)
    _caps(build, expansion, unit)
    return build.program(lateness(expansion, weights) * unit * _part_per_bps(expansion), np.zeros(n), _upper(expansion, unit))


def lateness(expansion: Expansion, weights: Floats) -> Floats:
    """Per cell: weight x seconds from the request's `not_before` to the begin of the interval (or of its part within the window)."""
    begins = np.array([begin for begin, _ in expansion.windows], np.int64)[expansion.request_of]
    return weights[expansion.request_of] * (np.maximum(expansion.times[expansion.interval_of], begins) - begins) / 1e6


def _part_per_bps(expansion: Expansion) -> Floats:
    """The part of its request's volume that 1 bit/s carries through each cell."""
    return expansion.seconds[expansion.interval_of] / expansion.volumes[expansion.request_of]


def _carried(build: _Builder, expansion: Expansion, unit: Floats, parts: bool = False) -> None:
    """Rows for the whole volume of each request, or the part of it that is served."""
    n, r = expansion.cells, len(expansion.requests)
    sent = (expansion.request_of, np.arange(n), unit * _part_per_bps(expansion))
    if parts:
        build.block(r, 0.0, 0.0, sent, (np.arange(r), n + np.arange(r), -np.ones(r)))
    else:
        build.block(r, 1.0, 1.0, sent)


def _upper(expansion: Expansion, unit: Floats) -> Floats:
    """Rmax on each cell alone; infinite without Rmax, because solvers prefer that to bounds that never bind."""
    return expansion.rate_caps[expansion.request_of] / unit


def _caps(build: _Builder, expansion: Expansion, unit: Floats) -> None:
    """Rows for Rmax over all lanes of a request, where it has several in one interval."""
    capped = np.isfinite(expansion.rate_caps)[expansion.request_of]
    n = len(expansion.seconds)
    pairs, row, count = np.unique(
        expansion.request_of[capped] * n + expansion.interval_of[capped], return_inverse=True, return_counts=True
    )
    several = count > 1
    position = np.cumsum(several) - 1
    on = several[row]
    cells = np.flatnonzero(capped)[on]
    caps = expansion.rate_caps[pairs[several] // max(n, 1)]
    rows = position[row[on]]
    build.block(len(caps), -np.inf, 1.0, (rows, cells, unit[cells] / caps[rows]))
