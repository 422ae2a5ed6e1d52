# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL goes away in the middle of a transaction: the caller hears so, and the replica in memory are what the tables say."""

import asyncio
from dataclasses import replace
from itertools import product

import pytest

from broker.core.network import Link
from broker.core.transfer import Action
from broker.desk.lifecycle.transitions import End
from broker.desk.network.links import ChangeLink
from broker.store import bookings
from broker.store.idempotency import Key
from broker.store.session import DatabaseAway
from broker.store.transfers import Transfer
from tests.desk.faults import AMONG_THE_COPIES, FAULTS, fault
from tests.desk.world import GBIT, POLICY, World, until_someone_waits

L1 = Link("L1", "A", "B", GBIT)


# A few rows go in one statement, many are copied.
@pytest.mark.parametrize(("kind", "many"), [*product(FAULTS, [1, 40]), (AMONG_THE_COPIES, 40)])
async def test_a_lost_transaction_is_undone_in_memory(world: World, kind: str, many: int) -> None:
    await world.links(L1)
    (first,) = await world.admit(world.ask())
    with fault(kind):
        lost = asyncio.gather(
            world.admit(*(world.ask(1_000_000) for _ in range(many))),
            world.do(End(first.id, "me", action=Action.CANCEL)),
            return_exceptions=True,
        )
        assert [type(answer) for answer in await lost] == [DatabaseAway, DatabaseAway]
    there = await world.rows("SELECT state FROM transfers ORDER BY id")
    assert len(there) == (1 + many if kind == "after commit" else 1)
    await world.check()
    assert isinstance((await world.admit(world.ask()))[0], Transfer)
    await world.check()


@pytest.mark.parametrize("kind", FAULTS)
async def test_a_key_tells_whether_the_lost_answer_was_a_booking(world: World, kind: str) -> None:
    await world.links(L1)
    key = Key("me", "k", b"body")
    with fault(kind), pytest.raises(DatabaseAway):
        await world.admit(world.ask(), key=key)
    (again,) = await world.admit(world.ask(), key=key)
    assert [row.id for row in await world.rows("SELECT id FROM transfers")] == [again.id]


@pytest.mark.parametrize("kind", ["killed while reading", "before commit", "after commit"])
async def test_a_lost_change_of_the_network(world: World, kind: str) -> None:
    await world.links(L1)
    await world.admit(world.ask())
    change = ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=GBIT // 2), None, True, POLICY)
    with fault(kind), pytest.raises(DatabaseAway):
        await world.do(change)
    (link,) = await world.rows("SELECT capacity_bps FROM links")
    assert link.capacity_bps == (GBIT // 2 if kind == "after commit" else GBIT)
    await world.check()
    await world.admit(world.ask())
    await world.check()


async def test_a_session_that_is_ended_while_it_waits_for_a_lock(world: World) -> None:
    await world.links(L1)
    async with world.look.transaction() as connection:
        await bookings.lock(connection, ["L1"])
        waiting = asyncio.create_task(world.admit(world.ask()))
        await until_someone_waits(world)
        await world.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        with pytest.raises(DatabaseAway):
            await waiting
    assert isinstance((await world.admit(world.ask()))[0], Transfer)
    await world.check()


async def test_what_cannot_be_stored_fails_alone(world: World) -> None:
    """One poisoned request of a batch takes no other with it."""
    await world.links(L1)
    asks = [world.ask(), world.ask(label="\0"), world.ask()]
    answers = await asyncio.gather(*(world.admit(ask) for ask in asks), return_exceptions=True)
    assert [isinstance(answer, Exception) for answer in answers] == [False, True, False]
    assert answers[1].code == "invalid"
    await world.check()
