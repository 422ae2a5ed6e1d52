# SPDX-License-Identifier: Apache-2.0
"""What an end gives back goes to the successor first; what makes a predecessor later makes the successor later, or frees it."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from broker.core.network import Link
from broker.core.request import Options
from broker.core.transfer import Action, State
from broker.core.transfer_spec import OnOverrun, SignalKind, StartSignal
from broker.core.units import US_PER_S
from broker.desk.admission.admit import Admit
from broker.desk.admission.preemption import AdmitByPreemption
from broker.desk.admission.quote import Quote
from broker.desk.ground.command import Preview
from broker.desk.ground.problems import Problem
from broker.desk.ground.start_signals import WORD_US
from broker.desk.lifecycle.modify import Pause, Rebook, Resume
from broker.desk.lifecycle.transitions import Commit, End, Start, Unchain
from broker.desk.network.links import AddWindow
from broker.desk.rebalance.pull_forward import PullForward
from broker.store import bookings
from broker.store.bookings import WindowRecord
from broker.store.transfers import Transfer
from tests.asks import make_change
from tests.desk.chain import L1, SECOND, booked, chain_of, end, network, now, reads, seconds, sent
from tests.desk.world import GBIT, POLICY, World
from tests.service import START_US, Clock

ENDS = (Action.FINISH, Action.FAIL, Action.CANCEL)
CLOCK, BROKER = StartSignal(SignalKind.CLOCK), StartSignal(SignalKind.BROKER)
FALLBACK = StartSignal(on_overrun=OnOverrun.FALLBACK)


async def events(w: World, transfer: Transfer) -> list[str]:
    rows = await w.rows("SELECT action FROM events WHERE subject = :id ORDER BY seq", id=transfer.id)
    return [row.action.removeprefix("transfer.") for row in rows]


# -- admission ------------------------------------------------------------------------------------------------------------------------


async def test_a_successor_begins_where_its_predecessor_is_to_finish(world: World, clock: Clock) -> None:
    # Room enough for both at once: only the wish to follow keeps them apart.
    await network(world, Link("L1", "A", "B", 10 * GBIT))
    first, second, third = await chain_of(world, 3, rate_max_bps=GBIT)
    assert second.start_us == first.finish_us and third.start_us == second.finish_us
    assert second.spec.signal == StartSignal()
    assert second.spec.not_before_us < second.start_us, "a caller's own limit is kept apart, for early starts"
    asked = clock.now_us + 60 * US_PER_S
    (late,) = await booked(world, sent(world, after=third.id, not_before_us=asked))
    assert (late.start_us, late.spec.not_before_us) == (asked, asked)
    (by_clock,) = await booked(world, sent(world, rate_max_bps=GBIT, after=third.id, signal=CLOCK))
    assert seconds(world, by_clock.start_us) < 2, "the clock waits for nobody"
    await world.check()


async def test_who_cannot_be_waited_for(world: World, clock: Clock) -> None:
    await network(world)
    reserved, first, paused, over = await booked(world, world.ask(SECOND), sent(world), sent(world), sent(world, 1))
    await world.do(Pause(paused.id, "me", None, POLICY))
    await end(world, over)
    soon = clock.now_us + 5 * US_PER_S
    for more, code, field, word in (
        ({"after": "tr_none"}, "invalid", "after", "no transfer"),
        ({"after": reserved.id}, "unsupported", "after", "reserve"),
        ({"after": paused.id}, "conflict", "after", "paused"),
        ({"after": over.id}, "conflict", "after", "FINISHED"),
        ({"after": first.id, "deadline_us": soon}, "invalid", "deadline", first.id),
        ({"signal": CLOCK}, "invalid", "signal", "after"),
    ):
        (refused,) = await world.admit(sent(world, **more))
        assert isinstance(refused, Problem) and refused.code == code, refused
        assert [e["field"] for e in refused.more["errors"]] == [field] and word in refused.detail
        with pytest.raises(Problem) as quoted:
            await world.do(Quote(sent(world, **more), ["vbls"], POLICY))
        assert (quoted.value.code, quoted.value.detail) == (code, refused.detail)
    (refused,) = await world.admit(world.ask(SECOND, after=first.id))
    assert isinstance(refused, Problem) and refused.more["errors"][0]["field"] == "after"
    until = clock.now_us + 60 * US_PER_S
    (refused,) = await world.admit(sent(world, 100, after=first.id, deadline_us=until))
    assert isinstance(refused, Problem) and refused.code == "infeasible" and refused.more["counter_offers"]
    offered = next(offer for offer in refused.more["counter_offers"] if offer["kind"] == "largest_volume")
    (taken,) = await booked(world, sent(world, offered["volume_bytes"] / SECOND, after=first.id, deadline_us=until))
    assert taken.start_us >= first.finish_us
    await world.check()


async def test_a_batch_refers_to_its_own(world: World, clock: Clock) -> None:
    await network(world)
    asks = [sent(world), sent(world, deadline_us=clock.now_us + US_PER_S * 2), sent(world)]
    asks.append(sent(world, after=asks[0].id))
    asks.append(sent(world, after=asks[1].id))
    made = await world.admit(*asks)
    assert isinstance(made[1], Problem) and isinstance(made[4], Problem)
    assert made[4].code == "conflict" and "item 1" in made[4].detail
    assert made[3].spec.after == made[0].id and made[3].start_us >= made[0].finish_us
    await world.check()


async def test_only_so_many_wait_for_one_and_behind_each_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.desk.ground.start_signals.MAX_SUCCESSORS", 2)
    monkeypatch.setattr("broker.desk.ground.start_signals.LONGEST", 3)
    await network(world)
    chain = await chain_of(world, 3, seconds=1)
    (refused,) = await world.admit(sent(world, after=chain[-1].id))
    assert isinstance(refused, Problem) and "3" in refused.detail
    await booked(world, sent(world, 1, after=chain[0].id))
    (refused,) = await world.admit(sent(world, after=chain[0].id))
    assert isinstance(refused, Problem) and refused.code == "conflict"


# -- ends ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ENDS)
async def test_an_end_moves_the_whole_chain_up(world: World, action: Action, clock: Clock) -> None:
    await network(world)
    chain = await chain_of(world, 4)
    clock.advance(2)
    await world.do(Start(chain[0].id, "me"))
    clock.advance(3)
    (someone,) = await booked(world, world.ask(5 * SECOND))
    await end(world, chain[0], action)
    moved = await now(world, *chain[1:])
    assert 0 <= -seconds(world, moved[0].start_us) < 1e-4, "at once"
    for ahead, behind in pairwise(moved):
        assert behind.start_us == ahead.finish_us
    for was, is_ in zip(chain[1:], moved, strict=True):
        assert reads(is_) == reads(was) and is_.finish_us < was.finish_us - 4 * US_PER_S
        assert (is_.promised_us, is_.plan_revision) == (was.promised_us, 2)
    assert moved[0].released_us is not None and moved[1].released_us is None
    assert await events(world, chain[1]) == ["admitted", "handed_over"]
    assert await events(world, chain[2]) == ["admitted", "moved_up"]
    assert (await now(world, someone))[0].start_us == someone.start_us
    await world.check()


async def test_what_does_not_fit_as_a_whole_stays(world: World) -> None:
    """Further on its way a link is taken until the successor's booked begin: the predecessor's place alone is no use to it."""
    await network(world, L1, Link("L2", "B", "C", GBIT))
    await world.nic("h5", "C", 10 * GBIT)
    (first,) = await booked(world, sent(world))
    (elsewhere,) = await booked(world, world.ask(15 * SECOND, "B", "C"))
    (second,) = await booked(world, sent(world, destination="h5", after=first.id))
    assert second.start_us == elsewhere.finish_us > first.finish_us
    await end(world, first)
    (same,) = await now(world, second)
    assert same.segments == second.segments and same.released_us is not None
    await end(world, elsewhere, Action.CANCEL)
    assert (await now(world, second))[0].segments == second.segments, "that is for whoever pulls forward"
    await world.check()


async def test_on_links_with_slots_it_moves_by_whole_slots(world: World, clock: Clock) -> None:
    await network(world, Link("L1", "A", "B", GBIT, slot_us=300_000, channel_bps=GBIT // 4))
    chain = await chain_of(world, 3)
    clock.advance(4.21)
    await end(world, chain[0])
    moved = await now(world, *chain[1:])
    for was, is_ in zip(chain[1:], moved, strict=True):
        assert is_.start_us % 300_000 == 0 and reads(is_) == reads(was)
        assert was.start_us - is_.start_us > 5 * US_PER_S
    await world.check()


async def test_limits_of_the_successor_hold(world: World, clock: Clock) -> None:
    """Its caller's not_before; the clock's need to be told; the wish to be late; a pause; a hold."""
    await network(world, Link("L1", "A", "B", 10 * GBIT))
    (first,) = await booked(world, sent(world, rate_max_bps=GBIT))
    begins = clock.now_us + 8 * US_PER_S
    wishes: tuple[dict[str, Any], ...] = (
        {"not_before_us": begins},
        {"signal": CLOCK, "not_before_us": clock.now_us + 20 * US_PER_S},
        {"planner": "alap"},
        {},
        {"hold": True},
    )
    until = clock.now_us + 60 * US_PER_S
    asks = [sent(world, rate_max_bps=GBIT, after=first.id, deadline_us=until, **wish) for wish in wishes]
    limited, timed, late, paused, held = await booked(world, *asks)
    await world.do(make_change(timed.id, "me", not_before_us=0))
    (timed,) = await now(world, timed)
    await world.do(Pause(paused.id, "me", None, POLICY))
    clock.advance(2)
    await end(world, first)
    now_us = clock.now_us
    limited, timed, late_now, paused, held = await now(world, limited, timed, late, paused, held)
    assert limited.start_us == begins
    assert late_now.segments == late.segments
    assert paused.paused and not paused.segments and paused.released_us is not None
    assert held.state is State.HELD and 0 <= now_us - held.start_us < 100
    assert timed.released_us is not None and timed.start_us >= now_us - US_PER_S
    await world.do(Resume(paused.id, "me", None, POLICY))
    await world.do(Commit(held.id, "me"))
    await world.check()


async def test_one_that_goes_by_the_clock_is_told_in_time(world: World) -> None:
    await network(world)
    (first,) = await booked(world, sent(world))
    (timed,) = await booked(world, sent(world, after=first.id, signal=CLOCK))
    await end(world, first)
    (moved,) = await now(world, timed)
    assert seconds(world, moved.start_us) == pytest.approx(POLICY.managed_lead_us / US_PER_S, abs=1e-3)
    await world.check()


async def test_the_brokers_word_has_its_way_before_it(world: World, clock: Clock) -> None:
    """Booked from the very end on, it was late by the time that the word took: 75 to 125 ms of 2 s, more than its margin."""
    await network(world)
    (first,) = await booked(world, sent(world))
    (second,) = await booked(world, sent(world, after=first.id, signal=BROKER))
    assert second.start_us == first.finish_us + WORD_US
    (third,) = await booked(world, sent(world, after=second.id))
    assert third.start_us == second.finish_us, "between hosts it has none"
    clock.advance(3)
    await world.do(Start(first.id, "me"))
    await end(world, first)
    (moved, behind) = await now(world, second, third)
    assert moved.start_us == clock.now_us + WORD_US
    assert behind.start_us == moved.finish_us
    await world.check()


async def test_behind_one_that_never_began_its_agents_hear_of_it_first(world: World, clock: Clock) -> None:
    await network(world)
    (hour,) = await booked(world, sent(world, not_before_us=clock.now_us + 3600 * US_PER_S))
    (second,) = await booked(world, sent(world, after=hour.id))
    clock.advance(60)
    await end(world, hour, Action.CANCEL)
    (moved,) = await now(world, second)
    assert seconds(world, moved.start_us) == pytest.approx(POLICY.managed_lead_us / US_PER_S, abs=1e-3)
    await world.check()


async def test_a_successor_that_was_faster_than_its_broker(world: World, clock: Clock) -> None:
    """Its `started` comes before its booked begin, and before the end of the one that it waits for."""
    await network(world)
    first, second = await chain_of(world, 2)
    clock.advance(5)
    await world.do(Start(first.id, "me"))
    clock.advance(4)
    await world.do(Start(second.id, "me", at_us=clock.now_us))
    (early,) = await now(world, second)
    assert early.state is State.ACTIVE and early.segments == second.segments and early.actual_start_us < first.finish_us
    await world.check()
    clock.advance(0.5)
    await end(world, first)
    (moved,) = await now(world, second)
    assert reads(moved) == reads(second) and 0 <= clock.now_us - moved.start_us < 100
    assert moved.actual_start_us == early.actual_start_us
    await world.check()
    await end(world, second)
    await world.check()


async def test_it_ends_before_the_one_that_it_waited_for(world: World, clock: Clock) -> None:
    await network(world)
    first, second, third = await chain_of(world, 3)
    clock.advance(4)
    await world.do(Start(first.id, "me"))
    await world.do(Start(second.id, "me"))
    await end(world, second)
    (third,) = await now(world, third)
    assert third.released_us is not None and third.start_us >= first.finish_us, "the ledger knows of no room before"
    await world.check()


@pytest.mark.parametrize("action", [Action.CANCEL, Action.EXPIRE, Action.FAIL])
async def test_who_leaves_the_middle_of_a_chain_leaves_no_gap(world: World, action: Action, clock: Clock) -> None:
    await network(world)
    first, second, third, fourth = await chain_of(world, 4)
    clock.advance(2)
    await end(world, second, action)
    third_now, fourth_now = await now(world, third, fourth)
    assert (third_now.spec.after, third_now.released_us) == (first.id, None)
    assert third_now.start_us == first.finish_us and fourth_now.start_us == third_now.finish_us
    assert await events(world, third) == ["admitted", "rechained"]
    await world.check()
    await end(world, first)
    (third_now,) = await now(world, third)
    assert third_now.released_us is not None and seconds(world, third_now.start_us) < 0.01
    await world.check()


async def test_whoever_pulls_forward_comes_second(world: World, clock: Clock) -> None:
    await network(world)
    first, second = await chain_of(world, 2)
    (urgent,) = await booked(world, sent(world, priority=9))
    clock.advance(2)
    await end(world, first)
    await world.do(PullForward([urgent.id, second.id], POLICY))
    moved, behind = await now(world, second, urgent)
    assert seconds(world, moved.start_us) < 0.01 and behind.start_us == moved.finish_us < urgent.start_us
    await world.check()


async def test_nobody_is_pulled_before_the_one_that_it_waits_for(world: World) -> None:
    await network(world)
    (in_the_way,) = await booked(world, world.ask(20 * SECOND))
    first, second = await chain_of(world, 2)
    (room,) = await booked(world, world.ask(40 * SECOND))
    await end(world, in_the_way, Action.CANCEL)
    pulled = await world.do(PullForward([second.id], POLICY))
    assert pulled.transfer_ids == ()
    pulled = await world.do(PullForward([first.id], POLICY))
    assert pulled.transfer_ids == (first.id,)
    moved_first, moved = await now(world, first, second)
    assert moved.start_us == moved_first.finish_us < second.start_us, "it comes along"
    assert (await now(world, room))[0].segments == room.segments
    await world.check()


# -- a predecessor that becomes later -----------------------------------------------------------------------------------------------


async def test_a_larger_predecessor_pushes_the_chain_back(world: World) -> None:
    await network(world)
    chain = await chain_of(world, 3)
    await world.do(make_change(chain[0].id, "me", volume_bytes=15 * SECOND))
    moved = await now(world, *chain)
    length = moved[0].finish_us - moved[0].start_us
    assert length < 15.3 * US_PER_S, "in one piece, not around those that wait for it"
    assert moved[1].start_us == moved[0].finish_us and moved[2].start_us == moved[1].finish_us
    assert moved[1].reason is not None and moved[1].reason.code == "predecessor_late" and moved[1].reason.limited_by == chain[0].id
    assert await events(world, chain[2]) == ["admitted", "delayed"]
    await world.check()
    await world.do(make_change(chain[0].id, "me", volume_bytes=5 * SECOND))
    back = await now(world, *chain)
    assert back[1].start_us == back[0].finish_us and back[2].start_us == back[1].finish_us < chain[2].start_us
    assert back[1].reason is None
    await world.check()


async def test_a_change_that_would_break_a_successors_deadline_is_refused(world: World, clock: Clock) -> None:
    await network(world)
    first, second = await chain_of(world, 2)
    (third,) = await booked(world, sent(world, after=second.id, deadline_us=clock.now_us + 34 * US_PER_S))
    before = await world.everything()
    with pytest.raises(Problem) as refused:
        await world.do(make_change(first.id, "me", volume_bytes=20 * SECOND))
    assert refused.value.code == "breaks-promises" and refused.value.more["broken"][0]["id"] == third.id
    assert await world.everything() == before
    # Another command of the same batch sees everybody as they were.
    answers = await asyncio.gather(
        world.do(make_change(first.id, "me", volume_bytes=20 * SECOND)),
        world.do(End(second.id, "me", action=Action.CANCEL)),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers] == [Problem, Transfer]
    await world.check()


async def test_somebody_elses_successor_refuses_nothing(world: World, clock: Clock) -> None:
    await network(world)
    first, second = await chain_of(world, 2)
    ask = sent(world, after=second.id, deadline_us=clock.now_us + 34 * US_PER_S)
    (third,) = await world.do(Admit([ask], "another", POLICY))
    await world.do(make_change(first.id, "me", volume_bytes=20 * SECOND))
    moved, left = await now(world, second, third)
    assert left.segments == third.segments and left.released_us is not None
    assert moved.start_us >= (await now(world, first))[0].finish_us
    await world.check()


async def behind(w: World, transfer: Transfer, after_s: float, safe: int, achieved: int = 0) -> None:
    """It runs for so long, and then says that it has fallen behind."""
    w.clock.now_us = transfer.start_us or 0
    await w.do(Start(transfer.id, "me"))
    w.clock.advance(after_s)
    await w.do(Rebook(transfer.id, "me", safe_bytes=safe, achieved_bps=achieved, policy=POLICY))


async def test_a_shortfall_delays_those_behind_it(world: World) -> None:
    await network(world)
    chain = await chain_of(world, 3)
    await behind(world, chain[0], 9, 5 * SECOND)
    moved = await now(world, *chain)
    assert moved[0].finish_us < chain[0].finish_us + 6 * US_PER_S, "its rest is not behind theirs"
    assert moved[1].start_us == moved[0].finish_us and moved[2].start_us == moved[1].finish_us
    assert moved[1].reason is not None and moved[1].reason.code == "predecessor_late"
    await world.check([chain[0].id])


async def test_a_shortfall_after_the_successors_booked_begin(world: World, clock: Clock) -> None:
    """It waited meanwhile, and carries all of its volume behind the rest."""
    await network(world)
    first, second = await chain_of(world, 2)
    await behind(world, first, 12, 5 * SECOND)
    late, moved = await now(world, first, second)
    assert moved.start_us >= late.finish_us and moved.carried_bytes == 0
    await world.check([first.id])
    clock.advance(1)
    await end(world, first)
    (handed,) = await now(world, second)
    assert seconds(world, handed.start_us) < 0.01 and handed.finish_us - handed.start_us == second.finish_us - second.start_us
    await world.check([first.id])


@pytest.mark.parametrize("more", [{"signal": FALLBACK}, {"deadline_us": START_US + 24 * US_PER_S}])
async def test_who_keeps_its_place_waits_no_longer(world: World, more: dict[str, Any]) -> None:
    """By its policy, or because its deadline leaves no choice: the rest goes around it."""
    await network(world)
    (first,) = await booked(world, sent(world))
    (second,) = await booked(world, sent(world, after=first.id, **more))
    (third,) = await booked(world, sent(world, after=second.id))
    await behind(world, first, 9, 5 * SECOND)
    rest, kept, same = await now(world, first, second, third)
    assert kept.segments == second.segments and kept.released_us is not None
    assert await events(world, second) == ["admitted", "unchained"]
    assert same.segments == third.segments and same.released_us is None
    assert rest.finish_us > second.finish_us
    await world.check([first.id])


async def test_who_has_begun_is_not_delayed_any_more(world: World, clock: Clock) -> None:
    """Its predecessor let it go, late, and hears of a new booking only then: that one goes around it."""
    await network(world)
    first, second, third = await chain_of(world, 3)
    clock.advance(seconds(world, first.start_us))
    await world.do(Start(first.id, "me"))
    clock.advance(seconds(world, second.start_us) + 0.03)
    for _ in range(2):  # said twice
        await world.do(Unchain(second.id, "me", at_us=clock.now_us))
    await world.do(Rebook(first.id, "me", safe_bytes=5 * SECOND, policy=POLICY))
    rest, kept, same = await now(world, first, second, third)
    assert kept.segments == second.segments and kept.released_us is not None
    assert await events(world, second) == ["admitted", "unchained"]
    assert (same.segments, same.released_us) == (third.segments, None)
    assert rest.finish_us > third.finish_us
    await world.check([first.id])


async def test_who_began_on_an_early_end_is_moved_when_that_is_heard_of(world: World, clock: Clock) -> None:
    await network(world)
    first, second = await chain_of(world, 2)
    clock.advance(5)
    await world.do(Start(first.id, "me"))
    await world.do(Unchain(second.id, "me", at_us=clock.now_us))
    assert await events(world, second) == ["admitted"]
    await end(world, first)
    (moved,) = await now(world, second)
    assert moved.start_us < second.start_us and await events(world, second) == ["admitted", "handed_over"]
    await world.check()


async def test_a_pause_lets_the_next_one_go(world: World, clock: Clock) -> None:
    await network(world)
    first, second, third = await chain_of(world, 3)
    clock.advance(3)
    await world.do(Start(first.id, "me"))
    await world.do(Pause(first.id, "me", None, POLICY))
    moved, behind_it = await now(world, second, third)
    assert moved.released_us is not None and seconds(world, moved.start_us) < 0.01
    assert behind_it.start_us == moved.finish_us and behind_it.released_us is None
    await world.check()
    await world.do(Resume(first.id, "me", None, POLICY))
    rest, moved = await now(world, first, second)
    assert rest.segments[-1].end_us > moved.finish_us, "whoever stops gives up the turn"
    await world.check()


async def test_capacity_that_is_lost(world: World, clock: Clock) -> None:
    await network(world)
    chain = await chain_of(world, 3)
    begin = clock.now_us + 5 * US_PER_S
    window = WindowRecord("w1", "L1", begin, begin + 10 * US_PER_S, 0, "outage", None)
    await world.do(AddWindow(window, "me", True, POLICY))
    moved = await now(world, *chain)
    assert moved[1].start_us >= moved[0].finish_us and moved[2].start_us >= moved[1].finish_us
    await world.check()


async def test_a_predecessor_that_gives_way(world: World, clock: Clock) -> None:
    await network(world)
    (first,) = await booked(world, sent(world, best_effort=True))
    (second,) = await booked(world, sent(world, after=first.id))
    urgent = sent(world, 8, priority=5, preempt=True, deadline_us=clock.now_us + 11 * US_PER_S)
    (made,) = await world.do(AdmitByPreemption([urgent], "me", POLICY, None, [first.id]))
    assert isinstance(made, Transfer)
    displaced, moved = await now(world, first, second)
    assert moved.start_us >= displaced.finish_us or moved.released_us is not None
    await world.check()


async def test_a_preview_tells_whom_else_a_change_would_move(world: World) -> None:
    await network(world)
    first, second = await chain_of(world, 2)
    before = await world.everything()
    longer = make_change(first.id, "me", volume_bytes=20 * SECOND)
    foreseen = await world.desks[0].foresee(longer)
    assert await world.everything() == before
    ((moved, finish_before_us),) = foreseen.moved
    assert (moved.id, finish_before_us) == (second.id, second.finish_us)
    assert seconds(world, moved.finish_us) > seconds(world, second.finish_us) and foreseen.result.id == first.id
    done = await world.do(longer)
    (then,) = await now(world, second)
    # The clock goes on by some microseconds with every look at it.
    assert seconds(world, done.finish_us) == pytest.approx(seconds(world, foreseen.result.finish_us), abs=1e-3)
    assert seconds(world, then.finish_us) == pytest.approx(seconds(world, moved.finish_us), abs=1e-3)
    assert (await world.desks[0].foresee(make_change(second.id, "me", label="x"))).moved == ()
    await world.check()


async def test_a_preview_of_an_end_moves_nobody(world: World) -> None:
    await network(world)
    first, _ = await chain_of(world, 2)
    before = await world.everything()
    shown = await world.do(Preview(End(first.id, "me", action=Action.CANCEL)))
    assert shown.state is State.CANCELED and await world.everything() == before
    await world.check()


async def test_what_follows_locks_its_own_links_and_no_others(world: World) -> None:
    """Whoever is moved along may take another path than before; a link that has nothing to do with it may be busy for long."""
    await network(world, L1, Link("L2", "A", "C", GBIT), Link("L3", "C", "B", GBIT), Link("L9", "X", "Y", GBIT))
    first = (await booked(world, sent(world, 10, options=Options(path=("h1~up", "L1", "h2~down")))))[0]
    (second,) = await booked(world, sent(world, 10, after=first.id))
    await booked(world, world.ask(30 * SECOND, options=Options(path=("L1",))))
    async with world.look.transaction() as connection:
        await bookings.lock(connection, ["L9"])
        await behind(world, first, 9, 5 * SECOND)
        late, moved = await now(world, first, second)
        assert moved.start_us >= late.finish_us and "L2" in moved.links() and "L2" not in second.links()
        await end(world, first)
    await world.check([first.id])
