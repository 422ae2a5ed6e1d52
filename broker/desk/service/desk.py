# SPDX-License-Identifier: Apache-2.0
"""The admission desk: all commands that are waiting become one batch, in ONE transaction.

Any number of desks may run on one database; the links' row locks (`locks`) serialise them, and the ledger's primary key would stop a plan
made on an old version.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from broker.core.calendar import Step
from broker.core.capacity import rises
from broker.desk.admission.quote import Quote
from broker.desk.ground.batch import NO_ANSWERS, Answers, Batch, Doubted, Heavy, NotLocked, find_holders
from broker.desk.ground.command import Alone, Command, Foreseen, Preview, list_moved
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.service.locks import Restart, Stale, lock, lock_everything
from broker.desk.service.outcomes import count_refusals, decide, encode_answer, recall
from broker.desk.service.queue import Queue, Work
from broker.desk.service.rehearsal import Elsewhere, InProcess, Look, Rehearsed
from broker.store import bookings, idempotency, refusals
from broker.store.session import Database, DatabaseAway, Taken, Unstorable

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_RESTARTS = 8

# All other requests wait while one transaction's commands are decided, and a read waits for several such slices in a row: after so long
# no further decision is begun, and no more counter-offers are looked for.
_SLICE_S = 0.02
_OFFERS_S = 0.1

# What is planned elsewhere begins so much later than it was asked: by then it is to be booked.
_LEADS_US = (250_000, 1_000_000, 3_000_000)


class Desk:
    """`run` it in one task; `submit` from any number of others. `announce` hears which hosts and whether anything was committed.

    `freed` hears on which links more is free than before, at whatever instant; it must return at once. `busy_s` says how long this
    process has been computing: by it one transaction's decisions are cut short, so that others get their turn. `elsewhere` decides on
    copies what would take long.
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], int],
        policy: Policy,
        announce: Callable[[set[str]], None] = lambda _: None,
        batch_size: int = 512,
        freed: Callable[[set[str]], None] | None = None,
        busy_s: Callable[[], float] = lambda: 0.0,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.replica = Replica()
        self._database = database
        self._clock = clock
        self._announce = announce
        self._freed = freed
        self._policy = policy
        self._batch_size = batch_size
        self._busy_s = busy_s
        self._elsewhere = elsewhere or InProcess()
        self._queue = Queue()
        self._ready = asyncio.Event()

    async def submit(self, command: Command[Result] | Alone[Result] | Preview[Result]) -> Result:
        """The command's result once it is committed; of a preview, the result it would have. Raises its Problem, or DatabaseAway."""
        if isinstance(command, Alone | Preview):
            decided = await self._enqueue(command)
            result: Result = decided.result if isinstance(decided, Foreseen) else decided
            return result
        if isinstance(command, Quote):
            quoted: Result = await self._quote(command)
            return quoted
        while True:
            try:
                result = await self._enqueue(command)
            except Heavy:
                result = await self._plan_elsewhere(command)
            except DatabaseAway as away:
                return command.cut_short(away)
            remainder = command.remainder(result)
            if remainder is None:
                return result
            command = remainder  # at the end of the queue: others have their turn first

    async def _quote(self, command: Quote) -> Any:
        rehearsed = await self._rehearse_elsewhere(command, 0)
        if isinstance(rehearsed.outcome, BaseException):
            raise rehearsed.outcome
        if rehearsed.unexplained:
            async with self._database.transaction() as connection:
                for problem, binding in rehearsed.unexplained:
                    problem.more["binding"]["reservations"] = await find_holders(connection, binding)
        return rehearsed.outcome

    async def _plan_elsewhere(self, command: Command[Result]) -> Result:
        """Plan on a copy, then decide with those plans; again, for a later begin, while others are faster or time passes."""
        for lead_us in _LEADS_US:
            rehearsed = await self._rehearse_elsewhere(command, lead_us)
            try:
                result: Result = await self._enqueue(command, rehearsed.answers)
            except Heavy:
                continue
            return result
        raise Problem.out_of_budget(f"others booked what was planned {len(_LEADS_US)} times, or planning took too long")

    async def _rehearse_elsewhere(self, command: Command[Any], lead_us: int) -> Rehearsed:
        look = Look(command, self._policy, lead_us)
        if look.account.counts:
            self.replica.watched.add(look.owner)  # the token's use is copied as well: the other process cannot read it again
        async with self._elsewhere.turn(look.owner) as rehearse:
            try:
                return await rehearse(await self._enqueue(look))
            except NotLocked:
                return await rehearse(await self._enqueue(replace(look, every_link=True)))

    async def foresee(self, command: Command[Result]) -> Foreseen[Result]:
        """What a command would do, without doing it. Raises what it would raise."""
        foreseen: Foreseen[Result] = await self._enqueue(Preview(command))
        return foreseen

    async def _enqueue(self, command: Any, answers: Answers | None = None) -> Any:
        work = Work(command, asyncio.get_running_loop().create_future(), answers)
        self._queue.put(work)
        self._ready.set()
        # A caller that disconnects does not cancel its command.
        return await asyncio.shield(work.future)

    @property
    def queued(self) -> int:
        """How many commands wait for their turn."""
        return len(self._queue)

    async def run(self) -> None:
        """Decide waiting commands, batch after batch, until cancelled."""
        while True:
            await self._ready.wait()
            # No name for it here: an idle desk would keep the last batch in memory, tens of thousands of transfers.
            await self._process_batch(self._queue.take(self._batch_size))
            if not self._queue:
                self._ready.clear()

    async def warm_up(self) -> None:
        """Load the network and every calendar before the first request asks for them."""
        async with self._database.transaction() as connection:
            await self.replica.load_topology(connection)
            heads = {link_id: bookings.Head(record.version, record.revision) for link_id, record in self.replica.records.items()}
            await self.replica.catch_up(connection, heads, self._clock())

    async def _load_topology(self) -> None:
        async with self._database.transaction() as connection:
            await self.replica.load_topology(connection)

    async def _process_batch(self, batch: list[Work]) -> None:
        try:
            if isinstance(batch[0].command, Preview):
                await self._rehearse(batch[0])
            elif isinstance(batch[0].command, Alone):
                await self._transact_alone(batch[0])
            else:
                await self._transact(batch)
        except DatabaseAway as away:
            _fail(batch, away)
        except (Unstorable, UnicodeError, OverflowError, ValueError) as error:
            if len(batch) == 1:
                log.exception("the database refused a command")
                _fail(batch, Problem("invalid", "the database cannot store this request", {"cause": type(error).__name__}))
            else:
                # One of them is poison: alone, each fails or passes for itself.
                for work in batch:
                    await self._process_batch([work])
        except Exception as error:  # the loop must outlive every fault; the callers hear of it
            log.exception("the desk failed on a batch of %d", len(batch))
            _fail(batch, error)

    async def _transact(self, batch: list[Work]) -> None:
        every_link = False
        for _ in range(_RESTARTS):
            try:
                outcomes, hosts, wrote = await self._attempt(batch, every_link)
            except Stale:
                await self._load_topology()
                continue
            except (Restart, Doubted):
                continue
            except NotLocked:
                every_link = True  # a planner went further afield than was foreseen: it may look anywhere now
                continue
            except Taken:
                # (link, version) was taken: another process appended without the lock. Plan again on the present ledger.
                log.exception("a ledger version was taken; planning again")
                self._forget_replica()
                continue
            self._put_back(batch[len(outcomes) :])
            for work, outcome in zip(batch, outcomes, strict=False):
                if work.future.cancelled():
                    continue
                if isinstance(outcome, BaseException):
                    work.future.set_exception(outcome)
                else:
                    work.future.set_result(outcome)
            if wrote:
                self._announce(hosts)
            return
        raise DatabaseAway("the network keeps changing; try again")

    async def _attempt(self, batch: list[Work], every_link: bool) -> tuple[list[Any], set[str], bool]:
        """One try: (result or exception per command, hosts with new assignments, was anything written).

        The last commands have no outcome where deciding on the others took long.
        """
        working: Batch | None = None
        try:
            async with self._database.transaction() as connection:
                keys = [work.command.key for work in batch if work.command.key is not None]
                known = await idempotency.claim(connection, keys, self._clock()) if keys else {}
                working = await lock(connection, self.replica, [w.command for w in batch], self._clock, every_link)
                self._set_limits(working)
                outcomes: list[Any] = []
                decided: list[tuple[Any, Any]] = []
                for work in batch:
                    if outcomes and working.full():
                        break
                    command = work.command
                    before = known.get(command.key[:2]) if command.key else None
                    if before is not None:
                        outcome = await recall(connection, command, before)
                        if not command.decided or outcome != command.decided:
                            outcomes.append(
                                outcome
                            )  # somebody else's answer: whatever it leaves to be decided is for another transaction
                            continue
                    working.answers = work.answers or NO_ANSWERS
                    working.may_go_elsewhere = command.planned_elsewhere
                    outcomes.append(decide(command, working, self._policy))
                    decided.append((command, outcomes[-1]))
                await working.write(connection)
                await refusals.append(connection, working.now_us, count_refusals(decided))
                keyed = [(command, outcome) for command, outcome in decided if command.key is not None]
                answers = [
                    (command.key, encode_answer(command, outcome)) for command, outcome in keyed if not isinstance(outcome, Heavy)
                ]
                await idempotency.remember(connection, answers)
                undecided = [work.command for work in batch[len(outcomes) :] if work.command.key is not None]
                undecided += [command for command, outcome in keyed if isinstance(outcome, Heavy)]
                await idempotency.give_back(connection, [c.key for c in undecided if c.key[:2] not in known])
        except BaseException:
            if working is not None:
                working.journal.undo()
            raise
        self.replica.versions.update(working.heads)
        self.replica.uses.update(working.uses)
        self._tell_freed(working)
        return outcomes, working.touched, working.wrote

    def _set_limits(self, working: Batch) -> None:
        begin = self._busy_s()
        working.full = lambda: self._busy_s() - begin >= _SLICE_S
        working.spent = lambda: self._busy_s() - begin >= _OFFERS_S

    def _put_back(self, works: Sequence[Work]) -> None:
        if works:
            self._queue.put_back(works)
            self._ready.set()

    async def _transact_alone(self, work: Work) -> None:
        """A change of the network: with every link locked, and with the replica read anew whenever it does not commit."""
        replica = self.replica
        try:
            async with self._database.transaction() as connection:
                heads = await lock_everything(connection, self.replica, self._clock)
                batch = Batch(replica, heads, {}, self._clock())
                capacities = {link_id: calendar.capacity for link_id, calendar in replica.calendars.items()}
                result = await work.command.act(connection, batch)
                await batch.write(connection)
        except Problem as problem:
            # Refusals come before anything is booked or loaded, so the replica is as the database is.
            _fail([work], problem)
            return
        except BaseException:
            self._forget_replica()
            raise
        # Links that were deleted have a head, for what was given back on them, and no calendar any more.
        replica.versions.update({link_id: version for link_id, version in batch.heads.items() if link_id in replica.calendars})
        replica.uses.update(batch.uses)
        self._tell_freed(batch, capacities)
        if not work.future.cancelled():
            work.future.set_result(result)
        self._announce(batch.touched)

    async def _rehearse(self, work: Work) -> None:
        """Decide on a preview's command, and forget it all but for the answer."""
        command = work.command.command
        every_link = False
        for _ in range(_RESTARTS):
            try:
                if isinstance(command, Alone):
                    outcome = await self._rehearse_alone(command)
                else:
                    outcome = await self._rehearse_command(command, every_link)
            except Problem as problem:
                outcome = problem
            except Stale:
                await self._load_topology()
                continue
            except Restart:
                continue
            except NotLocked:
                every_link = True
                continue
            if isinstance(outcome, BaseException):
                _fail([work], outcome)
            elif not work.future.done():
                work.future.set_result(outcome)
            return
        raise DatabaseAway("the network keeps changing; try again")

    async def _rehearse_command(self, command: Command[Any], every_link: bool) -> Any:
        working: Batch | None = None
        try:
            async with self._database.rehearsal() as connection:
                working = await lock(connection, self.replica, [command], self._clock, every_link, fresh=True)
                self._set_limits(working)
                outcome = decide(command, working, self._policy)
                await working.explain_refusals(connection)
                return outcome if isinstance(outcome, BaseException) else Foreseen(outcome, list_moved(command, working))
        finally:
            if working is not None:
                working.journal.undo()

    async def _rehearse_alone(self, command: Alone[Any]) -> Any:
        async with self._database.rehearsal() as connection:
            heads = await lock_everything(connection, self.replica, self._clock)
            # On a copy of the replica: what changes the network changes it in ways that no journal takes back.
            return await command.act(connection, Batch(self.replica.copy(), heads, {}, self._clock(), rehearsed=True))

    def _tell_freed(self, batch: Batch, capacities: Mapping[str, Sequence[Step]] | None = None) -> None:
        """`capacities`: those before a change of the network."""
        if self._freed is None:
            return
        links = batch.freed()
        if capacities is not None:
            for link_id, calendar in self.replica.calendars.items():
                if rises(capacities.get(link_id, ()), calendar.capacity, batch.now_us):
                    links.add(link_id)
        if links:
            self._freed(links)

    def _forget_replica(self) -> None:
        """Read everything anew with the next batch; until then, answers are rendered with the links as they were known."""
        records = self.replica.records
        self.replica = Replica()
        self.replica.records = records


def _fail(batch: list[Work], error: BaseException) -> None:
    for work in batch:
        if not work.future.done():
            work.future.set_exception(error)
