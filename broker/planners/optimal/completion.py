# SPDX-License-Identifier: Apache-2.0
"""Least weighted completion time: list scheduling in the order in which a linear program would send the bits.

The program (time-indexed, over the expansion with some additional instants) yields the mean time of each request's bits and the
time when half of them are sent. VBLS then runs in these orders, Smith's order and a few others, and finally in neighbours of the
best order, as many as the time limit allows.
"""

from collections.abc import Sequence
from itertools import permutations
from math import factorial

import numpy as np

from broker.core.plan import Plan
from broker.planners.optimal import bounds
from broker.planners.optimal.batch import Batch
from broker.planners.optimal.carry import carried_over
from broker.planners.optimal.expansion import Expansion, usable
from broker.planners.optimal.lists import Trial, in_order, list_planners
from broker.planners.optimal.measure import weight
from broker.planners.optimal.programs import earliest, lateness, rows_of, units
from broker.planners.optimal.rounding import project
from broker.planners.optimal.solver import Floats

_INSTANTS = 48
_PLANNINGS_PER_S = 100  # per second of the time limit: a deterministic substitute for a clock
_MAX_CELLS = 150_000


def finish_early(batch: Batch) -> None:
    """Improve the batch's best answers and set its bound."""
    everything = list(range(len(batch.requests)))
    affordable = int(batch.solver.time_limit_s * _PLANNINGS_PER_S) // max(len(everything), 1)
    joint = batch.joint
    if joint:
        batch.progress(0.3, "relaxation")
        for order in _orders(batch, joint):
            _try(batch, [*batch.settled, *order])
    if factorial(min(len(everything), 12)) <= affordable:
        for permutation in permutations(everything):
            if batch.solver.stopped:
                return
            _try(batch, permutation)
        return
    batch.progress(0.6, "neighbouring orders")
    _descend(batch, _order_of(batch), affordable)


def _orders(batch: Batch, joint: Sequence[int]) -> list[list[int]]:
    """The orders by mean time of the bits, and by the time when half of them are sent; also sets the bound."""
    whole = batch.expand(joint, _instants(batch, joint))
    if whole.cells > _MAX_CELLS:
        whole = batch.expand(joint)
    cells = usable(whole)
    if len(np.unique(cells.request_of)) < len(joint):
        return []
    rows = rows_of(cells)
    weights = np.array([float(weight(batch.requests[i])) for i in joint])
    answer = batch.solver.solve(earliest(cells, rows, weights), share=0.7)
    if answer.prices is not None and whole.exact_windows and batch.provable:
        every = rows_of(whole)
        free = np.maximum(cells.free_low[rows.link, rows.interval], 1.0)
        prices = carried_over(rows, -answer.prices[: len(rows.link)] / free, every, len(whole.seconds))
        batch.bound = bounds.completion(whole, every, prices, weights, lateness(whole, weights))
    if answer.values is None:
        return []
    rates = project(cells, answer.values * units(cells))
    mean, half = _times(cells, rates)
    return [[joint[k] for k in np.argsort(key, kind="stable").tolist()] for key in (mean, half)]


def _instants(batch: Batch, joint: Sequence[int]) -> list[int]:
    """Additional instants at which the program may change rates: evenly spread up to the last finish of the best answers so far."""
    begin = min(batch.requests[i].not_before_us for i in joint)
    ends = [answer.finish_us for answer in batch.best if isinstance(answer, Plan)]
    end = min(max(ends, default=batch.horizon_us), batch.horizon_us)
    return [begin + (end - begin) * k // _INSTANTS for k in range(1, _INSTANTS) if end > begin]


def _times(cells: Expansion, rates: Floats) -> tuple[Floats, Floats]:
    """Per request: mean time of its bits, and begin of the interval in which half of them are sent; seconds from the first instant."""
    n, r = len(cells.seconds), len(cells.requests)
    part = rates * cells.seconds[cells.interval_of] / cells.volumes[cells.request_of]
    sent = np.bincount(cells.request_of * n + cells.interval_of, weights=part, minlength=r * n).reshape(r, n)
    begins = (cells.times[:-1] - cells.times[0]) / 1e6
    mean = (sent * (begins + cells.seconds / 2)).sum(axis=1)
    half = begins[np.argmax(np.cumsum(sent, axis=1) >= 0.5 - 1e-9, axis=1)]
    return mean, half


def _order_of(batch: Batch) -> list[int]:
    """The order in which the best answers finish, refused requests last."""
    finish = {i: answer.finish_us for i, answer in enumerate(batch.best) if isinstance(answer, Plan)}
    return sorted(range(len(batch.requests)), key=lambda i: (i not in finish, finish.get(i, 0), i))


def _descend(batch: Batch, order: list[int], affordable: int) -> None:
    """Move each request one position forward in turn, and keep improvements."""
    _try(batch, order)
    tries, improved = 1, True
    while improved:
        improved = False
        for k in range(len(order) - 1):
            if tries >= affordable or batch.solver.stopped:
                return
            other = [*order[:k], order[k + 1], order[k], *order[k + 2 :]]
            tries += 1
            if _try(batch, other):
                order, improved = other, True


def _try(batch: Batch, order: Sequence[int]) -> bool:
    answers = in_order(Trial(list_planners()["vbls"], order), batch.requests, batch.network, batch.yardstick.calendars)
    return answers is not None and batch.offer(answers)
