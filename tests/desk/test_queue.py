# SPDX-License-Identifier: Apache-2.0
"""The desk's queue: nobody who asks is forgotten, whatever stands beside him in it."""

import asyncio
import weakref
from typing import Any

from broker.core.network import Link
from broker.desk.admission.admit import Admit
from broker.desk.admission.ask import Ask
from broker.desk.network.links import CreateLinks
from broker.store.idempotency import Key
from tests.desk.world import GBIT, POLICY, World


async def test_a_repeated_key_waits_behind_a_network_change_and_is_answered(world: World) -> None:
    await world.links(Link("L1", "A", "B", GBIT))
    key = Key("me", "k", b"same body")
    first, second = (Admit([world.ask()], "me", POLICY, key) for _ in range(2))
    commands: list[Any] = [first, second, CreateLinks([Link("L2", "B", "C", GBIT)], "test"), Admit([world.ask()], "me", POLICY)]
    answers: list[Any] = await asyncio.wait_for(asyncio.gather(*(world.desks[0].submit(command) for command in commands)), 10)
    assert answers[0][0].id == answers[1][0].id
    assert answers[0][0].id != answers[3][0].id


async def test_a_caller_that_goes_away_takes_nothing_back_and_harms_nobody(world: World) -> None:
    await world.links(Link("L1", "A", "B", GBIT))
    gone, stays = world.ask(), world.ask()
    tasks = [asyncio.create_task(world.admit(ask)) for ask in (gone, stays)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    assert (await tasks[1])[0].id == stays.id
    assert {row.id for row in await world.rows("SELECT id FROM transfers")} == {gone.id, stays.id}
    await world.check()


class _Asks(list[Ask]):
    """A list that can be referred to weakly."""


async def test_nothing_of_the_last_batch_stays_in_memory(world: World) -> None:
    """Eight batches of 5,000 stayed for as long as nobody asked for anything: 100 MB."""
    await world.links(Link("L1", "A", "B", GBIT))
    large = [Admit(_Asks(world.ask(volume_bytes=1000) for _ in range(10)), "me", POLICY) for _ in range(2)]
    asked = [weakref.ref(command.asks) for command in large]
    answers = await asyncio.gather(*(world.desks[0].submit(command) for command in large))
    assert [len(answer) for answer in answers] == [10, 10]
    large.clear()
    await asyncio.sleep(0)
    assert [ref() for ref in asked] == [None, None]
