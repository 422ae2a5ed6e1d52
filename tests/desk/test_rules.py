# SPDX-License-Identifier: Apache-2.0
"""Histories that random search meets too seldom: cuts inside a slot or a lead, holds under an outage, deletion after replanning."""

from dataclasses import replace
from typing import Any

import pytest

from broker.core.network import Link
from broker.core.transfer import Action, State
from broker.core.units import US_PER_S
from broker.desk.admission.quote import Quote
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.modify import Pause, Resume
from broker.desk.lifecycle.transitions import Commit, End, Start
from broker.desk.network.links import ChangeLink, DeleteLink
from broker.desk.service.desk import Desk
from broker.desk.service.timers import run_timers
from broker.store.transfers import Patience
from tests.asks import FILE, make_change
from tests.desk.world import GBIT, POLICY, World
from tests.service import Clock

L1 = Link("L1", "A", "B", GBIT)


async def test_two_bookings_one_after_the_other_are_a_peak_and_not_a_sum(world: World, clock: Clock) -> None:
    await world.links(L1)
    begin = clock.now_us + 10 * US_PER_S
    half: dict[str, Any] = {"rate_max_bps": GBIT // 2}
    await world.admit(*(world.ask(62_500_000, not_before_us=begin + n * US_PER_S, **half) for n in range(2)))
    (third,) = await world.admit(world.ask(125_000_000, not_before_us=begin, deadline_us=begin + 2 * US_PER_S, **half))
    assert [tuple(s)[:3] for s in third.segments] == [(begin, begin + 2 * US_PER_S, GBIT // 2)]
    await world.check()


async def test_equal_rates_that_start_at_one_instant_add_up(world: World, clock: Clock) -> None:
    await world.links(L1)
    begin = clock.now_us + 10 * US_PER_S
    given: dict[str, Any] = {"rate_max_bps": GBIT // 2, "not_before_us": begin, "deadline_us": begin + US_PER_S}
    answers = await world.admit(*(world.ask(62_500_000, **given) for _ in range(3)))
    assert [isinstance(answer, Problem) for answer in answers] == [False, False, True]
    await world.check()


@pytest.mark.parametrize("seconds", [0.25, 1.5])
async def test_an_outage_inside_a_slot_takes_effect_at_once(world: World, seconds: float, clock: Clock) -> None:
    """A lost link cannot wait for the end of the slot: until then it would be over capacity."""
    await world.links(replace(L1, slot_us=US_PER_S, channel_bps=10**8))
    (booked,) = await world.admit(world.ask(500_000_000))
    clock.now_us = booked.start_us + int(seconds * US_PER_S)
    await world.do(ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=GBIT // 2), None, True, POLICY))
    await world.check()


async def test_all_carried_within_the_last_slot_is_no_failure(world: World, clock: Clock) -> None:
    await world.links(replace(L1, slot_us=10 * US_PER_S))
    (booked,) = await world.admit(world.ask(125_000_000))  # one second of a ten-second slot
    clock.now_us = booked.start_us + 5 * US_PER_S
    await world.do(ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=0), None, True, POLICY))
    (row,) = await world.rows("SELECT state FROM transfers")
    assert row.state == "RESERVED"  # and finishes by the clock
    await world.check()


async def test_a_hold_that_an_outage_takes_away_expires(world: World) -> None:
    await world.links(L1)
    (held,) = await world.admit(world.ask(hold=True))
    await world.do(ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=0), None, True, POLICY))
    (row,) = await world.rows("SELECT id, state, reason FROM transfers")
    assert (row.id, row.state, row.reason["code"]) == (held.id, "EXPIRED", "capacity_lost")
    await world.check()


async def test_a_link_can_go_after_its_bookings_were_replanned_elsewhere(world: World) -> None:
    """What the refusal to delete advises must work."""
    await world.links(L1, Link("L2", "A", "C", GBIT), Link("L3", "C", "B", GBIT))
    (moved,) = await world.admit(world.ask())
    with pytest.raises(Problem, match="breaks-promises"):
        await world.do(DeleteLink("L1", "me"))
    await world.do(ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=0, metric=9), None, True, POLICY))
    await world.do(DeleteLink("L1", "me"))
    (row,) = await world.rows("SELECT state, segments FROM transfers")
    assert row.state == "RESERVED" and row.segments[-1][3] == ["L2", "L3"], moved.id
    await world.check()


async def test_a_paused_transfer_does_not_keep_a_link(world: World) -> None:
    await world.links(L1, Link("L2", "B", "A", GBIT))
    (paused,) = await world.admit(world.ask())
    await world.do(Pause(paused.id, "me"))
    await world.do(DeleteLink("L1", "me"))
    with pytest.raises(Problem, match="no-path"):
        await world.do(Resume(paused.id, "me", None, POLICY))
    assert (await world.do(End(paused.id, "me", action=Action.CANCEL))).state is State.CANCELED


async def managed(w: World) -> str:
    """A managed transfer that has begun, 5 s long."""
    await w.links(L1)
    await w.nic("h1", "A", 2 * GBIT)
    await w.nic("h2", "B", 2 * GBIT)
    (booked,) = await w.admit(w.ask(625_000_000, "h1", "h2", payload=FILE))
    assert booked.mode == "managed"
    w.clock.now_us = booked.start_us + US_PER_S
    assert booked.start_us is not None
    await w.do(Start(booked.id, "agent h1", at_us=booked.start_us))
    return booked.id


async def test_a_pause_right_after_a_change_loses_no_volume(world: World, clock: Clock) -> None:
    """The change counts what the agents carry until they hear of it; a pause before then takes some of that back."""
    transfer_id = await managed(world)
    await world.do(make_change(transfer_id, "me", rate_max_bps=GBIT // 2))
    clock.advance(0.1)
    await world.do(Pause(transfer_id, "me"))
    await world.do(Resume(transfer_id, "me", None, POLICY))
    await world.check()


async def test_an_outage_right_after_a_change_loses_no_volume(world: World, clock: Clock) -> None:
    transfer_id = await managed(world)
    await world.do(make_change(transfer_id, "me", rate_max_bps=GBIT // 2))
    clock.advance(0.1)
    await world.do(ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=GBIT // 4), None, True, POLICY))
    await world.check()


async def test_a_managed_transfer_resumed_late_is_given_its_grace_again(world: World, clock: Clock) -> None:
    await world.links(L1)
    await world.nic("h1", "A", 2 * GBIT)
    await world.nic("h2", "B", 2 * GBIT)
    (booked,) = await world.admit(world.ask(625_000_000, "h1", "h2", payload=FILE))
    clock.now_us = booked.start_us + US_PER_S  # begun by the plan; the agents have not
    await world.do(Pause(booked.id, "me"))
    clock.advance(600)
    await world.do(Resume(booked.id, "me", None, POLICY))
    worker = Desk(world.databases[0], clock, POLICY)
    assert await run_timers(world.databases[0], worker, clock(), Patience()) == 0
    clock.advance(120)
    assert await run_timers(world.databases[0], worker, clock(), Patience()) == 1
    assert [row.state for row in await world.rows("SELECT state FROM transfers")] == ["EXPIRED"]


@pytest.mark.parametrize(("who", "renewed"), [("me", True), ("operator", False)])
async def test_only_its_owner_agrees_to_a_later_finish(world: World, who: str, renewed: bool, clock: Clock) -> None:
    await world.links(L1)
    (booked,) = await world.admit(world.ask())
    await world.do(Pause(booked.id, who))
    clock.advance(600)
    resumed = await world.do(Resume(booked.id, who, None, POLICY))
    assert resumed.finish_us > booked.promised_us
    assert resumed.promised_us == (resumed.finish_us if renewed else booked.promised_us)


async def test_a_change_while_paused_is_checked_too(world: World, clock: Clock) -> None:
    await world.links(L1)
    (booked,) = await world.admit(world.ask())
    await world.do(Pause(booked.id, "me"))
    for wrong, code in (
        ({"planner": "none"}, "unknown-planner"),
        ({"rate_min_bps": 2 * GBIT, "rate_max_bps": GBIT}, "invalid"),
        ({"deadline_us": clock.now_us - 1}, "invalid"),
    ):
        with pytest.raises(Problem, match=code):
            await world.do(make_change(booked.id, "me", **wrong))
    await world.do(make_change(booked.id, "me", rate_max_bps=GBIT // 4))
    resumed = await world.do(Resume(booked.id, "me", None, POLICY))
    assert resumed.segments[-1].rate_bps == GBIT // 4


async def test_commit_after_the_hold_ran_out_is_refused(world: World, clock: Clock) -> None:
    await world.links(L1)
    (held,) = await world.admit(world.ask(hold=True))
    clock.advance(301)
    with pytest.raises(Problem, match="conflict"):
        await world.do(Commit(held.id, "me"))


async def test_a_quote_books_nothing(world: World) -> None:
    await world.links(L1)
    before = await world.everything()
    quotes = await world.do(Quote(world.ask(), ("vbls", "fbls", "none"), POLICY))
    assert [isinstance(answer, Problem) for answer in quotes.values()] == [False, False, True]
    assert await world.everything() == before
    await world.check()
