# SPDX-License-Identifier: Apache-2.0
"""The desk's queue: nobody who asks is forgotten, whatever stands beside him in it."""

import asyncio

from broker.core.network import Link
from broker.desk.admit import Admit
from broker.desk.links import CreateLinks
from broker.store.idempotency import Key
from tests.conftest import Clock
from tests.desk.world import GBIT, POLICY, world


async def test_a_repeated_key_waits_behind_a_network_change_and_is_answered(database_url: str, clock: Clock) -> None:
    async with world(database_url, clock) as w:
        await w.links(Link("L1", "A", "B", GBIT))
        key = Key("me", "k", b"same body")
        first, second = (Admit([w.ask()], "me", POLICY, key) for _ in range(2))
        commands = [first, second, CreateLinks([Link("L2", "B", "C", GBIT)], "test"), Admit([w.ask()], "me", POLICY)]
        answers = await asyncio.wait_for(asyncio.gather(*(w.desks[0].submit(command) for command in commands)), 10)
        assert answers[0][0].id == answers[1][0].id
        assert answers[0][0].id != answers[3][0].id


async def test_a_caller_that_goes_away_takes_nothing_back_and_harms_nobody(database_url: str, clock: Clock) -> None:
    async with world(database_url, clock) as w:
        await w.links(Link("L1", "A", "B", GBIT))
        gone, stays = w.ask(), w.ask()
        tasks = [asyncio.create_task(w.admit(ask)) for ask in (gone, stays)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        assert (await tasks[1])[0].id == stays.id
        assert {row.id for row in await w.rows("SELECT id FROM transfers")} == {gone.id, stays.id}
        await w.check()
