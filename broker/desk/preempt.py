# SPDX-License-Identifier: Apache-2.0
"""Preemption: a request that does not fit may displace bookings that were made as `best_effort`, with a lower priority than its own.

Nothing else ever gives way. As few as needed are displaced, the least important and then the youngest first; each is planned anew as
early as it still fits, and says who displaced it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from broker.core.plan import Plan, Segment
from broker.core.request import Request
from broker.core.transfer import Action, State
from broker.core.units import format_time
from broker.desk.admit import Admit, Ask, mode_of, request_of
from broker.desk.batch import Batch, summary
from broker.desk.books import Books
from broker.desk.change import book_rest, lead_of, plannable_links, waiting
from broker.desk.planning import planned, planner_named
from broker.desk.problems import Problem
from broker.desk.release import end
from broker.store.transfers import Transfer


@dataclass(slots=True)
class AdmitByPreemption(Admit):
    """Admit the asks; those with `preempt` may displace the `candidates`: ids of best-effort transfers, which are locked and looked at again."""

    candidates: Sequence[str] = ()

    def transfer_ids(self) -> Iterable[str]:
        return self.candidates

    def links(self, books: Books, found: Mapping[str, Transfer]) -> set[str]:
        wanted = Admit.links(self, books, found)
        for transfer_id in self.candidates:
            if (victim := found.get(transfer_id)) is not None:
                wanted |= plannable_links(books, victim)
        return wanted

    def _admit(self, ask: Ask, batch: Batch) -> Transfer | Problem:
        result = Admit._admit(self, ask, batch)
        if not ask.preempt or not isinstance(result, Problem) or result.code != "infeasible":
            return result
        return self._displacing(ask, batch) or result

    def _displacing(self, ask: Ask, batch: Batch) -> Transfer | None:
        """The transfer with room made for it; None when no displacement helps."""
        mode = mode_of(ask, batch.books)
        request = request_of(ask, mode, self.policy, batch.books.network, batch.now_us)
        candidates = [
            batch.transfers[transfer_id]
            for transfer_id in self.candidates
            if transfer_id in batch.transfers and _may_be_displaced(batch.transfers[transfer_id], ask, batch)
        ]
        candidates.sort(key=lambda victim: (victim.priority, -victim.created_us, victim.id))
        mark = batch.mark()
        found = self._fewest(candidates, request, ask, batch)
        if found is None:
            batch.back_to(mark)
            return None
        plan, victims = found
        admitted = self._book(ask, mode, request, plan, batch)
        # The most important one chooses first among what is left.
        for victim, kept in reversed(victims):
            self._settle(victim, kept, admitted, batch)
        return admitted

    def _fewest(
        self, candidates: Sequence[Transfer], request: Request, ask: Ask, batch: Batch
    ) -> tuple[Plan, list[tuple[Transfer, tuple[Segment, ...]]]] | None:
        """A plan, and those that give way to it with what they keep; their bookings are released in the batch, nobody else's."""

        def plan() -> Plan | None:
            answer = planned(request, planner_named(ask.planner), batch)
            return answer if isinstance(answer, Plan) else None

        given_up: list[tuple[Transfer, tuple[Segment, ...]]] = []
        found: Plan | None = None
        step = 1
        while found is None and len(given_up) < len(candidates):
            # One, then two, then four more: to find out that nothing helps takes few plans. Who was taken too many is put back below.
            for victim in candidates[len(given_up) : len(given_up) + step]:
                given_up.append((victim, batch.release_after(victim, batch.now_us + lead_of(victim, self.policy))))
            step *= 2
            found = plan()
        if found is None:
            return None
        for entry in reversed(list(given_up)):
            victim, kept = entry
            returned = _after(victim, kept)
            if any(batch.calendars[link_id].lowest(s.begin_us, s.end_us) < s.rate_bps for s in returned for link_id in s.path):
                continue  # another one's room, which is gone: cannot be, as nothing was booked since
            batch.book(victim.id, returned)
            again = plan()
            if again is None:
                batch.release(victim.id, returned)
            else:
                found = again
                given_up.remove(entry)
        return found, given_up

    def _settle(self, victim: Transfer, kept: tuple[Segment, ...], by: Transfer, batch: Batch) -> None:
        """Book what is left of a displaced transfer as early as it fits; it fails when it fits nowhere."""
        before = summary(victim)
        who = f"{by.id}" + (f" ({by.label})" if by.label else "")
        why = f"displaced by {who}, priority {by.priority}"
        full = victim.segments
        victim.segments = kept
        mark = batch.mark()
        try:
            book_rest(batch, victim, None, "preempted", why, self.policy)
        except Problem as problem:
            batch.back_to(mark)
            victim.segments = full[:0] + kept
            reason = waiting("preempted", f"{why}, and the rest cannot be booked anew: {problem.detail}")
            end(batch, victim, Action.EXPIRE if victim.state is State.HELD else Action.FAIL, reason)
        else:
            assert victim.finish_us is not None and victim.reason is not None
            missed = victim.reason["code"] != "preempted"
            detail = f"{victim.reason['detail'] if missed else why}; done by {format_time(victim.finish_us)} now"
            victim.reason = waiting("preempted", detail, until_us=victim.finish_us)
        batch.change(victim, self.owner, "transfer.preempted", before)
