# SPDX-License-Identifier: Apache-2.0
"""Every link that a plan may book is locked before it is made, whatever moves the choice of paths; and nothing else is planned on."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from broker.core.network import Link
from broker.core.request import Options
from broker.core.units import US_PER_S
from broker.desk.admission.admit import Admit
from broker.desk.admission.quote import Quote
from broker.desk.ground.batch import Batch, NotLocked
from broker.desk.ground.replica import Replica
from broker.desk.network.links import AddWindow, ChangeLink
from broker.store.bookings import WindowRecord
from broker.store.transfers import Transfer
from tests.asks import make_change
from tests.desk.world import GBIT, POLICY, World
from tests.service import Clock

DIRECT, OUT, BACK = Link("L1", "A", "B", GBIT), Link("L2", "A", "C", GBIT), Link("L3", "C", "B", GBIT)
ONE_PATH = Options(paths=1)


async def window(w: World, begin_us: int, end_us: int) -> None:
    await w.do(AddWindow(WindowRecord("w1", "L1", begin_us, end_us, 0, "outage", None), "me", True, POLICY))


@pytest.mark.parametrize("early_us", [0, 1])
async def test_a_window_that_begins_while_the_desk_locks(world: World, early_us: int, clock: Clock) -> None:
    """Locked with the direct link up, planned a microsecond later with it down: the desk begins anew and takes the way around."""
    await world.links(DIRECT, OUT, BACK)
    begin = clock.now_us + 100 * US_PER_S
    await window(world, begin, begin + 3600 * US_PER_S)
    clock.now_us = begin - early_us - 1  # the clock moves on with every reading, and the desk reads it before it locks
    (booked,) = await world.admit(world.ask(deadline_us=begin + 60 * US_PER_S, options=ONE_PATH))
    assert isinstance(booked, Transfer)
    assert {s.path for s in booked.segments} == {("L2", "L3")} and booked.start_us >= begin
    await world.check()


async def test_a_link_that_is_not_locked_is_not_planned_on(world: World, clock: Clock) -> None:
    await world.links(DIRECT, OUT, BACK)
    (first,) = await world.admit(world.ask(options=ONE_PATH))
    assert isinstance(first, Transfer)
    batch = Batch(world.desks[0].replica, {"L2": 0, "L3": 0}, {}, clock())
    with pytest.raises(NotLocked):
        Admit([world.ask(options=ONE_PATH)], "me", POLICY).decide(batch)


@pytest.mark.desks(2)
async def test_a_change_of_path_locks_the_new_one(world: World, clock: Clock) -> None:
    """On a desk that has never seen the other path's bookings, while another desk books there."""
    await world.links(DIRECT, OUT, BACK)
    begin = clock.now_us + 10 * US_PER_S
    window_: dict[str, Any] = {"not_before_us": begin, "deadline_us": begin + 4 * US_PER_S}
    (moving,) = await world.admit(world.ask(250_000_000, options=Options(path=("L1",)), **window_))
    around = Options(path=("L2", "L3"))
    answers: list[Any] = await asyncio.gather(
        world.do(make_change(moving.id, "me", path=("L2", "L3")), 0),
        *(world.admit(world.ask(125_000_000, options=around, **window_), desk=1) for _ in range(4)),
        return_exceptions=True,
    )
    assert sum(isinstance(a, Transfer) for a in (answers[0], *(a[0] for a in answers[1:]))) in (3, 4)
    await world.check()


@pytest.mark.desks(2)
async def test_every_path_of_a_split_transfer_is_locked(world: World) -> None:
    await world.links(DIRECT, OUT, BACK)
    asks = [[world.ask(250_000_000, options=Options(split=True)) for _ in range(3)] for _ in range(2)]
    await asyncio.gather(*(world.admit(*some, desk=desk) for desk, some in enumerate(asks)))
    rows = await world.rows("SELECT segments FROM transfers")
    assert len(rows) == 6 and all({tuple(s[3]) for s in row.segments} == {("L1",), ("L2", "L3")} for row in rows)
    await world.check()


THIN = Link("L1", "A", "B", GBIT // 10)


async def test_planners_of_fixed_rates_go_around_thin_links(world: World, clock: Clock) -> None:
    await world.links(THIN, OUT, BACK)
    ask = world.ask(rate_max_bps=GBIT // 2, options=ONE_PATH, deadline_us=clock.now_us + 20 * US_PER_S)
    answers = await world.do(Quote(ask, ["vbls", "fbls", "spaghetti", "optimal"], POLICY))
    paths = {name: answer.segments[0].path for name, answer in answers.items()}
    assert paths["vbls"] == paths["spaghetti"] == ("L1",) and paths["fbls"] == ("L2", "L3")
    await world.check()


async def test_a_way_that_nobody_foresaw_is_locked_in_the_second_attempt(world: World, clock: Clock) -> None:
    await world.links(THIN, OUT, BACK)
    (thin,) = await world.admit(world.ask(options=ONE_PATH))
    assert isinstance(thin, Transfer)
    changed = await world.do(make_change(thin.id, "me", planner="fbls", rate_max_bps=GBIT // 2))
    assert {s.path for s in changed.segments if s.end_us > clock.now_us} == {("L2", "L3")}
    await world.check()


@pytest.mark.desks(2)
async def test_a_network_is_read_under_no_locks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link with 100,000 steps takes half a second to read: meanwhile another desk admits on the links that this one wants."""
    await world.links(DIRECT)
    await world.book(world.ask(), desk=1)
    await world.do(
        ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=2 * GBIT), None, False, POLICY)
    )  # by the first desk
    reads, may_read = asyncio.Event(), asyncio.Event()
    load = Replica.load_topology

    async def slowly(replica: Replica, connection: Any) -> None:
        reads.set()
        await may_read.wait()
        await load(replica, connection)

    monkeypatch.setattr(Replica, "load_topology", slowly)
    late = asyncio.create_task(world.book(world.ask(), desk=1))
    try:
        await asyncio.wait_for(reads.wait(), 10)
        await asyncio.wait_for(world.book(world.ask(), desk=0), 10)
    finally:
        may_read.set()
        await late
    await world.check()
