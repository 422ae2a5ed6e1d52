# SPDX-License-Identifier: Apache-2.0
"""Capacity goes, on one link or on several at once: who loses the place, what becomes of them, and who is told what."""

import random
from dataclasses import replace
from typing import Any

import pytest

from broker.core.network import Link
from broker.core.request import Options
from broker.core.segments import Segment
from broker.core.transfer import Action, Mode, State
from broker.core.units import US_PER_S
from broker.desk.ground.command import Preview
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.modify import Pause
from broker.desk.lifecycle.transitions import End, Start
from broker.desk.network.displacement import Outcome
from broker.desk.network.links import AddWindow, ChangeLink, DeleteLink
from broker.desk.network.topology import PutTopology, TopologyChange
from broker.store import transfers
from broker.store.bookings import WindowRecord
from broker.store.transfers import Transfer
from tests.asks import FILE
from tests.desk.world import GBIT, POLICY, World, capacity_at, running
from tests.service import START_US, Clock

MBIT = 10**6


def at(seconds: float) -> int:
    return START_US + int(seconds * US_PER_S)


async def all_transfers(w: World) -> dict[str, Transfer]:
    async with w.look.transaction() as connection:
        ids = [row.id for row in (await w.rows("SELECT id FROM transfers"))]
        return await transfers.get_many(connection, ids)


def misfits(found: list[Transfer], links: dict[str, Link], now: int) -> set[str]:
    """Who finds no seat: at every instant at which anything changes, sums over lists, the most important first."""
    seated: list[Segment] = []
    without: set[str] = set()
    live = [t for t in found if t.live]
    for t in sorted(live, key=lambda t: (-t.spec.priority, t.spec.best_effort, t.created_us, t.id)):
        ahead = [s for s in t.segments if s.end_us > now]
        trial = seated + ahead
        instants = (
            {now}
            | {e for s in trial for e in (s.begin_us, s.end_us)}
            | {e for k in links.values() for w in k.windows for e in w[:2]}
        )
        # Of links that keep all their capacity everybody keeps the seat, so these are no constraint.
        fits = all(
            sum(s.rate_bps for s in trial if link_id in s.path and s.begin_us <= instant < s.end_us) <= capacity_at(link, instant)
            for instant in instants
            if instant >= now
            for link_id, link in links.items()
            if any(link_id in s.path for s in ahead)
        )
        if fits:
            seated = trial
        else:
            without.add(t.id)
    return without


def mesh(dice: random.Random) -> list[Link]:
    """Five nodes, most of the links between them."""
    pairs = [(a, b) for a in "ABCDE" for b in "ABCDE" if a != b]
    return [Link(f"{a}{b}", a, b, dice.choice((400, 600, 1000)) * MBIT) for a, b in pairs if dice.random() < 0.75]


def judge(outcome: Outcome, before: Transfer, now: Transfer) -> None:
    """Every promise is kept, or withdrawn with the reason."""
    assert before.promised_us is not None
    assert outcome.state == now.state and outcome.promised_us == before.promised_us == now.promised_us
    assert outcome.reason == now.reason and outcome.finish_before_us == before.finish_us
    if now.live:
        assert outcome.finish_us == now.finish_us == max(s.end_us for s in now.segments)
        assert outcome.broken == (now.finish_us > before.promised_us)
    else:
        assert outcome.finish_us is None and outcome.broken and now.state is State.FAILED
    if outcome.broken:
        assert now.reason is not None and now.reason.limited_by == outcome.link_id
        assert now.reason.code in ("capacity_lowered", "promise_broken", "capacity_lost")
        assert outcome.link_id in now.reason.detail
    else:
        assert now.reason is None and (now.spec.deadline_us is None or now.finish_us <= now.spec.deadline_us)


@pytest.mark.parametrize("seed", range(8))
async def test_whoever_finds_no_seat_is_planned_anew_and_nobody_else(seed: int, database_url: str, clock: Clock) -> None:
    dice = random.Random(seed)
    links = mesh(dice)
    async with running(database_url, clock, desks=2) as w:
        await w.links(*links)
        for _ in range(70):
            source, destination = dice.sample("ABCDE", 2)
            begin = at(dice.random() * 20)
            await w.admit(
                w.ask(
                    dice.randrange(1, 400_000_000), source, destination, not_before_us=begin, priority=dice.randrange(3),
                    deadline_us=dice.choice((None, begin + dice.randrange(1, 20) * US_PER_S)), best_effort=dice.random() < 0.3,
                    rate_max_bps=dice.choice((None, 100 * MBIT, 300 * MBIT)),
                    options=dice.choice((Options(), Options(split=True), Options(paths=2))),
                ),
                desk=dice.randrange(2),
            )  # fmt: skip
        clock.advance(dice.random() * 15)
        before = await all_transfers(w)
        changed = [replace(link, capacity_bps=link.capacity_bps * dice.randrange(5) // 4) for link in links if dice.random() < 0.4]
        lost = {link.id for link in dice.sample(links, 2)}
        wanted = {link.id: link for link in [*links, *changed] if link.id not in lost}
        command = PutTopology(list(wanted.values()), "me", replan=True, policy=POLICY)
        foreseen: TopologyChange = await w.do(Preview(command), desk=0)
        done: TopologyChange = await w.do(command, desk=1)
        assert [o.id for o in done.outcomes] == [o.id for o in foreseen.outcomes]
        now_us = clock.now_us
        after = await all_transfers(w)
        # Only links that are short now displace anybody; the booked sum of a link tells which these are.
        whole = {
            link.id: replace(wanted.get(link.id, link), capacity_bps=wanted[link.id].capacity_bps if link.id in wanted else 0)
            for link in links
        }
        assert {o.id for o in done.outcomes} == misfits(list(before.values()), whole, now_us)
        for outcome in done.outcomes:
            judge(outcome, before[outcome.id], after[outcome.id])
        replanned = {o.id for o in done.outcomes}
        assert all(after[name] == t for name, t in before.items() if name not in replanned)
        order = [(-o.priority, before[o.id].spec.best_effort, before[o.id].created_us) for o in done.outcomes]
        assert order == sorted(order)
        await w.check()
        assert not await all_live_on(w, lost)
    print(f"seed {seed}: {len(done.outcomes)} planned anew, {sum(o.broken for o in done.outcomes)} promises broken")


async def all_live_on(w: World, links: set[str]) -> list[str]:
    found = await all_transfers(w)
    return [t.id for t in found.values() if t.live and any(s.end_us > w.clock.now_us and links & set(s.path) for s in t.segments)]


TRIANGLE = (Link("AB", "A", "B", GBIT), Link("AC", "A", "C", GBIT), Link("CB", "C", "B", GBIT))


def outage(link_id: str, begin: float, end: float) -> WindowRecord:
    return WindowRecord("w", link_id, at(begin), at(end), 0, "outage", None)


async def test_a_promise_that_another_path_keeps_is_not_broken(world: World) -> None:
    await world.links(*TRIANGLE)
    (t,) = await world.admit(world.ask(125_000_000, not_before_us=at(10)))
    assert t.segments == (Segment(at(10), at(11), GBIT, ("AB",)),)
    done = await world.do(AddWindow(outage("AB", 0, 100), "me", True, POLICY))
    (outcome,) = done.outcomes
    assert (outcome.broken, outcome.finish_us, outcome.reason) == (False, at(11), None)
    assert (await all_transfers(world))[t.id].segments == (Segment(at(10), at(11), GBIT, ("AC", "CB")),)
    await world.check()


async def test_guaranteed_transfers_keep_their_seats_before_best_effort(world: World) -> None:
    await world.links(TRIANGLE[0])
    half: dict[str, Any] = {"rate_max_bps": GBIT // 2, "not_before_us": at(10)}
    (older,) = await world.admit(world.ask(125_000_000, best_effort=True, **half))
    (younger,) = await world.admit(world.ask(125_000_000, **half))
    (important,) = await world.admit(world.ask(125_000_000, best_effort=True, not_before_us=at(10), priority=1))
    change = ChangeLink("AB", "me", lambda link: replace(link, capacity_bps=GBIT // 2), None, True, POLICY)
    done = await world.do(change)
    assert [o.id for o in done.outcomes] == [important.id, older.id]
    assert (await all_transfers(world))[younger.id].segments == younger.segments
    await world.check()


async def test_a_pinned_path_that_is_gone_is_lost_with_the_reason(world: World) -> None:
    await world.links(*TRIANGLE)
    (pinned,) = await world.admit(world.ask(not_before_us=at(10), options=Options(path=("AC", "CB"))))
    (free,) = await world.admit(world.ask(not_before_us=at(10), source="A", destination="C"))
    said = await refused(world, DeleteLink("AC", "me"))
    assert said.code == "breaks-promises" and [b["id"] for b in said.more["broken"]] == [pinned.id, free.id]
    done = await world.do(DeleteLink("AC", "me", replan=True))
    assert [(o.id, o.broken, o.finish_us) for o in done.outcomes] == [(pinned.id, True, None), (free.id, True, None)]
    for t in (await all_transfers(world)).values():
        assert t.state is State.FAILED and t.reason is not None and t.reason.detail.startswith("link AC was deleted")
    await world.check()


async def refused(w: World, command: Any) -> Problem:
    before = await w.everything()
    with pytest.raises(Problem) as raised:
        await w.do(command)
    assert await w.everything() == before
    return raised.value


@pytest.mark.parametrize("begin", [30, 0])
async def test_running_agents_keep_what_they_cannot_hear_of_in_time(world: World, begin: int, clock: Clock) -> None:
    """An outage later on: the booking of the next half second stays. One that has begun: it goes at once."""
    await world.links(TRIANGLE[0])
    await world.nic("h1", "A", GBIT)
    await world.nic("h2", "B", GBIT)
    ask = world.ask(12_500_000_000, "h1", "h2", mode=Mode.MANAGED, payload=FILE, rate_max_bps=GBIT // 2)
    (t,) = await world.admit(ask)
    assert isinstance(t, Transfer), t
    clock.advance(5)
    await world.do(Start(t.id, "me"))
    now = clock.now_us
    (outcome,) = (await world.do(AddWindow(outage("AB", begin, 60), "me", True, POLICY))).outcomes
    after = (await all_transfers(world))[t.id]
    held = [s for s in after.segments if s.begin_us < now + 400_000 < s.end_us]
    assert bool(held) == (begin > 0) and outcome.broken
    await world.check()


async def test_what_ended_or_was_paused_gives_back_the_rest_of_its_slot(world: World, clock: Clock) -> None:
    await world.links(replace(TRIANGLE[0], slot_us=10 * US_PER_S), *TRIANGLE[1:])
    third: dict[str, Any] = {"rate_max_bps": GBIT // 3, "options": Options(path=("AB",))}
    (ended,) = await world.admit(world.ask(10**9, **third))
    (paused,) = await world.admit(world.ask(10**9, **third))
    clock.advance(20)
    await world.do(End(ended.id, "me", action=Action.CANCEL))
    await world.do(Pause(paused.id, "me", None, POLICY))
    change = ChangeLink("AB", "me", lambda link: replace(link, capacity_bps=0), None, False, POLICY)
    done = await world.do(change)
    assert done.outcomes == []
    await world.check()
    found = await all_transfers(world)
    assert found[paused.id].paused and found[ended.id].state is State.CANCELED


@pytest.mark.parametrize("seed", range(4))
async def test_a_holding_time_goes_on_where_it_was_cut(world: World, seed: int, clock: Clock) -> None:
    """Class 2: what was not held yet is held later, or elsewhere."""
    dice = random.Random(seed)
    await world.links(*TRIANGLE)
    (t,) = await world.admit(world.ask(None, rate_min_bps=GBIT // 2, duration_us=30 * US_PER_S))
    assert isinstance(t, Transfer), t
    clock.advance(dice.random() * 20)
    command = DeleteLink("AB", "me", replan=True) if seed % 2 else AddWindow(outage("AB", 0, 500), "me", True, POLICY)
    (outcome,) = (await world.do(command)).outcomes
    after = (await all_transfers(world))[t.id]
    assert after.live and sum(s.end_us - s.begin_us for s in after.segments) >= 30 * US_PER_S
    assert after.segments[-1].path == ("AC", "CB")
    assert outcome.broken == (after.finish_us > t.finish_us)
    await world.check()
