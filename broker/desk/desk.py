# SPDX-License-Identifier: Apache-2.0
"""The admission desk: everything that queued up meanwhile becomes one batch, in ONE transaction.

Order of locks, the same in every process: idempotency keys, links, transfers, hosts, each in key order. Any number of desks may run on
one database; the links' row locks serialise them, and the ledger's primary key would stop a plan made on an old version.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.calendar import Step
from broker.core.capacity import rises
from broker.core.transfer import IllegalTransition
from broker.desk.admit import Admit, Policy
from broker.desk.batch import Batch, NotLocked
from broker.desk.books import Books
from broker.desk.command import Alone, Command, Foreseen, Preview, moved_by
from broker.desk.handover import settle
from broker.desk.problems import Problem
from broker.desk.rest import plannable_links
from broker.planners import PLANNERS
from broker.store import bookings, idempotency, refusals, transfers
from broker.store.session import Database, DatabaseAway, Taken, Unstorable

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_RESTARTS = 8
_NOBODY = transfers.Chained(frozenset(), frozenset())


class _Restart(Exception):
    """The network or a transfer's path changed between looking and locking: begin the transaction anew."""


class _Work:
    __slots__ = ("command", "future")

    def __init__(self, command: Any, future: asyncio.Future[Any]) -> None:
        self.command = command
        self.future = future


class Desk:
    """`run` it in one task; `submit` from any number of others. `announce` hears which hosts and whether anything was committed.

    `freed` hears on which links more is free than before, at whatever instant; it must return at once.
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], int],
        announce: Callable[[set[str]], None] = lambda _: None,
        batch_size: int = 512,
        freed: Callable[[set[str]], None] | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.books = Books()
        self._database = database
        self._clock = clock
        self._announce = announce
        self._freed = freed
        self._policy = policy or Policy()
        self._batch_size = batch_size
        self._queue: deque[_Work] = deque()
        self._ready = asyncio.Event()

    async def submit(self, command: Command[Result] | Alone[Result] | Preview[Result]) -> Result:
        """The command's result once it is committed; of a preview, the result it would have. Raises its Problem, or DatabaseAway."""
        decided = await self._decided(command)
        result: Result = decided.result if isinstance(decided, Foreseen) else decided
        return result

    async def foresee(self, command: Command[Result]) -> Foreseen[Result]:
        """What a command would do, without doing it. Raises what it would raise."""
        foreseen: Foreseen[Result] = await self._decided(Preview(command))
        return foreseen

    async def _decided(self, command: Any) -> Any:
        work = _Work(command, asyncio.get_running_loop().create_future())
        self._queue.append(work)
        self._ready.set()
        # A caller that goes away does not take back what is being decided.
        return await asyncio.shield(work.future)

    @property
    def queued(self) -> int:
        """How many commands wait for their turn."""
        return len(self._queue)

    async def run(self) -> None:
        while True:
            await self._ready.wait()
            batch = self._next_batch()
            if not self._queue:
                self._ready.clear()
            await self._settle(batch)

    async def warm_up(self) -> None:
        """Load the network and every calendar before the first request asks for them."""
        async with self._database.transaction() as connection:
            await self.books.load_topology(connection)
            heads = {link_id: bookings.Head(record.version, record.revision) for link_id, record in self.books.records.items()}
            await self.books.catch_up(connection, heads, self._clock())

    def _next_batch(self) -> list[_Work]:
        """First come, first served; a second use of one idempotency key waits for the next batch, where the first is known."""
        chosen: list[_Work] = []
        waiting: list[_Work] = []
        keys: set[tuple[str, str]] = set()
        while self._queue and len(chosen) < self._batch_size:
            if isinstance(self._queue[0].command, Alone | Preview):
                if not chosen:
                    return [self._queue.popleft()]
                break
            work = self._queue.popleft()
            key = work.command.key
            if key is not None and key[:2] in keys:
                waiting.append(work)
                continue
            if key is not None:
                keys.add(key[:2])
            chosen.append(work)
        self._queue.extendleft(reversed(waiting))
        return chosen

    async def _settle(self, batch: list[_Work]) -> None:
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
                    await self._settle([work])
        except Exception as error:  # the loop must outlive every fault; the callers hear of it
            log.exception("the desk failed on a batch of %d", len(batch))
            _fail(batch, error)

    async def _transact(self, batch: list[_Work]) -> None:
        every_link = False
        for _ in range(_RESTARTS):
            try:
                outcomes, hosts, wrote = await self._attempt(batch, every_link)
            except _Restart:
                continue
            except NotLocked:
                every_link = True  # a planner went further afield than was foreseen: it may look anywhere now
                continue
            except Taken:
                # (link, version) was taken: somebody appended without the lock. Plan again on what is there now.
                log.exception("a ledger version was taken; planning again")
                self._forget_books()
                continue
            for work, outcome in zip(batch, outcomes, strict=True):
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

    async def _attempt(self, batch: list[_Work], every_link: bool) -> tuple[list[Any], set[str], bool]:
        """One try: (result or exception per command, hosts with new assignments, was anything written)."""
        working: Batch | None = None
        try:
            async with self._database.transaction() as connection:
                keys = [work.command.key for work in batch if work.command.key is not None]
                known = await idempotency.claim(connection, keys, self._clock()) if keys else {}
                working = await self._lock(connection, [w.command for w in batch], every_link)
                outcomes = []
                answers = []
                for work in batch:
                    command = work.command
                    before = known.get(command.key[:2]) if command.key else None
                    if before is not None:
                        outcomes.append(await _recall(connection, command, before))
                        continue
                    outcome = _decide(command, working, self._policy)
                    outcomes.append(outcome)
                    if command.key is not None:
                        answers.append((command.key, command, outcome))
                await working.write(connection)
                await refusals.append(connection, working.now_us, _refused([w.command for w in batch], outcomes, known))
                await idempotency.remember(connection, [(key, _kept(command, outcome)) for key, command, outcome in answers])
        except BaseException:
            if working is not None:
                working.journal.undo()
            raise
        self.books.versions.update(working.heads)
        self._tell_freed(working)
        return outcomes, working.touched, working.wrote

    async def _transact_alone(self, work: _Work) -> None:
        """A change of the network: with every link locked, and with the books read anew whenever it does not commit."""
        books = self.books
        try:
            async with self._database.transaction() as connection:
                heads = await self._lock_everything(connection)
                batch = Batch(books, heads, {}, self._clock())
                capacities = {link_id: calendar.capacity for link_id, calendar in books.calendars.items()}
                result = await work.command.act(connection, batch)
                await batch.write(connection)
        except Problem as problem:
            # Refusals come before anything is booked or loaded, so the books are as the database is.
            _fail([work], problem)
            return
        except BaseException:
            self._forget_books()
            raise
        # Links that were deleted have a head, for what was given back on them, and no calendar any more.
        books.versions.update({link_id: version for link_id, version in batch.heads.items() if link_id in books.calendars})
        self._tell_freed(batch, capacities)
        if not work.future.cancelled():
            work.future.set_result(result)
        self._announce(batch.touched)

    async def _lock_everything(self, connection: AsyncConnection) -> dict[str, int]:
        """Lock the network and every link, and bring the books up to date; the head of each link."""
        await bookings.lock_topology(connection)
        await self.books.load_topology(connection)
        locked = await bookings.lock(connection, self.books.records)
        await self.books.catch_up(connection, locked.heads, self._clock())
        return {link_id: head.version for link_id, head in locked.heads.items()}

    async def _rehearse(self, work: _Work) -> None:
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
            except _Restart:
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
                working = await self._lock(connection, [command], every_link)
                outcome = _decide(command, working, self._policy)
                await working.explain_refusals(connection)
                return outcome if isinstance(outcome, BaseException) else Foreseen(outcome, moved_by(command, working))
        finally:
            if working is not None:
                working.journal.undo()

    async def _rehearse_alone(self, command: Alone[Any]) -> Any:
        async with self._database.rehearsal() as connection:
            heads = await self._lock_everything(connection)
            # On a copy of the books: what changes the network changes them in ways that no journal takes back.
            return await command.act(connection, Batch(self.books.copy(), heads, {}, self._clock(), rehearsed=True))

    def _tell_freed(self, batch: Batch, capacities: Mapping[str, Sequence[Step]] | None = None) -> None:
        """`capacities`: those before a change of the network."""
        if self._freed is None:
            return
        links = batch.freed()
        if capacities is not None:
            for link_id, calendar in self.books.calendars.items():
                if rises(capacities.get(link_id, ()), calendar.capacity, batch.now_us):
                    links.add(link_id)
        if links:
            self._freed(links)

    def _forget_books(self) -> None:
        """Read everything anew with the next batch; until then, answers are rendered with the links as they were known."""
        records = self.books.records
        self.books = Books()
        self.books.records = records

    async def _lock(self, connection: AsyncConnection, commands: list[Command[Any]], every_link: bool) -> Batch:
        """Lock links, then transfers; bring the books up to date. Raises _Restart where what was looked at first has changed.

        A command can move whoever waits for a transfer that it names (`handover`), so those and their links are locked with it.
        """
        books = self.books
        books.looked_us = self._clock()
        named = {transfer_id for command in commands for transfer_id in command.transfer_ids()}
        chain = await transfers.chained(connection, named) if named else _NOBODY
        seen = await transfers.get_many(connection, chain.behind) if named else {}
        wanted = {link_id for transfer in seen.values() for link_id in transfer.links()}
        for transfer_id in chain.behind - named:
            wanted |= plannable_links(books, seen[transfer_id])
        for command in commands:
            wanted |= command.links(books, seen)
        if every_link:
            wanted |= books.records.keys()
        locked = await bookings.lock(connection, wanted)
        # A link that was deleted while we waited for its lock is known to the books and missing from the heads.
        deleted = any(link_id in books.records and link_id not in locked.heads for link_id in wanted)
        if deleted or locked.topology_version != books.topology_version or not books.is_current(locked.heads):
            await books.load_topology(connection)
            raise _Restart
        found = await transfers.get_many(connection, chain.behind | chain.ahead, lock=True) if named else {}
        if any(not found[name].links() <= wanted for name in chain.behind & found.keys()):
            raise _Restart
        if named and await transfers.chained(connection, named) != chain:
            raise _Restart  # somebody joined or left the chain before its first rows were locked
        # The time is read under the locks: a desk that waited for them must not book what has passed meanwhile.
        now_us = self._clock()
        await books.catch_up(connection, locked.heads, now_us)
        return Batch(books, {link_id: head.version for link_id, head in locked.heads.items()}, found, now_us)


def _decide(command: Command[Any], batch: Batch, policy: Policy) -> Any:
    mark = batch.mark()
    noted = len(batch.noted)
    try:
        result = command.decide(batch)
        settle(batch, batch.noted[noted:], policy)
    except Problem as problem:
        batch.back_to(mark)
        return problem
    except IllegalTransition as illegal:
        batch.back_to(mark)
        return Problem("conflict", str(illegal), {"state": str(illegal.state)})
    except NotLocked:  # the whole batch begins anew
        raise
    except Exception as error:
        log.exception("a command failed")
        batch.back_to(mark)
        return error
    else:
        return result


def _refused(commands: Sequence[Any], outcomes: Sequence[Any], known: Mapping[Any, Any]) -> Counter[tuple[str, str]]:
    """How many requests were refused now, by (planner, code of the problem)."""
    counted: Counter[tuple[str, str]] = Counter()
    for command, outcome in zip(commands, outcomes, strict=True):
        if not isinstance(command, Admit) or (command.key is not None and command.key[:2] in known):
            continue
        results = [outcome] * len(command.asks) if isinstance(outcome, Problem) else outcome
        if isinstance(results, list):
            counted.update(
                (ask.planner if ask.planner in PLANNERS else "unknown", result.code)
                for ask, result in zip(command.asks, results, strict=True)
                if isinstance(result, Problem)
            )
    return counted


def _kept(command: Command[Any], outcome: Any) -> Any:
    """What an idempotency key remembers: a result or a refusal, and nothing of a fault of ours (then the key stays unanswered)."""
    if isinstance(outcome, Problem):
        return {"problem": [outcome.code, outcome.detail, outcome.more]}
    if isinstance(outcome, BaseException):
        return None
    return {"result": command.answer(outcome)}


async def _recall(connection: AsyncConnection, command: Command[Any], known: idempotency.Known) -> Any:
    assert command.key is not None
    if known.body_hash != command.key.body_hash:
        return Problem(
            "idempotency-key-reused",
            "this Idempotency-Key was used before with another body; use a new key for a new request",
            {"errors": [{"field": "Idempotency-Key", "detail": "used before with another body"}]},
        )
    if known.answer is None:
        return Problem("conflict", "this Idempotency-Key belongs to a request that failed; use a new key")
    if "problem" in known.answer:
        return Problem(*known.answer["problem"])
    return await command.recall(connection, known.answer["result"])


def _fail(batch: list[_Work], error: BaseException) -> None:
    for work in batch:
        if not work.future.done():
            work.future.set_exception(error)
