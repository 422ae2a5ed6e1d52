# SPDX-License-Identifier: Apache-2.0
"""Re-optimisation keeps every promise, whatever the solver says and whoever books in between; and it never makes anything worse."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Options, Request
from broker.core.segments import Segment
from broker.core.transfer import Action
from broker.core.transfer_spec import Payload
from broker.core.units import US_PER_S
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.modify import Pause
from broker.desk.lifecycle.transitions import End, Start
from broker.desk.network.links import ChangeLink
from broker.desk.rebalance.proposal import OBJECTIVES, Proposal, Solve, Solved, improve
from broker.desk.rebalance.reoptimise import Agreement, Apply, Chosen, describe_result, is_stale, read_snapshot
from broker.planners.vifi import Vifi
from broker.store.transfers import Transfer
from tests.asks import make_change
from tests.desk.world import GBIT, World
from tests.service import START_US, Clock

GB = 10**9
DIAMOND = (
    Link("L1", "A", "B", GBIT),
    Link("L2", "A", "C", GBIT),
    Link("L3", "C", "B", 2 * GBIT),
    Link("L4", "B", "D", GBIT, channel_bps=GBIT // 10, slot_us=US_PER_S // 10),
)
ANYBODY = Chosen()


def s(seconds: float) -> int:
    return START_US + int(seconds * US_PER_S)


async def proposed(w: World, objective: str, solve: Solve, cut_us: int | None = None, chosen: Chosen = ANYBODY) -> Proposal:
    async with w.look.transaction() as connection:
        cut = w.clock.now_us + 5 * US_PER_S if cut_us is None else cut_us
        return improve(await read_snapshot(connection, w.clock.now_us, cut, chosen, 1000), objective, solve)


def agreed(proposal: Proposal) -> Agreement:
    """As it comes back from the job's row."""
    agreement = Agreement.of(proposal, proposal.cut_us - US_PER_S)
    return Agreement.from_document(describe_result(proposal, agreement, applied=False, rounds=1, most=10)["agreement"])


def optimal(objective: Any) -> Solve:
    from broker.planners.optimal import Optimal

    def solve(requests: Sequence[Request], network: Network, calendars: Mapping[str, Calendar]) -> Solved:
        return Optimal(objective, 5).solve(requests, network, calendars).answers, {}

    return solve


def together(requests: Sequence[Request], network: Network, calendars: Mapping[str, Calendar]) -> Solved:
    return Vifi().plan_together(requests, network, calendars), {}


async def live(w: World) -> dict[str, Any]:
    return {row.id: row for row in await w.rows("SELECT * FROM transfers")}


def kept_promises(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    for transfer_id, row in after.items():
        was = before[transfer_id]
        assert row.promised_us == was.promised_us
        assert row.finish_us <= max(row.promised_us, was.finish_us), transfer_id
        assert row.deadline_us is None or row.finish_us <= row.deadline_us
        assert row.booked_bytes == was.booked_bytes and row.state == was.state


def peak(w_rows: Sequence[Any], links: Sequence[Link], from_us: int) -> float:
    """Congestion, by another way: the sum of rates at every begin of a segment."""
    whole = {link.id: link.capacity_bps for link in links}
    rows = [(max(b, from_us), e, rate, link) for row in w_rows for b, e, rate, path in row.segments for link in path if e > from_us]
    return max(
        (sum(r for b, e, r, other in rows if other == link and b <= at < e) / whole[link] for at, _, _, link in rows), default=0.0
    )


async def random_bookings(w: World, dice: random.Random) -> None:
    """Many as late as possible, which leaves most room for better plans; and some of them go away again."""
    asks = []
    for _ in range(dice.randrange(6, 14)):
        source, target = dice.choice((("A", "B"), ("A", "B"), ("A", "C"), ("C", "B"), ("A", "D"), ("B", "D")))
        begin = s(dice.choice((0, 0, 20, dice.randrange(60))))
        late = dice.random() < 0.7
        asks.append(
            w.ask(
                dice.randrange(1, 40) * GB // 10,
                source,
                target,
                not_before_us=begin,
                deadline_us=begin + dice.randrange(20, 400) * US_PER_S if late else None,
                rate_max_bps=dice.choice((None, GBIT // 2, GBIT // 10)),
                priority=dice.choice((0, 0, 5, -2)),
                planner="alap" if late else dice.choice(("vbls", "fbls")),
                options=dice.choice((Options(), Options(), Options(split=True), Options(most_segments=3))),
                hold=dice.random() < 0.1,
            )
        )
    await w.admit(*asks)
    for transfer_id in dice.sample(sorted(await live(w)), 2):
        await w.do(End(transfer_id, "me", action=Action.CANCEL))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(4))
async def test_every_promise_is_kept_and_nothing_gets_worse(world: World, seed: int, objective: str, clock: Clock) -> None:
    dice = random.Random(f"{seed} {objective}")
    await world.links(*DIAMOND)
    await random_bookings(world, dice)
    clock.advance(dice.randrange(10))
    before = await live(world)
    proposal = await proposed(world, objective, optimal(objective))
    if proposal.changes:
        assert await world.do(Apply(agreed(proposal), "me")) == len(proposal.changes)
    else:
        assert proposal.note and proposal.after == proposal.before
    await world.check()
    after = await live(world)
    kept_promises(before, after)
    moved = {change.before.request.id for change in proposal.changes}
    assert {t for t in after if after[t].plan_revision != before[t].plan_revision} == moved
    assert all(after[t].segments == before[t].segments for t in after if t not in moved)
    used = {link for row in (*before.values(), *after.values()) for *_, path in row.segments for link in path}
    concerned = [link for link in DIAMOND if link.id in used]
    was, now = (peak(list(rows.values()), concerned, proposal.cut_us) for rows in (before, after))
    if objective == "congestion":
        assert now <= was + 1e-9
    if objective == "completion":
        assert proposal.after.weighted_completion_s <= proposal.before.weighted_completion_s
    print(f"seed {seed}: {len(moved)} of {proposal.considered} moved, congestion {was:.3f} -> {now:.3f}")


def hostile(dice: random.Random, network_of: Callable[[], Network] | None = None) -> Solve:
    """A solver that refuses, is late, wants what is not free, and sometimes is right."""

    def solve(requests: Sequence[Request], network: Network, calendars: Mapping[str, Calendar]) -> Solved:
        answers: list[Plan | Refusal] = []
        good = Vifi().plan_together(requests, network, calendars)
        for request, answer in zip(requests, good, strict=True):
            plan = answer if isinstance(answer, Plan) else None
            match dice.randrange(5):
                case 0:
                    answers.append(Refusal("infeasible", "no"))
                case 1 if plan is not None:
                    late = (request.deadline_us or 0) + 1
                    answers.append(Plan((*plan.segments[:-1], plan.segments[-1]._replace(begin_us=late, end_us=late + US_PER_S))))
                case 2 if plan is not None:
                    answers.append(Plan(tuple(part._replace(rate_bps=2 * part.rate_bps) for part in plan.segments)))
                case 3 if plan is not None:
                    route = network.route(request.source, request.destination)
                    assert route is not None
                    rate, begin = route.ceiling_bps, request.not_before_us
                    needed = -(-(request.volume_bytes or 0) * 8 * US_PER_S // rate)
                    answers.append(Plan((Segment(begin, begin + needed, rate, route.path),)))
                case _:
                    answers.append(answer)
        return answers, {}

    return solve


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_the_solver_says(world: World, seed: int) -> None:
    dice = random.Random(seed)
    await world.links(*DIAMOND)
    await random_bookings(world, dice)
    before = await live(world)
    proposal = await proposed(world, "completion", hostile(dice))
    if proposal.changes:
        await world.do(Apply(agreed(proposal), "me"))
        assert proposal.after.weighted_completion_s < proposal.before.weighted_completion_s
    await world.check()
    kept_promises(before, await live(world))
    print(f"seed {seed}: {len(proposal.changes)} of {proposal.considered}")


async def gap(w: World) -> list[Transfer]:
    """Three transfers one after the other, then the first is cancelled: the others could come earlier."""
    await w.links(*DIAMOND)
    booked = await w.admit(*(w.ask(2 * GB, not_before_us=s(20), rate_max_bps=GBIT, options=Options(paths=1)) for _ in range(3)))
    await w.do(End(booked[0].id, "me", action=Action.CANCEL))
    return [t for t in booked[1:] if isinstance(t, Transfer)]


async def test_a_gap_is_closed_and_everybody_hears_of_it(world: World) -> None:
    booked = await gap(world)
    proposal = await proposed(world, "completion", together)
    assert proposal.after.mean_finish_s == pytest.approx(proposal.before.mean_finish_s - 16)
    assert (proposal.after.change_points, proposal.after.on_time) == (2, 2)
    assert set(proposal.links) == {"L1"}
    await world.do(Apply(agreed(proposal), "tok_me"))
    rows = await live(world)
    assert [(rows[t.id].start_us, rows[t.id].finish_us) for t in booked] == [(s(20), s(36)), (s(36), s(52))]
    assert [rows[t.id].promised_us for t in booked] == [t.promised_us for t in booked]
    events = await world.rows("SELECT * FROM events WHERE action = 'transfer.replanned' ORDER BY seq")
    assert [(e.subject, e.actor, e.before["finish_us"] - e.after["finish_us"]) for e in events] == [
        (t.id, "tok_me", 16 * US_PER_S) for t in booked
    ]
    await world.check()


@pytest.mark.parametrize("desk", [0, 1])
@pytest.mark.parametrize("what", ["book", "cancel", "pause", "capacity", "late", "window of another link"])
@pytest.mark.desks(2)
async def test_what_changes_in_between(world: World, what: str, desk: int, clock: Clock) -> None:
    booked = await gap(world)
    agreement = agreed(await proposed(world, "completion", together))
    match what:
        case "book":
            await world.admit(world.ask(1000, not_before_us=s(500)), desk=desk)
        case "cancel":
            await world.do(End(booked[0].id, "me", action=Action.CANCEL), desk)
        case "pause":
            await world.do(Pause(booked[1].id, "me"), desk)
        case "capacity":
            await world.do(ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=GBIT * 3 // 2)), desk)
        case "late":
            clock.advance(4.5)
        case _:
            await world.do(ChangeLink("L4", "me", lambda link: replace(link, capacity_bps=GBIT * 2)), desk)
    before = await world.everything()
    if what == "window of another link":
        assert await world.do(Apply(agreement, "me")) == 2
    else:
        with pytest.raises(Problem) as refused:
            await world.do(Apply(agreement, "me"))
        assert is_stale(refused.value) and "POST /v1/plans" in refused.value.detail
        assert await world.everything() == before
    await world.check()


async def test_agents_that_begin_in_between(world: World) -> None:
    """No link changes by that, and all the same the plan must not be touched; a new label is nothing to mind."""
    await world.links(Link("L1", "A", "B", GBIT))
    await world.nic("h1", "A", 10 * GBIT)
    await world.nic("h2", "B", 10 * GBIT)
    wishes = {"mode": "managed", "payload": Payload("x"), "planner": "alap", "not_before_us": s(20), "deadline_us": s(200)}
    (managed,) = await world.admit(world.ask(GB, "h1", "h2", **wishes))
    agreement = agreed(await proposed(world, "completion", together))
    assert [move.transfer_id for move in agreement.moves] == [managed.id]
    await world.do(Start(managed.id, "agent"))
    with pytest.raises(Problem) as refused:
        await world.do(Apply(agreement, "me"))
    assert refused.value.more["changed"] == {"kind": "transfers", "ids": [managed.id]}
    (other,) = await world.admit(world.ask(GB, "h1", "h2", **wishes))
    agreement = agreed(await proposed(world, "completion", together))
    await world.do(make_change(other.id, "me", label="new"))
    revisions = {row.name: row.revision for row in await world.rows("SELECT name, revision FROM hosts")}
    assert await world.do(Apply(agreement, "me")) == 1
    assert (await live(world))[other.id].start_us == s(20)
    assert all(row.revision > revisions[row.name] for row in await world.rows("SELECT name, revision FROM hosts"))
    await world.check()


async def test_bookings_of_the_same_batch_count(world: World) -> None:
    """They have no version yet when the agreement is looked at."""
    await gap(world)
    agreement = agreed(await proposed(world, "completion", together))
    admitted: Any
    refused: Any
    admitted, refused = await asyncio.gather(
        world.admit(world.ask(1000, not_before_us=s(500))), world.do(Apply(agreement, "me")), return_exceptions=True
    )
    assert isinstance(admitted[0], Transfer)
    assert isinstance(refused, Problem) and refused.more["changed"] == {"kind": "links", "ids": ["L1"]}
    await world.check()


async def test_what_is_worse_is_not_proposed(world: World) -> None:
    """Everything at full speed is no answer to the question for the least congestion."""
    await world.links(Link("L1", "A", "B", GBIT))
    await world.admit(*(world.ask(GB, not_before_us=s(20), deadline_us=s(100), planner="spaghetti") for _ in range(3)))
    proposal = await proposed(world, "congestion", together)
    assert not proposal.changes and proposal.note and proposal.after == proposal.before
    assert proposal.before.congestion_factor == pytest.approx(0.3, abs=0.001)
    assert (await proposed(world, "completion", together)).changes


@pytest.mark.desks(2)
async def test_an_agreement_is_applied_once(world: World) -> None:
    await gap(world)
    agreement = agreed(await proposed(world, "completion", together))
    results = await asyncio.gather(
        world.do(Apply(agreement, "a"), 0),
        world.do(Apply(agreement, "b"), 1),
        world.do(Apply(agreement, "c"), 0),
        return_exceptions=True,
    )
    assert sorted(map(str, results))[0] == "2" and sum(isinstance(result, Problem) for result in results) == 2
    await world.check()


async def test_who_stays(world: World, clock: Clock) -> None:
    await world.links(*DIAMOND)
    await world.nic("h1", "A", 10 * GBIT)
    await world.nic("h2", "B", 10 * GBIT)
    agents: dict[str, Any] = {
        "source": "h1",
        "destination": "h2",
        "mode": "managed",
        "payload": Payload("x"),
        "not_before_us": s(60),
    }
    asks = {
        "free": world.ask(GB, not_before_us=s(60), project="p"),
        "is HELD": world.ask(GB, not_before_us=s(60), hold=True),
        "paused": world.ask(GB, not_before_us=s(60)),
        "its path was asked for": world.ask(GB, not_before_us=s(60), options=Options(path=("L1",))),
        "ends too soon": world.ask(1000),
        "managed": world.ask(GB, **agents),
        "its agents have begun": world.ask(GB, **agents),
        "its agents are about to begin": world.ask(GB, **agents | {"not_before_us": s(4)}),
    }
    booked = await world.admit(*asks.values())
    assert all(isinstance(t, Transfer) for t in booked), booked
    await world.do(Pause(asks["paused"].id, "me"))
    await world.do(Start(asks["its agents have begun"].id, "me"))
    async with world.look.transaction() as connection:
        found = await read_snapshot(connection, clock(), s(6), ANYBODY, 1000)
    assert {item.request.id for item in found.movable} == {asks["free"].id, asks["managed"].id}
    assert found.kept == {reason: 1 for reason in asks if reason not in ("free", "managed")}
    for chosen, ids in (
        (Chosen(project="p"), {"free"}),
        (Chosen(links=frozenset({"h1~up"})), {"managed"}),
        (Chosen(transfers=frozenset({asks["free"].id, "none"})), {"free"}),
        (Chosen(project="p", links=frozenset({"L4"})), set()),
    ):
        async with world.look.transaction() as connection:
            some = await read_snapshot(connection, clock(), s(6), chosen, 1000)
        assert {item.request.id for item in some.movable} == {asks[name].id for name in ids}
    with pytest.raises(Problem, match="name a project, links or transfers"):
        async with world.look.transaction() as connection:
            await read_snapshot(connection, clock(), s(6), ANYBODY, 1)


async def test_a_broken_promise_is_made_good(world: World) -> None:
    """A link was slow and is fast again: as many as possible on time."""
    await world.links(Link("L1", "A", "B", GBIT))
    booked = await world.admit(*(world.ask(2 * GB, not_before_us=s(100)) for _ in range(3)))
    await world.do(ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=GBIT // 4), replan=True))
    await world.do(ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=GBIT)))
    before = await live(world)
    assert all(row.finish_us > row.promised_us and row.reason for row in before.values())
    proposal = await proposed(world, "admitted", together)
    assert (proposal.before.on_time, proposal.after.on_time) == (0, 3)
    await world.do(Apply(agreed(proposal), "me"))
    after = await live(world)
    assert all(row.finish_us <= row.promised_us and row.reason is None for row in after.values())
    assert len(booked) == 3
    await world.check()


async def test_transfers_under_way_go_on_and_carry_the_same_volume(world: World, clock: Clock) -> None:
    """What lies before the cut stays, also on links with slots; the rest is what is not carried by then."""
    await world.links(*DIAMOND)
    (first,) = await world.admit(world.ask(5 * GB, "B", "D", rate_max_bps=GBIT // 2))
    (second,) = await world.admit(world.ask(5 * GB, "B", "D", deadline_us=s(200), planner="alap"))
    await world.do(End(first.id, "me", action=Action.CANCEL))
    (third,) = await world.admit(world.ask(5 * GB, "B", "D", rate_max_bps=GBIT // 2))
    clock.advance(3.3337)
    before = await live(world)
    proposal = await proposed(world, "congestion", optimal("congestion"))
    assert [change.before.request.id for change in proposal.changes] == [second.id]
    assert (proposal.before.congestion_factor, proposal.after.congestion_factor) == (1.0, 0.5)
    late = await proposed(world, "completion", optimal("completion"), s(30))
    assert {change.before.request.id for change in late.changes} == {second.id}
    await world.do(Apply(agreed(late), "me"))
    clock.advance(40)
    again = await proposed(world, "congestion", hostile(random.Random(1)))
    assert not again.changes or await world.do(Apply(agreed(again), "me"))
    after = await live(world)
    for transfer in (second, third):
        row = after[transfer.id]
        assert sum(rate * (end - begin) for begin, end, rate, _ in row.segments) // (8 * US_PER_S) >= row.booked_bytes
    assert after[third.id].segments == before[third.id].segments
    await world.check()
