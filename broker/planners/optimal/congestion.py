# SPDX-License-Identifier: Apache-2.0
"""Least congestion: carry all requests by their deadlines with the smallest possible share booked on the fullest link.

The optimum of bulk data transfer scheduling (RR-6205, section 1): spaghetti if all windows are the same, otherwise a step function
with O(r) intervals, and over several paths a linear program finds it.
"""

from dataclasses import replace
from fractions import Fraction

from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.planners.optimal.batch import Batch
from broker.planners.optimal.carry import Carried, carry, prove
from broker.planners.optimal.lists import Hopeless, alone
from broker.planners.optimal.most import serve_most
from broker.planners.optimal.sheets import Capped, Sheet

_WORTH_IT = 0.01  # a gap that justifies further tries without the solver
_SQUEEZES = 8
_MAX_TO_SQUEEZE = 2000


def least_congested(batch: Batch) -> Carried:
    """Plans with the smallest booked share on the fullest link that the program finds."""
    batch.progress(0.1, "least congestion")
    return carry(batch, batch.joint)


def improve_congestion(batch: Batch, found: Carried) -> None:
    """Choose between `found` and the list planners' best answers, prove a bound, and choose the requests to serve if not all fit."""
    if found.answers and _clearly_better(batch, batch.whole(found.answers)):
        batch.offer(batch.whole(found.answers))
    if not batch.best:
        batch.offer(batch.whole({}))
    if all(isinstance(batch.best[i], Plan) for i in batch.joint):
        _prove(batch, found)
        if batch.bound is None or batch.bound < float(batch.yardstick.value(batch.best)) * (1 - _WORTH_IT):
            _squeeze(batch)
        return
    batch.progress(0.3, "not all requests fit")
    most = replace(batch, yardstick=replace(batch.yardstick, objective="admitted"), best=[], best_score=None)
    most.offer(batch.best)
    serve_most(most)
    batch.offer(most.best)
    served = [i for i in batch.joint if isinstance(most.best[i], Plan)]
    if served and len(served) < len(batch.joint):
        fewer = carry(batch, served)
        if fewer.answers:
            batch.offer(batch.whole(fewer.answers))


def _prove(batch: Batch, found: Carried) -> None:
    if found.whole is not None and batch.provable and not batch.solver.stopped:
        batch.bound = prove(found.whole, found.proofs, float(batch.yardstick.value(batch.best)))


def _squeeze(batch: Batch) -> None:
    """Improve without the solver: list planners by deadline on links limited to a share, which bisection lowers.

    On one link this is optimal except for the last step, because there VBLS by deadline is preemptive EDF.
    """
    order = sorted(batch.joint, key=lambda i: (batch.requests[i].deadline_us or batch.horizon_us, i))
    if not order or len(order) > _MAX_TO_SQUEEZE:
        return
    begin = min(batch.requests[i].not_before_us for i in order)
    end = max(batch.requests[i].deadline_us or batch.horizon_us for i in order)
    low, high = Fraction(batch.bound or 0), Fraction(batch.yardstick.value(batch.best))
    for _ in range(_SQUEEZES):
        if batch.solver.stopped:
            return
        share = ((low + high) / 2).limit_denominator(10**9)
        sheet = Capped(batch.calendars, batch.network, share, begin, end)
        answers: dict[int, Plan | Refusal] = {}
        for i in order:
            answers[i] = answer = alone(batch.requests[i], batch.network, sheet, ("spaghetti", "vbls"))
            if isinstance(answer, Refusal):
                break
            sheet.book(answer)
        if len(answers) == len(order) and all(isinstance(answer, Plan) for answer in answers.values()):
            batch.offer(batch.whole(answers))
            high = min(share, Fraction(batch.yardstick.value(batch.best)))
        else:
            low = share


def _clearly_better(batch: Batch, answers: list[Plan | Refusal]) -> bool:
    """True if better than the list planners by more than the rounding of rates to bit/s; else their simpler plans are kept."""
    score = batch.yardstick.score(answers)
    if batch.best_score is None or score[0] != batch.best_score[0]:
        return batch.best_score is None or score < batch.best_score
    least = min(link.payload_bps(link.capacity_bps) for link in batch.network.links.values())
    return (batch.best_score[1] - score[1]) * least > len(answers)


def fuller_than(batch: Batch, found: Carried) -> Hopeless | None:
    """A test whether a list planner's answers can no longer equal those found: a request is refused, or a link is fuller."""
    if not found.answers or any(isinstance(answer, Refusal) for answer in found.answers.values()):
        return None
    share = Fraction(batch.yardstick.value(batch.whole(found.answers)))
    most: dict[str, int] = {}

    joint = {batch.requests[i].id for i in batch.joint}

    def hopeless(request: Request, answer: Plan | Refusal, sheet: Sheet) -> bool:
        if isinstance(answer, Refusal):
            return request.id in joint
        for segment in answer.segments:
            for link_id in segment.path:
                calendar, link = sheet[link_id], batch.network.links[link_id]
                if len(calendar.capacity) > 1:
                    continue  # reduced capacity is not booked capacity
                if link_id not in most:
                    slack = len(batch.requests)
                    most[link_id] = calendar.capacity[0][1] - int(share * link.payload_bps(link.capacity_bps)) - slack
                if calendar.lowest(segment.begin_us, segment.end_us) < most[link_id]:
                    return True
        return False

    return hopeless
