# SPDX-License-Identifier: Apache-2.0
"""Desks on one database and a virtual clock, and the brute-force oracle that judges them.

The oracle recomputes everything from the tables at every instant at which anything changes, with sums over lists. It uses neither the
calendars, the planners nor the audit's SQL.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterable
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.calendar import Calendar
from broker.core.network import Link
from broker.core.transfer import LIVE, State
from broker.core.units import US_PER_S
from broker.desk.admission.admit import Admit
from broker.desk.admission.ask import Ask
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.network.links import CreateLinks
from broker.desk.service.desk import Desk
from broker.store import audit, bookings
from broker.store.session import Database
from broker.store.transfers import Transfer
from tests.asks import make_ask
from tests.service import Clock

POLICY = Policy()
GBIT = 10**9

Interval = tuple[int, int, int]  # (begin_us, end_us, bit/s)


class World:
    """`desks` work on one database, each with its own connections, as processes would; `look` is a connection pool for the oracle."""

    def __init__(self, url: str, clock: Clock, desks: int = 1) -> None:
        self.clock = clock
        self.look = Database(url, pool_size=2)
        self.databases = [Database(url, pool_size=2) for _ in range(desks)]
        self.desks = [Desk(database, clock, POLICY) for database in self.databases]
        self._tasks: list[asyncio.Task[None]] = []
        self._ids = itertools.count(1)

    async def start(self) -> None:
        self._tasks = [asyncio.create_task(desk.run()) for desk in self.desks]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for database in (self.look, *self.databases):
            await database.close()

    async def do(self, command: Any, desk: int = 0) -> Any:
        return await asyncio.wait_for(self.desks[desk].submit(command), 30)

    async def links(self, *links: Link) -> None:
        await self.do(CreateLinks(links, "test"))

    async def nic(self, host: str, node: str, rate_bps: int) -> None:
        """The two links that an enrolment makes."""
        pair = Link(f"{host}~up", host, node, rate_bps), Link(f"{host}~down", node, host, rate_bps)
        async with self.look.transaction() as connection:
            await bookings.insert_links(connection, pair, self.clock(), host)

    def ask(self, volume_bytes: int | None = 125_000_000, source: str = "A", destination: str = "B", **more: Any) -> Ask:
        return make_ask(f"tr_{next(self._ids):06}", source, destination, volume_bytes, **more)

    async def admit(self, *asks: Ask, desk: int = 0, key: Any = None) -> list[Transfer | Problem]:
        result: list[Transfer | Problem] = await self.do(Admit(asks, "me", POLICY, key), desk)
        return result

    async def book(self, *asks: Ask, desk: int = 0) -> list[Transfer]:
        """Admit what may not be refused."""
        answers = await self.admit(*asks, desk=desk)
        booked = [answer for answer in answers if isinstance(answer, Transfer)]
        assert len(booked) == len(answers), answers
        return booked

    async def rows(self, query: str, **values: Any) -> list[Any]:
        async with self.look.transaction() as connection:
            return list((await connection.execute(text(query), values)).all())

    async def everything(self) -> list[Any]:
        """All that a refused or failed command must leave as it was."""
        ledger = await self.rows("SELECT * FROM ledger ORDER BY link_id, version")
        heads = await self.rows("SELECT id, version, revision, capacity_bps FROM links ORDER BY id")
        return [ledger, heads, await self.rows("SELECT * FROM transfers ORDER BY id")]

    # -- the oracle --------------------------------------------------------------------------------------------------------------

    async def check(self, carried: Iterable[str] = ()) -> None:
        """Ledger, transfers, capacity and every desk's memory say the same, now and for ever; `carried`: transfers not to be judged by volume."""
        now = self.clock.now_us
        async with self.look.transaction() as connection:
            found = await audit.find_violations(connection, now)
        assert not any(found.values()), found
        async with self.look.transaction() as connection:
            records = await bookings.load_links(connection)
            memories = [await self._current(replica, connection) for replica in (*(desk.replica for desk in self.desks), Replica())]
            rows = await connection.execute(text("SELECT link_id, begin_us, end_us, delta_bps FROM ledger"))
            ledger: dict[str, list[Interval]] = {link_id: [] for link_id in records}
            for row in rows:
                ledger.setdefault(row.link_id, []).append((row.begin_us, row.end_us, row.delta_bps))
            transfers = (await connection.execute(text("SELECT * FROM transfers"))).all()
        promised: dict[str, list[Interval]] = {link_id: [] for link_id in ledger}
        for row in transfers:
            for begin, end, rate, path in row.segments:
                for link_id in path:
                    promised[link_id].append((begin, end, rate))
            if State(row.state) in LIVE and not row.paused and row.id not in carried:
                volume = sum(rate * (end - begin) for begin, end, rate, _ in row.segments) // (8 * US_PER_S)
                assert volume >= row.booked_bytes, f"{row.id} is booked {volume} of {row.booked_bytes} bytes"
                if row.duration_us is not None:
                    covered = held([(begin, end) for begin, end, _, _ in row.segments])
                    assert covered >= row.duration_us, f"{row.id} holds {covered} of {row.duration_us} us"
        for link_id, record in records.items():
            edges = {edge for begin, end, _ in ledger[link_id] + promised[link_id] for edge in (begin, end)}
            edges |= {at for at, _ in record.link.available} | {e for w in record.link.windows for e in (w.begin_us, w.end_us)}
            for instant in sorted({now, *(edge for edge in edges if edge > now)}):
                booked, capacity = level(ledger[link_id], instant), capacity_at(record.link, instant)
                assert booked == level(promised[link_id], instant), (link_id, instant)
                assert 0 <= booked <= capacity, (link_id, instant, booked, capacity)
                for calendars in memories:
                    assert calendars[link_id].free_at(instant) == capacity - booked, (link_id, instant)

    async def _current(self, replica: Replica, connection: AsyncConnection) -> dict[str, Calendar]:
        """The calendars of `replica`, brought up to date as a desk does it under the links' locks."""
        if replica.topology_version != await bookings.topology_version(connection):
            await replica.load_topology(connection)
        locked = await bookings.lock(connection, replica.records)
        await replica.catch_up(connection, locked.heads, self.clock.now_us)
        return replica.calendars


def level(intervals: Iterable[Interval], instant: int) -> int:
    return sum(rate for begin, end, rate in intervals if begin <= instant < end)


def held(intervals: list[tuple[int, int]]) -> int:
    """How long at least one of the intervals lasts."""
    edges = sorted({edge for interval in intervals for edge in interval})
    return sum(b - a for a, b in itertools.pairwise(edges) if any(begin <= a < end for begin, end in intervals))


def capacity_at(link: Link, instant: int) -> int:
    """In payload bit/s, from the definitions in docs: the last step that has begun, the lowest window, the payload's share."""
    steps = [bps for at, bps in link.available if at <= instant]
    raw = min([steps[-1] if steps else link.capacity_bps, *(w.bps for w in link.windows if w.begin_us <= instant < w.end_us)])
    return raw if link.mtu_bytes is None else raw * (link.mtu_bytes - 40) // (link.mtu_bytes + 38)


@contextlib.asynccontextmanager
async def running(url: str, clock: Clock, desks: int = 1) -> AsyncIterator[World]:
    made = World(url, clock, desks)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def until_someone_waits(w: World, sessions: int = 1) -> None:
    """Until that many sessions wait for a lock in PostgreSQL."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(10):
        while (await w.rows(query))[0].count < sessions:
            await asyncio.sleep(0.005)
