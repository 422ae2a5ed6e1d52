# SPDX-License-Identifier: Apache-2.0
"""Preemption: a request that does not fit may displace `best_effort` bookings of a lower priority.

Other bookings are never displaced by it. It displaces no more transfers than needed, those of the lowest priority first and of equal ones
the youngest; each is rebooked as early as it fits, and its reason names the transfer that displaced it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from broker.core.plan import Plan, Refusal
from broker.core.reason import Reason
from broker.core.request import Request
from broker.core.segments import Segment
from broker.core.transfer import Action, State
from broker.core.units import FOREVER_US, format_time
from broker.desk.admission.admit import Admit
from broker.desk.admission.ask import Ask, find_asked_links, make_request, resolve_ask
from broker.desk.chains.overrun import can_move
from broker.desk.ground.batch import Batch, summarise
from broker.desk.ground.limits import refuse_plan
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.lifecycle.transitions import end, find_released_parts
from broker.desk.planning.plan import find_planner, make_plan
from broker.desk.planning.replan import find_plannable_links, lead_of, rebook
from broker.store.events import Event
from broker.store.transfers import Transfer


@dataclass(slots=True)
class AdmitByPreemption(Admit):
    """Admit the asks; those with `preempt` may displace `candidates`: best-effort transfers by id, which are locked and looked at again."""

    candidates: Sequence[str] = ()
    # It asks the same of planners again and again, each time with others out of the way.
    planned_elsewhere: bool = field(default=False, kw_only=True)

    def transfer_ids(self) -> Iterable[str]:
        """The candidates for displacement, and the predecessors."""
        return {*self.candidates, *Admit.transfer_ids(self)}

    def links(self, replica: Replica, found: Mapping[str, Transfer]) -> set[str]:
        """The links of the request and of every candidate."""
        wanted = find_asked_links(self.asks, replica)
        for transfer_id in self.candidates:
            if (victim := found.get(transfer_id)) is not None:
                wanted |= find_plannable_links(replica, victim.spec)
        return wanted

    def _admit(self, ask: Ask, batch: Batch) -> Transfer | Problem:
        return self._or_displace(ask, Admit._admit(self, ask, batch), batch)

    def _admit_together(self, asks: Sequence[Ask], batch: Batch) -> list[Transfer | Problem]:
        results = Admit._admit_together(self, asks, batch)
        return [self._or_displace(ask, result, batch) for ask, result in zip(asks, results, strict=True)]

    def _or_displace(self, ask: Ask, result: Transfer | Problem, batch: Batch) -> Transfer | Problem:
        """`result`, unless it says that there is no room and displacing others makes some."""
        if not ask.preempt or not isinstance(result, Problem) or result.code != "infeasible":
            return result
        mode, asked = resolve_ask(ask, batch)
        request = make_request(ask.id, asked, mode, self.policy, batch.replica.network, batch.now_us)
        links = find_asked_links([ask], batch.replica)
        candidates = [
            victim
            for transfer_id in self.candidates
            if (victim := batch.transfers.get(transfer_id)) is not None and self._may_give_way(victim, request, links, batch)
        ]
        candidates.sort(key=lambda victim: (victim.spec.priority, -victim.created_us, victim.id))
        mark = batch.mark()
        found = self._fewest(candidates, request, ask.spec.planner, batch)
        batch.back_to(mark)
        if found is None:
            return result
        victims, plan = found
        try:
            refuse_plan(self.account, batch, request.volume_bytes or plan.volume_bytes, plan.finish_us)
        except Problem as problem:
            return problem
        for victim in victims:
            self._displace(victim, batch)
        admitted = self._book(ask, mode, request, plan, batch)
        displaced = {"displaced": [victim.id for victim in victims]}
        batch.event(Event(batch.now_us, self.owner, "transfer.displacing", "transfer", admitted.id, None, displaced))
        for victim in reversed(victims):  # the one of the highest priority is rebooked first
            self._rebook_victim(victim, admitted, batch)
        return admitted

    def _may_give_way(self, victim: Transfer, request: Request, links: set[str], batch: Batch) -> bool:
        """Was it booked as best effort, is it less important, and does it hold anything where and when the request wants room?"""
        if not victim.live or not can_move(victim) or not victim.spec.best_effort or victim.spec.priority >= request.priority:
            return False
        begin = max(request.not_before_us, batch.now_us + lead_of(victim, self.policy))
        until = FOREVER_US if request.deadline_us is None else request.deadline_us
        return any(s.end_us > begin and s.begin_us < until and not links.isdisjoint(s.path) for s in victim.segments)

    def _fewest(
        self, candidates: Sequence[Transfer], request: Request, planner_name: str, batch: Batch
    ) -> tuple[list[Transfer], Plan] | None:
        """The victims, the least important first, without any of whom there would be no plan, and the plan; None when nothing helps.

        What this books and releases is for the caller to undo.
        """
        planner = find_planner(planner_name)
        taken: list[tuple[Transfer, tuple[Segment, ...]]] = []
        found: Plan | Refusal | None = None
        step = 1
        while not isinstance(found, Plan):
            # One, then two, then four more, so that few plans tell whether it helps at all. Who was taken for nothing is put back below.
            more = candidates[len(taken) : len(taken) + step]
            if not more:
                return None
            taken += [(victim, find_released_parts(victim.segments, self._release(victim, batch))) for victim in more]
            found = make_plan(request, planner, batch)
            step *= 2
        needed = []
        for victim, returned in reversed(taken):
            mark = batch.mark()
            batch.book(victim.id, returned)
            without_it = make_plan(request, planner, batch)
            if isinstance(without_it, Plan):
                found = without_it
            else:
                batch.back_to(mark)
                needed.append(victim)
        return needed[::-1], found

    def _release(self, victim: Transfer, batch: Batch) -> tuple[Segment, ...]:
        """Give back what its agents can still be told not to send; what remains."""
        return batch.release_after(victim, batch.now_us + lead_of(victim, self.policy))

    def _displace(self, victim: Transfer, batch: Batch) -> None:
        kept = self._release(victim, batch)
        victim.cut_to(kept, max([batch.now_us + lead_of(victim, self.policy), *(segment.end_us for segment in kept)]))

    def _rebook_victim(self, victim: Transfer, by: Transfer, batch: Batch) -> None:
        """Rebook the remaining volume of a displaced transfer as early as possible; the transfer fails if it fits nowhere."""
        before = summarise(victim)
        why = f"displaced by {by.id}{f' ({by.spec.label})' if by.spec.label else ''}, which has priority {by.spec.priority}"
        mark = batch.mark()
        if victim.complete_by(victim.plan_from_us):  # it lost no more than the rest of its last slot
            victim.finish_us = max(segment.end_us for segment in victim.segments)
            victim.plan_revision += 1
        else:
            try:
                rebook(batch, victim, None, "preempted", why, self.policy)
            except Problem as problem:
                batch.back_to(mark)
                reason = Reason("preempted", f"{why}, and the rest cannot be booked anew: {problem.detail}")
                end(batch, victim, Action.EXPIRE if victim.state is State.HELD else Action.FAIL, reason)
            else:
                assert victim.finish_us is not None and victim.reason is not None
                # Of a deadline that is lost, rebook has said so.
                detail = f"{victim.reason.detail}; it will be done at {format_time(victim.finish_us)}"
                victim.reason = Reason("preempted", detail, until_us=victim.finish_us)
        batch.change(victim, self.owner, "transfer.preempted", before)
