# SPDX-License-Identifier: Apache-2.0
"""Admission: requests become plans, plans become bookings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.allowance import Allowance
from broker.core.plan import Plan, Refusal
from broker.core.request import DEFAULT_PLANNER, Request
from broker.core.transfer import Mode, State
from broker.desk.admission.ask import Ask, earliest_start, find_asked_links, make_question, make_request, refuse_ask, resolve_ask
from broker.desk.chains.vifi_chains import link_turns
from broker.desk.ground import start_signals
from broker.desk.ground.batch import Batch
from broker.desk.ground.limits import NOBODY, Account, refuse_more, refuse_plan
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.planning.plan import (
    check_plan,
    explain_refusal,
    find_booking_planner,
    find_joint_planner,
    make_plan,
    make_plans,
)
from broker.planners import traits_of
from broker.store import transfers
from broker.store.idempotency import Key
from broker.store.session import DatabaseAway
from broker.store.transfers import Transfer

# The most asks of one command that one transaction locks links for, and decides on.
_MAX_AT_ONCE = 1000


@dataclass(slots=True)
class Admit:
    """Admit each ask for itself: a result is a list of Transfer or Problem, in the order of `asks`.

    Asks with one joint planner are planned together, where the first of them stands. Large ones take several transactions, between
    which others have their turn: `decided` is what came of those before, None where nothing has yet.
    """

    asks: Sequence[Ask]
    owner: str
    policy: Policy
    key: Key | None = None
    decided: Sequence[Transfer | Problem | None] = field(default=(), kw_only=True)
    allowance: Allowance = field(default=NOBODY.allowance, kw_only=True)
    planned_elsewhere: bool = field(default=True, kw_only=True)
    at_once: int = field(default=_MAX_AT_ONCE, kw_only=True)

    @property
    def account(self) -> Account:
        """On whose account it books."""
        return Account(self.owner, self.allowance)

    def transfer_ids(self) -> Iterable[str]:
        """The predecessors that this turn's requests name, apart from those that it admits itself."""
        turn = self._turn()
        made_here = {self.asks[index].id for index in turn}
        return {after for index in turn if (after := self.asks[index].spec.after) is not None} - made_here

    def links(self, replica: Replica, found: Mapping[str, Transfer]) -> set[str]:  # noqa: ARG002
        """The links that this turn's requests may be booked on."""
        return find_asked_links([self.asks[index] for index in self._turn()], replica)

    def decide(self, batch: Batch) -> list[Transfer | Problem | None]:
        """As far as there is time in this transaction, and the first of them at any rate."""
        results: list[Transfer | Problem | None] = list(self.decided) or [None] * len(self.asks)
        begun = False
        for index in self._turn():
            if results[index] is not None:
                continue
            if begun and batch.full():
                break
            begun = True
            alike = self._planned_with(index)
            if len(alike) > 1:
                answers = self._admit_together([self.asks[i] for i in alike], batch)
                for i, answer in zip(alike, answers, strict=True):
                    results[i] = answer
            else:
                results[index] = self._admit(self.asks[index], batch)
        return results

    def answer(self, result: list[Transfer | Problem | None]) -> Any:
        """Of each request: the id of its transfer, the refusal, or None where it is not decided yet."""
        return [[r.code, r.detail, r.more] if isinstance(r, Problem) else None if r is None else r.id for r in result]

    async def recall(self, connection: AsyncConnection, answer: Any) -> list[Transfer | Problem | None]:
        """The transfers and refusals again, of the ids that `answer` kept."""
        if self.decided and sum(item is not None for item in answer) == sum(item is not None for item in self.decided):
            return list(self.decided)  # it is our own answer, of the transaction before
        found = await transfers.get_many(connection, [item for item in answer if isinstance(item, str)])
        return [found[item] if isinstance(item, str) else None if item is None else Problem(*item) for item in answer]

    def remainder(self, result: list[Transfer | Problem | None]) -> "Admit | None":
        """The command for the undecided asks. Repeated with its key after a crash, decided transfers may have other ids: `after` follows them."""
        if None not in result:
            return None
        ids = {ask.id: made.id for ask, made in zip(self.asks, result, strict=True) if isinstance(made, Transfer)}
        asks = self.asks
        if any(new != old for old, new in ids.items()):
            asks = [ask if (after := ask.spec.after) is None else ask.changed(after=ids.get(after, after)) for ask in asks]
        before = sum(item is not None for item in self.decided)
        done = sum(item is not None for item in result) - before
        # To choose what to lock takes time as well: for twice as many as there was time to decide on.
        return replace(self, asks=asks, decided=result, at_once=min(2 * done + 8, _MAX_AT_ONCE))

    def cut_short(self, away: DatabaseAway) -> list[Transfer | Problem | None]:
        """What is decided stands; the rest is refused as `unavailable`. Raises `away` where nothing is decided."""
        if not self.decided:
            raise away
        problem = Problem("unavailable", f"the database went away ({away}) before this one's turn; nothing was booked for it")
        return [problem if result is None else result for result in self.decided]

    def _turn(self) -> list[int]:
        """The asks that the next transaction may decide on, at the most: what it locks is for these."""
        waiting = [index for index, result in enumerate(self.decided or repeat(None, len(self.asks))) if result is None]
        turn = waiting[: self.at_once]
        together = {name for index in turn if traits_of(name := self.asks[index].spec.planner).joint}
        return turn + [
            i for i in waiting[self.at_once :] if self.asks[i].spec.planner in together and self.asks[i].spec.after is None
        ]

    def _planned_with(self, index: int) -> list[int]:
        """The asks that one joint planner plans together. A successor is planned alone, after its predecessor is booked."""
        ask = self.asks[index]
        if not traits_of(ask.spec.planner).joint or ask.spec.after is not None:
            return [index]
        return [i for i, other in enumerate(self.asks) if other.spec.planner == ask.spec.planner and other.spec.after is None]

    def _refuse_orphan(self, ask: Ask, batch: Batch) -> None:
        if ask.spec.after is None or ask.spec.after in batch.transfers:
            return
        for index, other in enumerate(self.asks):
            if other.id == ask.spec.after:
                detail = f"item {index} of the batch, whose end was to start this one, is refused"
                raise Problem.of_field("after", detail, "conflict")

    def _admit(self, ask: Ask, batch: Batch) -> Transfer | Problem:
        account = self.account
        try:
            self._refuse_orphan(ask, batch)
            refuse_ask(ask, batch, account)
            refuse_more(account, batch)
            mode, asked = resolve_ask(ask, batch)
            request = make_request(ask.id, asked, mode, self.policy, batch.replica.network, batch.now_us)
            planner = find_booking_planner(ask.spec.planner)
        except Problem as problem:
            return problem
        answer = make_plan(request, planner, batch)
        if isinstance(answer, Plan):
            return self._book_allowed(account, ask, mode, request, answer, batch)
        return explain_refusal(
            request, planner, answer, batch, make_question(ask.id, asked, mode, self.policy, batch.replica.network)
        )

    def _admit_together(self, asks: Sequence[Ask], batch: Batch) -> list[Transfer | Problem]:
        """The asks of one joint planner: all plans are booked before a refusal is explained, so that its offers are true."""
        if len(asks) > self.policy.max_together:
            detail = f"{asks[0].spec.planner} plans at most {self.policy.max_together} requests together while others wait, and here are {len(asks)}"
            advice = (
                f"send smaller batches, or book with {DEFAULT_PLANNER} and have them planned together afterwards by POST /v1/plans"
            )
            return [Problem("too-large", f"{detail}; {advice}", {"limit": self.policy.max_together})] * len(asks)
        results: dict[int, Transfer | Problem] = {}
        wanted: list[tuple[int, Mode, Request]] = []
        for index, ask in enumerate(asks):
            try:
                refuse_ask(ask, batch, self.account)
                refuse_more(self.account, batch, len(wanted))
                mode, _ = resolve_ask(ask, batch)
                wanted.append((index, mode, make_request(ask.id, ask.spec, mode, self.policy, batch.replica.network, batch.now_us)))
            except Problem as problem:
                results[index] = problem
        planner = find_joint_planner(asks[0].spec.planner)
        answers = make_plans([request for _, _, request in wanted], planner, batch)
        refusals: list[tuple[int, Mode, Request, Refusal]] = []
        admitted: dict[int, Transfer] = {}
        for (index, mode, request), answer in zip(wanted, answers, strict=True):
            verified = check_plan(request, answer, batch)
            if isinstance(verified, Plan):
                made = self._transfer(asks[index], mode, request, verified, batch.now_us)
                try:
                    pending = sum(other.use.byte_us for other in admitted.values())
                    refuse_plan(self.account, batch, made.booked_bytes, verified.finish_us, pending)
                except Problem as problem:
                    results[index] = problem
                    continue
                admitted[index] = made
                batch.book(asks[index].id, verified.segments)
            else:
                refusals.append((index, mode, request, verified))
        if planner.traits.takes_turns:
            link_turns(list(admitted.values()), batch, self.policy.managed_margin_us)
        for transfer in admitted.values():
            batch.add(transfer, self.owner)
        results.update(admitted)
        for index, mode, request, refusal in refusals:
            question = make_question(asks[index].id, asks[index].spec, mode, self.policy, batch.replica.network)
            results[index] = explain_refusal(request, planner, refusal, batch, question)
        return [results[index] for index in range(len(asks))]

    def _book_allowed(
        self, account: Account, ask: Ask, mode: Mode, request: Request, plan: Plan, batch: Batch
    ) -> Transfer | Problem:
        """A refusal where the token has too much booked."""
        try:
            refuse_plan(account, batch, request.volume_bytes or plan.volume_bytes, plan.finish_us)
        except Problem as problem:
            return problem
        return self._book(ask, mode, request, plan, batch)

    def _book(self, ask: Ask, mode: Mode, request: Request, plan: Plan, batch: Batch) -> Transfer:
        transfer = self._transfer(ask, mode, request, plan, batch.now_us)
        batch.book(transfer.id, plan.segments)
        batch.add(transfer, self.owner)
        return transfer

    def _transfer(self, ask: Ask, mode: Mode, request: Request, plan: Plan, now_us: int) -> Transfer:
        return Transfer(
            id=ask.id,
            spec=ask.spec.begun_at(
                earliest_start(ask.spec, mode, self.policy, now_us),
                ask.spec.signal if ask.spec.signal is not None or ask.spec.after is None else start_signals.DIRECT,
            ),
            state=State.HELD if ask.hold else State.RESERVED,
            mode=mode,
            booked_bytes=plan.volume_bytes if request.volume_bytes is None else request.volume_bytes,
            released_us=None,
            segments=plan.segments,
            start_us=plan.start_us,
            finish_us=plan.finish_us,
            promised_us=plan.finish_us,
            plan_revision=1,
            plan_from_us=plan.start_us,
            carried_bytes=0,
            hold_until_us=now_us + self.policy.hold_us if ask.hold else None,
            paused=False,
            bytes_done=0,
            measured_bps=None,
            actual_start_us=None,
            actual_finish_us=None,
            checksum=None,
            reason=None,
            owner=self.owner,
            revision=1,
            created_us=now_us,
            updated_us=now_us,
        )
