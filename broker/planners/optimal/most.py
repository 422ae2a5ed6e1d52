# SPDX-License-Identifier: Apache-2.0
"""Most requests, or most volume, by the deadlines: which requests to serve if not all fit.

Small batches go to a mixed integer program. For large ones, the linear relaxation tells which requests are certainly served; the
doubtful ones are fixed step by step (the likeliest first, each time solving again), and the list planners fill the capacity that
rounding leaves. Both start from the best of the list planners' answers and replace it only by something better.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from broker.core.plan import Plan, Refusal
from broker.planners.optimal import bounds
from broker.planners.optimal.batch import Batch
from broker.planners.optimal.carry import carried_over, carry
from broker.planners.optimal.expansion import Expansion, usable
from broker.planners.optimal.lists import Trial, alone, in_order, list_planners
from broker.planners.optimal.paths import throughout
from broker.planners.optimal.programs import Rows, max_weight, rows_of, units
from broker.planners.optimal.sheets import Sheet
from broker.planners.optimal.solver import Answer, Floats
from broker.planners.signature import Task

_SMALL_REQUESTS = 60
_SMALL_CELLS = 4000
_SURE = 1e-6
_FILLERS = ("vbls", "alap", "spaghetti", "fbls")
_ROUNDS = 24


def serve_most(batch: Batch) -> None:
    """Improve the batch's best answers and set its bound."""
    _fill(batch, batch.best)
    if all(isinstance(batch.best[i], Plan) for i in batch.joint):
        if batch.provable:  # refused requests have no path at all: nothing is left to prove
            batch.bound = float(batch.yardstick.value(batch.best))
        return
    narrowed = _improve(batch)
    if narrowed is not None and not _reached(batch):
        # So far requests that must not be split were treated as if they might be. Solve again with one path each.
        fixed = replace(batch, lanes=narrowed)
        _improve(fixed)
        batch.offer(fixed.best)


def _improve(batch: Batch) -> dict[int, Sequence[Task]] | None:
    """Improve the best answers and tighten the bound. Returns one lane per request that must not be split, if any had a choice."""
    joint = batch.joint
    expansion = batch.expand(joint)
    cells = usable(expansion)
    rows = rows_of(cells)
    weights = _weights(batch, joint)
    possible = bounds.fits_alone(expansion).astype(np.float64)
    batch.progress(0.3, "relaxation")
    relaxed = batch.solver.solve(max_weight(cells, rows, weights, 0 * possible, possible, integer=False), share=0.5)
    if relaxed.prices is not None:
        _bound(batch, expansion, rows, cells, relaxed, weights)
    if relaxed.values is None:
        return None
    if not _reached(batch):
        _decide(batch, expansion, cells, rows, weights, relaxed.values, possible)
    if all(len(batch.lanes[i]) == 1 or batch.requests[i].options.split for i in joint):
        return None
    rates = relaxed.values[: cells.cells] * units(cells)
    narrowed: dict[int, list[Task]] = {i: [] for i in joint}
    for lane in np.unique(cells.lane_of[throughout(cells, rates)]).tolist():
        narrowed[joint[cells.lanes[lane].request]].append(cells.lanes[lane].task)
    return {i: tasks or batch.lanes[i] for i, tasks in narrowed.items()}


def _decide(
    batch: Batch, expansion: Expansion, cells: Expansion, rows: Rows, weights: Floats, values: Floats, possible: Floats
) -> None:
    """Choose the requests to serve: by a mixed integer program if it is small, else by diving from the relaxation's values."""
    joint = batch.joint
    if len(joint) <= _SMALL_REQUESTS and cells.cells <= _SMALL_CELLS:
        batch.progress(0.4, "integer program")
        answer = batch.solver.solve(max_weight(cells, rows, weights, 0 * possible, possible, integer=True), share=0.7)
        if answer.bound is not None and expansion.exact_windows:
            # The solver's own tolerance is 1e-6, so its proof is no sharper.
            _tighten(batch, -answer.bound * (1 + 1e-6), weights)
        if answer.values is not None:
            _offer(batch, [i for i, part in zip(joint, answer.values[cells.cells :], strict=True) if part > 0.5])
            if _reached(batch):
                return
    _dive(batch, cells, rows, weights, values[cells.cells :], possible)


def _weights(batch: Batch, joint: Sequence[int]) -> Floats:
    """The weight of each request, scaled so that the largest is 1."""
    if batch.yardstick.objective == "volume":
        volumes = np.array([float(batch.requests[i].volume_bytes or 0) for i in joint])
        each: Floats = volumes / volumes.max()
        return each
    return np.ones(len(joint))


def _unit(batch: Batch) -> float:
    """The value of weight 1."""
    if batch.yardstick.objective == "volume":
        return float(max(batch.requests[i].volume_bytes or 0 for i in batch.joint))
    return 1.0


def _bound(batch: Batch, expansion: Expansion, rows: Rows, cells: Expansion, relaxed: Answer, weights: Floats) -> None:
    if not expansion.exact_windows or relaxed.prices is None:
        return
    free = np.maximum(cells.free_low[rows.link, rows.interval], 1.0)
    prices = -relaxed.prices[: len(rows.link)] / free
    every = rows_of(expansion)
    _tighten(batch, bounds.weight(expansion, every, carried_over(rows, prices, every, len(expansion.seconds)), weights), weights)


def _tighten(batch: Batch, weight_bound: float, weights: Floats) -> None:
    """Only whole requests count, and the volume of a subset cannot exceed the sum of all."""
    bound = min(weight_bound, float(weights.sum())) * _unit(batch)
    if batch.yardstick.objective == "admitted":
        bound = float(math.floor(bound + 1e-6))
    if batch.provable:
        batch.bound = bound if batch.bound is None else min(batch.bound, bound)


def _reached(batch: Batch) -> bool:
    return batch.bound is not None and float(batch.yardstick.value(batch.best)) >= batch.bound * (1 - 1e-9)


def _dive(batch: Batch, cells: Expansion, rows: Rows, weights: Floats, parts: Floats, most: Floats) -> None:
    """Fix the likeliest of the doubtful requests, solve again, and drop those that no longer fit, until none is in doubt."""
    joint = batch.joint
    least = np.zeros(len(joint))
    offered: set[tuple[int, ...]] = set()
    for turn in range(_ROUNDS):
        batch.progress(0.5 + 0.4 * turn / _ROUNDS, f"{int((parts > 1 - _SURE).sum())} of {len(joint)} requests are sure")
        doubtful = np.flatnonzero((parts > _SURE) & (parts < 1 - _SURE) & (most > 0))
        if turn in {0, 1} or not len(doubtful):
            served = tuple([i for i, part in zip(joint, parts, strict=True) if part > 1 - _SURE])
            if served not in offered:
                offered.add(served)
                _offer(batch, served)
        if not len(doubtful) or batch.solver.exhausted or _reached(batch):
            return
        chosen = doubtful[np.argsort(-parts[doubtful], kind="stable")][: max(1, len(doubtful) // 4)]
        sure = parts > 1 - _SURE
        while len(chosen):
            trial = least.copy()
            trial[sure] = 1.0
            trial[chosen] = 1.0
            answer = batch.solver.solve(max_weight(cells, rows, weights, trial, most, integer=False), share=0.5)
            if answer.values is not None and answer.settled:
                least, parts = trial, answer.values[cells.cells :]
                break
            if batch.solver.exhausted:
                return
            if len(chosen) == 1:
                most[chosen] = 0.0  # it does not fit beside the fixed ones
                parts = np.where(np.isin(np.arange(len(parts)), chosen), 0.0, parts)
                break
            chosen = chosen[: len(chosen) // 2]


def _offer(batch: Batch, served: Sequence[int]) -> None:
    """Plan these requests, fill the remaining capacity with others, and keep the result if it is better."""
    if not served:
        return
    found = carry(batch, served, simple=False)
    if found.answers:
        _fill(batch, batch.whole(found.answers))
    if any(isinstance(found.answers.get(i), Refusal | None) for i in served):
        # Rates side by side can lose the last bit of a full link. One after the other by deadline loses none, and is optimal on one
        # link.
        rest = [i for i in range(len(batch.requests)) if i not in served]
        order = sorted(served, key=lambda i: (batch.requests[i].deadline_us or batch.horizon_us, i))
        answers = in_order(
            Trial(list_planners()["vbls"], [*order, *rest]), batch.requests, batch.network, batch.yardstick.calendars
        )
        batch.offer(answers or batch.best)


def _fill(batch: Batch, answers: list[Plan | Refusal]) -> None:
    """Serve as many refused requests as the list planners can place in the remaining capacity, in an order that suits the objective."""
    sheet = Sheet(batch.yardstick.calendars)  # in these answers holding times may be booked elsewhere than in `batch.calendars`
    out = list(answers)
    for answer in answers:
        if isinstance(answer, Plan):
            sheet.book(answer)
    sign = -1 if batch.yardstick.objective == "volume" else 1
    for i in sorted(batch.joint, key=lambda i: (sign * (batch.requests[i].volume_bytes or 0), i)):
        if isinstance(out[i], Refusal):
            answer = alone(batch.requests[i], batch.network, sheet, _FILLERS)
            out[i] = answer
            if isinstance(answer, Plan):
                sheet.book(answer)
    batch.offer(out)
