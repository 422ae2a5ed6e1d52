# SPDX-License-Identifier: Apache-2.0
"""Several desks on one database: what one does between two steps of another must never cost capacity, a change or an answer."""

import asyncio
import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from broker.core.network import Link
from broker.core.transfer import Action
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.lifecycle.modify import Change, Pause, Resume
from broker.desk.lifecycle.transitions import End
from broker.desk.network.links import ChangeLink, CreateLinks
from broker.store import bookings
from broker.store.bookings import Head, Locked
from broker.store.idempotency import Key
from broker.store.transfers import Transfer
from tests.asks import make_change
from tests.desk.world import GBIT, POLICY, World, until_someone_waits
from tests.service import Clock

L1 = Link("L1", "A", "B", GBIT)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.desks(2)
async def test_interleaved_desks_never_overbook(world: World, seed: int, clock: Clock) -> None:
    print(f"seed {seed}")
    dice = random.Random(seed)
    # Two ways from A to C, so that desks lock several links at once and in overlapping sets.
    await world.links(L1, Link("L2", "B", "C", GBIT // 2), Link("L3", "C", "D", GBIT))
    booked: list[str] = []

    async def client(desk: int) -> None:
        command: End | Change | Pause | Resume
        for _ in range(25):
            await asyncio.sleep(dice.random() / 500)
            match dice.choice(("admit", "admit", "admit", "cancel", "change", "pause", "resume")):
                case "admit":
                    source, target = dice.choice((("A", "B"), ("A", "C"), ("B", "C"), ("B", "D"), ("C", "D")))
                    deadline = clock.now_us + dice.randrange(1, 60) * 1_000_000
                    ask = world.ask(dice.randrange(1, 2 * 10**9), source, target, deadline_us=dice.choice((None, deadline)))
                    (answer,) = await world.admit(ask, desk=desk, key=Key("me", ask.id, b""))
                    booked.extend([answer.id] if isinstance(answer, Transfer) else [])
                    continue
                case "cancel":
                    command = End(dice.choice(booked or ["none"]), "me", action=Action.CANCEL)
                case "change":
                    command = make_change(dice.choice(booked or ["none"]), "me", volume_bytes=dice.randrange(1, 10**9))
                case "pause":
                    command = Pause(dice.choice(booked or ["none"]), "me")
                case _:
                    command = Resume(dice.choice(booked or ["none"]), "me", None, POLICY)
            try:
                await world.do(command, desk)
            except Problem as problem:
                assert problem.code in ("conflict", "not-found", "infeasible", "invalid"), problem

    await asyncio.gather(*(client(n % 2) for n in range(6)))
    await world.check()
    assert len(booked) > 20
    assert {row.id for row in await world.rows("SELECT id FROM transfers")} == set(booked)
    versions = await world.rows("SELECT link_id, count(*), max(version), count(DISTINCT version) FROM ledger GROUP BY link_id")
    assert all(row[1] == row[2] == row[3] for row in versions), versions


@pytest.mark.desks(2)
async def test_a_plan_on_an_old_version_is_stopped_by_the_ledgers_key(
    world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A desk that does not lock and does not see the other's booking wants the same room at the same version."""
    await world.links(L1)
    for desk in (0, 1):
        await world.desks[desk].warm_up()
    real = bookings.lock

    async def without_lock(connection: Any, ids: Any) -> Locked:
        monkeypatch.setattr(bookings, "lock", real)
        heads = {row.id: Head(row.version, row.revision) for row in await world.rows("SELECT * FROM links")}
        stale = Locked(await bookings.topology_version(connection), heads)
        assert isinstance((await world.admit(world.ask(), desk=0))[0], Transfer)  # all of the next second, committed
        return stale

    monkeypatch.setattr(bookings, "lock", without_lock)
    (second,) = await world.admit(world.ask(deadline_us=clock.now_us + 1_500_000), desk=1)
    assert isinstance(second, Problem) and second.code == "infeasible", second
    assert len(await world.rows("SELECT * FROM transfers")) == 1
    await world.check()


@pytest.mark.desks(2)
async def test_loading_while_another_desk_commits_counts_nothing_twice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """warm_up takes no locks: between its reading of the heads and of the ledger, another process may append."""
    await world.links(L1)
    (held,) = await world.admit(world.ask())
    real = bookings.read_since

    async def after_a_cancellation(connection: Any, *given: Any) -> Any:
        monkeypatch.setattr(bookings, "read_since", real)
        await world.do(End(held.id, "me", action=Action.CANCEL), desk=0)
        return await real(connection, *given)

    monkeypatch.setattr(bookings, "read_since", after_a_cancellation)
    await world.desks[1].warm_up()
    await world.check()  # the second desk must not believe that there are 2 Gbit/s


@pytest.mark.desks(2)
async def test_a_link_deleted_while_a_desk_waits_for_its_lock(world: World, clock: Clock) -> None:
    await world.links(L1, Link("L2", "B", "C", GBIT))
    await world.desks[1].warm_up()
    async with world.look.transaction() as connection:
        await bookings.lock(connection, ["L1"])
        waiting = asyncio.create_task(world.admit(world.ask(destination="C"), desk=1))
        await until_someone_waits(world)
        await bookings.delete_links(connection, ["L1"], clock())
    (answer,) = await waiting
    assert isinstance(answer, Problem) and answer.code in ("no-path", "unknown-node"), answer


@pytest.mark.desks(2)
async def test_two_changes_of_one_link_do_not_lose_each_other(world: World) -> None:
    await world.links(L1)
    await world.desks[1].warm_up()
    first = ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=GBIT // 2))
    second = ChangeLink("L1", "me", lambda link: replace(link, metric=7))
    async with world.look.transaction() as connection:
        await bookings.lock(connection, ["L1"])
        tasks = [asyncio.create_task(world.do(command, desk)) for desk, command in enumerate((first, second))]
        await until_someone_waits(world, 2)
    await asyncio.gather(*tasks)
    (link,) = await world.rows("SELECT capacity_bps, metric, revision FROM links")
    assert tuple(link) == (GBIT // 2, 7, 3)


@pytest.mark.desks(2)
async def test_if_match_holds_against_another_desk(world: World) -> None:
    await world.links(L1)
    await world.desks[1].warm_up()
    commands = [ChangeLink("L1", "me", partial(replace, metric=metric), revision=1) for metric in (5, 6)]
    async with world.look.transaction() as connection:
        await bookings.lock(connection, ["L1"])
        tasks = [asyncio.create_task(world.do(command, desk)) for desk, command in enumerate(commands)]
        await until_someone_waits(world, 2)
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [a.code for a in answers if isinstance(a, Problem)] == ["precondition-failed"], answers


@pytest.mark.desks(2)
async def test_two_desks_create_one_link_id_once(world: World, clock: Clock) -> None:
    given = [replace(L1, capacity_bps=rate, available=((clock.now_us, rate // 2),)) for rate in (GBIT, 2 * GBIT)]
    async with world.look.transaction() as connection:
        await connection.execute(text("LOCK TABLE links IN SHARE ROW EXCLUSIVE MODE"))  # both have looked, neither has written
        tasks = [asyncio.create_task(world.do(CreateLinks([link], "me"), desk)) for desk, link in enumerate(given)]
        await until_someone_waits(world, 2)
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [getattr(a, "code", a) for a in answers if isinstance(a, Exception)] == ["exists"], answers
    (link,) = await world.rows("SELECT capacity_bps, bps FROM links JOIN link_steps ON link_id = id")
    assert link.capacity_bps == 2 * link.bps


@pytest.mark.desks(2)
async def test_a_recreated_link_goes_on_with_its_ledger(world: World, clock: Clock) -> None:
    """Versions never start again, and a desk that slept through deletion and return has the right replica."""
    await world.links(L1)
    (gone,) = await world.admit(world.ask(), desk=1)
    await world.do(End(gone.id, "me", action=Action.CANCEL))
    async with world.look.transaction() as connection:
        await bookings.delete_links(connection, ["L1"], clock())
    await world.links(replace(L1, capacity_bps=3 * GBIT))
    (again,) = await world.admit(world.ask(375_000_000), desk=1)
    assert again.finish_us - again.start_us == 1_000_000
    assert [row.version for row in await world.rows("SELECT version FROM ledger ORDER BY version")] == [1, 2, 3]
    await world.check()


async def test_a_fresh_copy_of_the_books_equals_an_old_one(world: World, clock: Clock) -> None:
    await world.links(L1)
    for _ in range(200):  # beyond the size at which calendars are rebuilt rather than extended
        await world.admit(world.ask(1_000_000))
    fresh = Replica()
    async with world.look.transaction() as connection:
        await fresh.load_topology(connection)
        await fresh.catch_up(connection, (await bookings.lock(connection, ["L1"])).heads, clock.now_us)
    old = world.desks[0].replica.calendars["L1"]
    old.forget_before(clock.now_us)
    fresh.calendars["L1"].forget_before(clock.now_us)
    assert fresh.calendars["L1"].steps() == old.steps()
