# SPDX-License-Identifier: Apache-2.0
"""The explanation of a refusal: the binding link and interval, and counter-offers.

An offer is a promise on an unchanged network: a request for exactly the offer is admitted until `valid_until`. Planners' offers refer to a
booking made now, so each is computed for the end of that time, corrected for the margins of managed transfers, and checked at both ends of
that time before it is shown.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from broker.core.plan import Plan
from broker.core.request import Request
from broker.core.transfer_spec import TransferSpec
from broker.core.units import MAX_TIME_US, US_PER_S, format_time
from broker.desk.ground.batch import Batch, NotLocked
from broker.desk.ground.problems import Problem
from broker.planners.offers import Binding, CounterOffer, find_binding, find_counter_offer
from broker.planners.signature import OutOfBudget, Planner

# An offer holds for a hundredth of the time that is asked about, within these bounds: for programs that ask again at once, and for people.
_SHORTEST_US, _LONGEST_US = US_PER_S // 4, 30 * US_PER_S

# Of counter-offers by planners that run a solver for each try, against those of the others.
_COST_OF_A_SOLVER = 16

_OMITTED = "the time for looking for offers was used up: ask again alone, by POST /v1/quotes, or with fewer paths"


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, so that it can be asked again with something else in it.

    `again(spec, now_us)` is the planning request that an altered `spec` makes; it raises Problem where it makes none.
    """

    spec: TransferSpec
    again: Callable[[TransferSpec, int], Request]


class _Offer(NamedTuple):
    kind: str
    spec: TransferSpec  # that would be admitted
    shown: dict[str, Any]
    detail: str


def add_counter_offers(
    problem: Problem, request: Request, planner: Planner, batch: Batch, question: Question
) -> tuple[Problem, Binding | None]:
    """`problem` with `counter_offers` and `binding`, and what binds."""
    try:
        problem.more |= _find_offers(planner, request, batch, question)
        where = find_binding(request, batch.replica.network, batch.calendars)
    except NotLocked:  # an offer over another path than those of the request: nothing is known of it here
        where = None
    if where is not None:
        problem.more["binding"] = {
            "link": where.link,
            "interval": {"from": format_time(where.begin_us), "to": format_time(where.end_us)},
            "reservations": [],
        }
    return problem, where


def _find_offers(planner: Planner, request: Request, batch: Batch, question: Question) -> dict[str, Any]:
    """`counter_offers`, as many as there is time for; where some are missing, `offers_omitted` says so."""
    found: list[dict[str, Any]] = []
    more: dict[str, Any] = {"counter_offers": found}
    try:
        if not batch.may_offer(_COST_OF_A_SOLVER if planner.traits.joint else 1):
            raise OutOfBudget
        for offer in _Bargain(planner, request, batch, question).offers():
            found.append(offer)
    except OutOfBudget:
        more["offers_omitted"] = _OMITTED
    return more


class _Bargain:
    def __init__(self, planner: Planner, request: Request, batch: Batch, question: Question) -> None:
        self._planner = planner
        self._request = request
        self._batch = batch
        self._asked, self._again = question.spec, question.again
        self._now_us = batch.now_us
        span = 0 if question.spec.deadline_us is None else question.spec.deadline_us - batch.now_us
        self._until_us = batch.now_us + min(max(span // 100, _SHORTEST_US), _LONGEST_US)

    def offers(self) -> Iterator[dict[str, Any]]:
        until = format_time(self._until_us)
        finish = self._find_finish_without_deadline()
        if finish is not None:
            detail = f"without a deadline it would finish at {finish}"
            yield {"kind": "earliest_finish", "finish": finish, "detail": detail, "valid_until": until}
        for offer in self._translate_offers():
            if all(self._is_admitted(offer.spec, at) for at in (self._now_us, self._until_us)):
                yield {"kind": offer.kind, **offer.shown, "detail": offer.detail, "valid_until": until}

    def _find_finish_without_deadline(self) -> str | None:
        plan = self._plan(replace(self._asked, deadline_us=None), self._now_us)
        return None if plan is None else format_time(plan.finish_us)

    def _translate_offers(self) -> Iterator[_Offer]:
        """What the planner offers at the end of the time that offers hold, in the words of the question."""
        late = self._late()
        if late is None:
            return
        found = self._counter_offer(late)
        if found.earliest_finish_us is not None and found.earliest_finish_us <= MAX_TIME_US:
            deadline = format_time(found.earliest_finish_us)
            asked = replace(self._asked, deadline_us=found.earliest_finish_us)
            yield _Offer("smallest_deadline", asked, {"deadline": deadline}, f"the same request with the deadline {deadline}")
        if found.largest_volume_bytes is not None and (volume := self._volume(found.largest_volume_bytes)):
            detail = f"{volume} bytes by the deadline that was asked"
            yield _Offer("largest_volume", replace(self._asked, volume_bytes=volume), {"volume_bytes": volume}, detail)
        if found.smallest_rate_max_bps is not None and (rate := self._rate_max(late, found.smallest_rate_max_bps)):
            asked = replace(self._asked, rate_max_bps=rate)
            yield _Offer("smallest_rate", asked, {"rate_max_bps": rate}, f"the same at up to {rate} bit/s")
        if (rate := found.largest_rate_min_bps) is not None:
            asked = replace(self._asked, rate_min_bps=rate or None)
            yield _Offer("largest_rate_min", asked, {"rate_min_bps": rate or None}, f"the same at no less than {rate} bit/s")
        if found.longest_duration_us is not None and (seconds := found.longest_duration_us // US_PER_S):
            asked = replace(self._asked, duration_us=seconds * US_PER_S)
            yield _Offer("longest_duration", asked, {"duration_s": seconds}, f"the same for {seconds} s")

    def _late(self) -> Request | None:
        """The request as it would be at the end of the time that offers hold; None when its own deadline comes first."""
        try:
            late = self._again(replace(self._asked, deadline_us=None), self._until_us)
        except Problem:
            return None
        deadline = self._request.deadline_us
        if deadline is not None and deadline <= late.not_before_us:
            return None
        return replace(late, deadline_us=deadline)

    def _counter_offer(self, request: Request) -> CounterOffer:
        return find_counter_offer(self._planner, request, self._batch.replica.network, self._batch.calendars, self._batch.spent)

    def _volume(self, booked_bytes: int) -> int:
        """The largest volume of which no more than so much is booked, margin included."""
        low, high = 0, self._asked.volume_bytes or 0
        if booked_bytes < high and self._booked_for(booked_bytes) == booked_bytes:
            return booked_bytes
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._booked_for(middle) <= booked_bytes else (low, middle - 1)
        return low

    def _booked_for(self, volume_bytes: int) -> int:
        """What is still to be booked for so large a volume; nothing where that is carried already."""
        try:
            return self._again(replace(self._asked, volume_bytes=volume_bytes), self._until_us).volume_bytes or 0
        except Problem:
            return 0

    def _rate_max(self, late: Request, rate_bps: int) -> int | None:
        """The smallest sufficient rate: the margin of a managed transfer, and so its booking, grows with the rate."""
        for _ in range(4):
            try:
                again = self._again(replace(self._asked, rate_max_bps=rate_bps), self._until_us)
            except Problem:
                return None
            if again.volume_bytes == late.volume_bytes:
                return rate_bps
            late = replace(late, volume_bytes=again.volume_bytes)
            larger = self._counter_offer(late).smallest_rate_max_bps
            if larger is None:
                return None
            rate_bps = max(rate_bps, larger)
        return rate_bps

    def _is_admitted(self, spec: TransferSpec, now_us: int) -> bool:
        return self._plan(spec, now_us) is not None

    def _plan(self, spec: TransferSpec, now_us: int) -> Plan | None:
        try:
            request = self._again(spec, now_us)
        except Problem:
            return None
        if self._batch.spent():
            raise OutOfBudget
        answer = self._planner.plan(request, self._batch.replica.network, self._batch.calendars, fewest_rows=True)
        return answer if isinstance(answer, Plan) and answer.finish_us <= MAX_TIME_US else None
