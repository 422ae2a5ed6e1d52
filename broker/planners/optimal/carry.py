# SPDX-License-Identifier: Apache-2.0
"""Carry given requests by their deadlines at the least congestion: the program, single paths if needed, integer plans, a bound."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from broker.core.plan import Plan, Refusal
from broker.planners.optimal import bounds, paths
from broker.planners.optimal.batch import Batch
from broker.planners.optimal.expansion import Expansion, restrict, usable
from broker.planners.optimal.measure import congestion
from broker.planners.optimal.programs import Rows, least_congestion, rows_of, units
from broker.planners.optimal.rounding import fewer_rows, integer_plans, project
from broker.planners.optimal.solver import Floats, Solver

_CLOSE = 1e-3  # relative to theta: for a smaller gain the second way to choose paths is not tried
_LEVELS = 10  # bisection steps over the shares of existing bookings
_NEARLY = 1e-3  # possible error of a first-order solver; rounding removes it


class Relaxed(NamedTuple):
    """A solution in floats.

    `theta`: the largest share on links that its rates use; `asked`: the theta of the program itself, which includes unused links;
    `excess`: by how much limits that theta does not express are exceeded.
    """

    expansion: Expansion
    rows: Rows
    rates: Floats
    prices: Floats | None
    theta: float
    excess: float
    asked: float

    @property
    def fits(self) -> bool:
        """True if no link is booked beyond its free capacity."""
        return self.theta <= 1 + _NEARLY and self.excess <= _NEARLY


class Carried(NamedTuple):
    """Plans that carry the requests, and the solutions that prove how good they are."""

    answers: dict[int, Plan | Refusal]
    whole: Expansion | None  # also with the cells that the programs did not get
    proofs: Sequence[Relaxed]  # all solutions from before requests that must not be split were given one path


def carry(batch: Batch, indices: Sequence[int], simple: bool = True) -> Carried:
    """Plans for these requests at the least congestion found, and the input for a bound. No answers: no solution in time."""
    if not indices:
        return Carried({}, None, [])
    whole = batch.expand(indices)
    solved = least(whole, batch.solver)
    if not solved:
        return Carried({}, whole, [])
    relaxed = choice = solved[0]
    if paths.undecided(relaxed.expansion, relaxed.rates):
        choices: list[Relaxed] = []
        for way in (paths.by_interval, paths.throughout):
            choices += least(restrict(relaxed.expansion, way(relaxed.expansion, relaxed.rates)), batch.solver)[:1]
            if choices and choices[-1].theta <= relaxed.theta * (1 + _CLOSE):
                break
        if not choices:
            return Carried({}, whole, solved)
        choice = min(choices, key=lambda c: (c.excess, c.theta))
    return Carried(_rounded(batch, choice, indices, simple), whole, solved)


def least(expansion: Expansion, solver: Solver) -> list[Relaxed]:
    """Solutions of the program, the best one first; empty if the solver found none.

    A program counts the existing bookings of every link that it may use, even where it then sends nothing. So links that are fuller
    than necessary must be excluded; bisection finds above which share.
    """
    found = _solved(expansion, solver, np.inf)
    if found is None:
        return []
    shares = expansion.booked_high[found.rows.link, found.rows.interval] / expansion.whole[found.rows.link]
    levels = np.unique(shares[shares > 0])
    if not len(levels) or found.asked > levels[-1] * (1 + _NEARLY):
        return [found]
    others: list[Relaxed] = []
    low, high = 0, len(levels)
    while low < high and len(others) < _LEVELS:
        middle = (low + high) // 2
        less = _solved(expansion, solver, float(levels[middle]))
        if less is not None and less.fits and less.asked <= levels[middle] * (1 + _NEARLY):
            # With this tolerance, a level that is too low may be accepted; then the level above it has the better answer.
            found, other = (less, found) if less.theta <= found.theta or not found.fits else (found, less)
            others.append(other)
            high = middle
        else:
            others += [less] if less is not None else []
            low = middle + 1
    return [found, *others]


def prove(whole: Expansion, proofs: Sequence[Relaxed], reached: float) -> float | None:
    """The best bound that any of the solutions proves, whether or not that solution is feasible."""
    if not whole.exact_windows:
        return None
    rows = rows_of(whole)
    proven = [
        bounds.congestion(whole, rows, carried_over(solved.rows, solved.prices, rows, len(whole.seconds)), reached)
        for solved in proofs
        if solved.prices is not None
    ]
    if (whole.booked_low.any() or not whole.may_split.all()) and max(proven, default=0.0) < reached * (1 - _CLOSE):
        proven.append(bounds.congestion_alone(whole, reached))
    return max(proven, default=None)


def carried_over(rows: Rows, prices: Floats, others: Rows, intervals: int) -> Floats:
    """The same prices on other rows of the same links and intervals; 0 where there was no row."""
    out = np.zeros(len(others.link))
    known, wanted = rows.link * intervals + rows.interval, others.link * intervals + others.interval
    at = np.searchsorted(known, wanted)
    at[at == len(known)] = 0
    if len(known):
        same = known[at] == wanted
        out[same] = prices[at[same]]
    return out


def _solved(expansion: Expansion, solver: Solver, below: float) -> Relaxed | None:
    expansion = usable(expansion, below)
    if len(np.unique(expansion.request_of)) < len(expansion.requests):
        return None  # a request has no cell at all
    rows = rows_of(expansion)
    answer = solver.solve(least_congestion(expansion, rows))
    if answer.values is None:
        return None
    n = expansion.cells
    rates = project(expansion, answer.values[:n] * units(expansion))
    prices = None
    if answer.prices is not None:
        m = len(rows.link)
        prices = -answer.prices[:m]
        free, booked = expansion.free_low[rows.link, rows.interval], expansion.booked_high[rows.link, rows.interval]
        hard = np.flatnonzero(free + booked < expansion.whole[rows.link] * (1 - 1e-12))
        prices[hard] -= answer.prices[m : m + len(hard)]
    return Relaxed(expansion, rows, rates, prices, *_reached(expansion, rates), float(answer.values[n]))


def _reached(expansion: Expansion, rates: Floats) -> tuple[float, float]:
    """The largest booked share on links that these rates use, and the largest excess over free capacity, both as shares of capacity."""
    load = np.zeros(expansion.free_low.shape)
    np.add.at(load, (expansion.entry_link, expansion.interval_of[expansion.entry_cell]), rates[expansion.entry_cell])
    shares = np.where(load > 0, (load + expansion.booked_high) / expansion.whole[:, None], 0.0)
    excess = (load - expansion.free_low) / expansion.whole[:, None]
    return float(shares.max(initial=0.0)), float(excess.max(initial=0.0))


def _rounded(batch: Batch, choice: Relaxed, indices: Sequence[int], simple: bool) -> dict[int, Plan | Refusal]:
    expansion = choice.expansion
    share = Fraction(choice.theta).limit_denominator(10**15) + Fraction(len(indices), int(expansion.whole.min()))
    share = min(share, Fraction(1))
    answers = integer_plans(expansion, choice.rates, batch.network, batch.calendars, share)
    if simple and all(isinstance(answer, Plan) for answer in answers):
        reached = congestion([a for a in answers if isinstance(a, Plan)], batch.network, batch.calendars)
        begin, end = int(expansion.times[0]), int(expansion.times[-1])
        answers = fewer_rows(expansion.requests, answers, batch.network, batch.calendars, reached, begin, end)
    return dict(zip(indices, answers, strict=True))
