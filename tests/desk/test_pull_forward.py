# SPDX-License-Identifier: Apache-2.0
"""What comes back goes to whoever waits: earlier than before, never later than promised."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import text

from broker.core.calendar import DISTANT_PAST_US
from broker.core.capacity import rises
from broker.core.request import DEFAULT_PLANNER
from broker.core.transfer import Action, State
from broker.core.units import US_PER_S, format_time, parse_time
from broker.desk.ground.replica import Booking, find_freed_links
from broker.desk.lifecycle.transitions import End
from broker.desk.rebalance import pull_forward as pulling
from broker.desk.rebalance.pull_forward import Puller, PullForward
from broker.desk.service.desk import Desk
from broker.desk.service.timers import at_work, run_timers
from broker.fleet import tokens
from broker.fleet.tokens import Scope
from broker.planners.signature import Traits
from broker.store import pull_forward as waiters
from broker.store.session import Database
from broker.store.transfers import Patience
from tests.core.grid import histories
from tests.desk.pulling import LEAD_US, Pulling
from tests.desk.world import POLICY
from tests.fleet.world import enrolled
from tests.postgres import Server
from tests.service import START_US, Clock, Service, checked, client_of, running

SECOND = 125_000_000  # bytes, at the 1 Gb/s of the link L1


async def started(database_url: str, database: Database, clock: Clock, **options: Any) -> AsyncIterator[Service]:
    every = (Scope.READ, Scope.SUBMIT, Scope.OPERATE, Scope.ADMIN)
    _, secret = await tokens.create(database, clock(), name="all", scopes=every, actor="test")
    async with running(database_url, clock, **options) as app, asyncio.timeout(60):
        yield Service(app, client_of(app, secret), database, clock)


@pytest.fixture
async def pulls(request: pytest.FixtureRequest, database_url: str, database: Database, clock: Clock) -> AsyncIterator[Service]:
    async for service in started(database_url, database, clock, **getattr(request, "param", {"pull_forward": "waiting"})):
        yield service


def at(seconds: float) -> str:
    return format_time(START_US + int(seconds * US_PER_S))


def finish(transfer: dict[str, Any]) -> float:
    """Seconds since the test began."""
    return (parse_time(transfer["plan"]["finish"]) - START_US) / US_PER_S


async def shown(service: Service, transfer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = checked(await service.client.get(f"/v1/transfers/{transfer['id']}"))
    return found


async def cancel(service: Service, transfer: dict[str, Any]) -> None:
    checked(await service.client.post(f"/v1/transfers/{transfer['id']}/cancel"))


async def quiet(service: Service) -> None:
    """Until whatever is pulled forward has been."""
    while not service.app.state.puller.idle:
        await asyncio.sleep(0.005)


async def pulled_events(service: Service, transfer: dict[str, Any]) -> list[dict[str, Any]]:
    history = checked(await service.client.get(f"/v1/transfers/{transfer['id']}/events"))
    return [event for event in history if event["action"] == "transfer.pulled_forward"]


# -- who gains ----------------------------------------------------------------------------------------------------------------------


async def test_a_cancel_makes_the_next_one_earlier(pulls: Service) -> None:
    await pulls.link()
    first, second = [await pulls.book(100 * SECOND) for _ in range(2)]
    assert finish(second) > 200
    await cancel(pulls, first)
    await quiet(pulls)
    now = await shown(pulls, second)
    assert finish(now) < 103, "all of the link is free"
    assert now["promised_finish"] == second["promised_finish"], "a better plan is no other promise"
    (event,) = await pulled_events(pulls, second)
    assert event["before"]["finish"] == second["plan"]["finish"]
    assert event["after"]["finish"] == now["plan"]["finish"]
    assert event["actor"] == "pull-forward"
    await pulls.audit()


async def test_a_slow_one_gains_as_long_as_it_begins_late(pulls: Service) -> None:
    await pulls.link()
    first = await pulls.book(100 * SECOND)
    slow = await pulls.book(100 * SECOND, rate_max_bps=5 * 10**8)
    assert finish(slow) == pytest.approx(300, abs=0.1)
    await cancel(pulls, first)
    await quiet(pulls)
    assert finish(await shown(pulls, slow)) == pytest.approx(201.5, abs=0.1)
    await cancel(pulls, await pulls.book(10 * SECOND))
    await quiet(pulls)
    assert len(await pulled_events(pulls, slow)) == 1, "as early as it can be"


async def test_everybody_behind_moves_up_and_keeps_the_order(pulls: Service) -> None:
    await pulls.link()
    booked = [await pulls.book(50 * SECOND) for _ in range(6)]
    await cancel(pulls, booked[1])
    await quiet(pulls)
    finishes = [finish(await shown(pulls, transfer)) for transfer in booked if transfer is not booked[1]]
    assert finishes == sorted(finishes)
    assert finishes[0] == finish(booked[0])
    for index, was in enumerate(booked[2:], 1):
        assert finish(was) - finishes[index] == pytest.approx(50, abs=0.01)
    await pulls.audit()


async def test_an_early_finish_by_an_agents_report_counts(pulls: Service) -> None:
    async with enrolled(pulls) as pair:
        running_one = await pair.book()
        waiting = await pair.book()
        pulls.clock.advance(3)
        assert await pair.report("h1", running_one, "started", 1) == "accepted"
        before = {host: (await pair.document(host))["revision"] for host in ("h1", "h2")}
        pulls.clock.advance(1)
        done = {"bytes": running_one["volume_bytes"], "checksum": "sha256:" + "0" * 64}
        assert await pair.report("h2", running_one, "finished", 1, **done) == "accepted"
        await quiet(pulls)
        now = await pair.transfer(waiting)
        assert finish(now) < finish(waiting) - 3
        assert parse_time(now["plan"]["start"]) >= pulls.clock.now_us + LEAD_US - US_PER_S, "agents hear of it in time"
        for host in ("h1", "h2"):
            assert (await pair.document(host))["revision"] > before[host]


@pytest.mark.parametrize("pulls", [{"pull_forward": "off"}, {"pull_forward": "waiting"}, {"pull_forward": "all"}], indirect=True)
async def test_the_policy_says_who(pulls: Service, request: pytest.FixtureRequest) -> None:
    policy = request.node.callspec.params["pulls"]["pull_forward"]
    await pulls.link()
    half = await pulls.book(100 * SECOND, rate_max_bps=5 * 10**8)
    begun = await pulls.book(100 * SECOND)
    waiting = await pulls.book(100 * SECOND)
    pulls.clock.advance(10)
    await run_timers(pulls.database, Desk(pulls.database, pulls.clock, POLICY), pulls.clock(), Patience())
    assert (await shown(pulls, begun))["state"] == "ACTIVE"
    await cancel(pulls, half)
    await quiet(pulls)
    gained = [finish(was) - finish(await shown(pulls, was)) for was in (begun, waiting)]
    if policy == "off":
        assert gained == [0, 0]
        desk = pulls.app.state.broker.desk
        assert (await desk.submit(PullForward([begun["id"]], POLICY))).transfer_ids == ()
        assert (await desk.submit(PullForward([begun["id"]], POLICY, begun=True))).transfer_ids == (begun["id"],)
    elif policy == "waiting":
        assert gained[0] == 0
        assert gained[1] > 40
    else:
        assert gained[0] > 40
        assert gained[1] > 40
    await pulls.audit()


async def test_the_important_and_the_old_first_best_effort_last(pulls: Service) -> None:
    await pulls.link()
    gone = await pulls.book(110 * SECOND)  # less the lead, as much as each of the others
    spare = await pulls.book(100 * SECOND, best_effort=True, priority=5)
    old = await pulls.book(100 * SECOND)
    young = await pulls.book(100 * SECOND)
    urgent = await pulls.book(100 * SECOND, priority=3)
    await cancel(pulls, gone)
    await quiet(pulls)
    order = sorted([spare, old, young, urgent], key=lambda one: -finish(one))
    assert order == [urgent, young, old, spare], "as they were booked"
    now = {
        name: finish(await shown(pulls, one))
        for name, one in (("spare", spare), ("old", old), ("young", young), ("urgent", urgent))
    }
    assert now["urgent"] == pytest.approx(101.5, abs=0.1), "takes the place of the one that went"
    assert finish(old) - now["old"] == finish(young) - now["young"] == pytest.approx(8.5, abs=0.1), (
        "what was left of it, and the next"
    )
    assert now["spare"] == finish(spare), "the others took it all"
    await pulls.audit()


async def test_those_that_asked_for_something_else_stay(pulls: Service) -> None:
    await pulls.link()
    first = await pulls.book(100 * SECOND)
    late, steady, begins, paused, held = [await pulls.book(100 * SECOND, **more) for more in (
        {}, {}, {"not_before": at(450)}, {}, {"hold": True},
    )]  # fmt: skip
    checked(await pulls.client.post(f"/v1/transfers/{paused['id']}/pause"))
    await quiet(pulls)
    async with pulls.database.transaction() as connection:
        for one, planner in ((late, "alap"), (steady, "spaghetti")):
            await connection.execute(
                text("UPDATE transfers SET planner = :planner WHERE id = :id"), {"planner": planner, "id": one["id"]}
            )
    await cancel(pulls, first)
    await quiet(pulls)
    for one in (late, steady, held):
        assert (await shown(pulls, one))["plan"] == one["plan"] | {"planner": (await shown(pulls, one))["planner"]}
    assert (await shown(pulls, paused))["plan"]["segments"] == []
    now = await shown(pulls, begins)
    assert now["plan"]["start"] >= at(450)
    await pulls.audit()


async def test_a_holding_time_begins_earlier(pulls: Service) -> None:
    await pulls.link()
    first = await pulls.book(100 * SECOND)
    hold: dict[str, Any] = {"volume_bytes": None, "duration_s": 60, "rate_min_bps": 10**9, "rate_max_bps": 10**9}
    second = await pulls.book(**hold)
    assert finish(second) > 160
    await cancel(pulls, first)
    await quiet(pulls)
    now = await shown(pulls, second)
    assert finish(now) == pytest.approx(61.5, abs=0.1)
    assert parse_time(now["plan"]["finish"]) - parse_time(now["plan"]["start"]) == 60 * US_PER_S
    await pulls.audit()


@pytest.mark.parametrize("how", ["capacity", "window", "steps", "detour"])
async def test_capacity_that_comes_back_counts(how: str, pulls: Service) -> None:
    small: dict[str, Any] = {"available": [{"from": at(0), "bps": 10**8}]} if how == "steps" else {}
    await pulls.link(capacity_bps=10**8 if how == "capacity" else 10**9, **small)
    window = None
    if how in ("window", "detour"):
        if how == "detour":  # all goes around, over a path where the link that comes back is not
            await pulls.link("R1", "A", "C", capacity_bps=10**8, metric=10)
            await pulls.link("R2", "C", "B", capacity_bps=10**8, metric=10)
        body = {"begin": at(0), "end": at(100_000), "bps": 0 if how == "detour" else 10**8}
        window = checked(await pulls.client.post("/v1/links/L1/windows", json=body), 201)["window"]
    one = await pulls.book(100 * SECOND)
    two = await pulls.book(100 * SECOND)
    assert finish(two) > 1900
    if how == "capacity":
        checked(await pulls.client.patch("/v1/links/L1", json={"capacity_bps": 10**9}))
    elif how == "steps":
        checked(await pulls.client.patch("/v1/links/L1", json={"available": []}))
    else:
        checked(await pulls.client.delete(f"/v1/links/L1/windows/{window}"))
    await quiet(pulls)
    assert finish(await shown(pulls, two)) < 203, "it waits, so it gains"
    assert finish(await shown(pulls, one)) <= finish(one)
    await pulls.audit()


@pytest.mark.parametrize("pulls", [{"pull_forward": "waiting", "pull_candidates": 1}], indirect=True)
async def test_a_round_has_so_many_candidates_and_there_are_few_rounds(pulls: Service) -> None:
    await pulls.link()
    booked = [await pulls.book(10 * SECOND) for _ in range(10)]
    await cancel(pulls, booked[0])
    await quiet(pulls)
    moved = [index for index, one in enumerate(booked) if index and finish(await shown(pulls, one)) < finish(one)]
    assert moved == [1, 2, 3, 4]


async def test_what_slowed_it_down_is_forgotten_when_the_promise_is_kept_after_all(service: Service) -> None:
    await service.link()
    first = await service.book(100 * SECOND)
    second = await service.book(100 * SECOND, deadline=at(300))
    checked(await service.client.patch("/v1/links/L1", json={"capacity_bps": 5 * 10**8, "on_broken": "replan"}))
    slowed = await shown(service, second)
    assert slowed["waiting_reason"]["code"] == "promise_broken"
    assert slowed["deadline"] is None
    checked(await service.client.patch("/v1/links/L1", json={"capacity_bps": 10**9}))
    await cancel(service, first)
    # Only now: pulled forward between the two it would be about to start, and whoever is does not wait any more.
    puller = Puller(service.database, service.clock)
    puller.freed({"L1"})
    assert await puller.pull_freed(service.app.state.broker.desk, POLICY) == 1
    now = await shown(service, second)
    assert now["plan"]["finish"] <= second["promised_finish"]
    assert now["waiting_reason"] is None or now["waiting_reason"]["code"] == "scheduled"


async def test_who_never_comes_leaves_room(service: Service) -> None:
    """Expiries are the worker's: as its task does it, with the test's clock."""
    await service.link()
    held = await service.book(1000 * SECOND, hold=True)
    waiting = await service.book(10 * SECOND)
    puller = Puller(service.database, service.clock)
    desk = Desk(service.database, service.clock, POLICY, freed=puller.freed)
    service.clock.advance(301)
    assert await run_timers(service.database, desk, service.clock(), Patience()) == 1
    async with at_work(desk):
        assert await puller.pull_freed(desk, POLICY) == 1
        assert await puller.pull_freed(desk, POLICY) == 0
    assert finish(await shown(service, waiting)) < 320
    assert (await shown(service, held))["state"] == "EXPIRED"
    await service.audit()


async def test_admissions_go_first(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    await service.link()
    first = await service.book(100 * SECOND)
    second = await service.book(100 * SECOND)
    puller = Puller(service.database, service.clock)
    await cancel(service, first)
    puller.freed({"L1"})
    monkeypatch.setattr(Desk, "queued", property(lambda _: 17))
    work = asyncio.create_task(puller.pull_freed(service.app.state.broker.desk, POLICY))
    await asyncio.sleep(0.3)
    assert finish(await shown(service, second)) == finish(second)
    monkeypatch.setattr(Desk, "queued", property(lambda _: 16))
    assert await work == 1
    assert finish(await shown(service, second)) < finish(second)


async def test_without_a_database_it_is_forgotten(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(waiters, "find_ends", fails)
    puller = Puller(service.database, service.clock)
    puller.freed({"L1"})
    assert await puller.pull_freed(service.app.state.broker.desk, POLICY) == 0, "the loop outlives every fault"


async def test_what_moved_makes_room_for_those_elsewhere(pulls: Service) -> None:
    await pulls.link("L1", "A", "B")
    await pulls.link("L2", "B", "C")
    ahead = await pulls.book(100 * SECOND)
    across = await pulls.book(100 * SECOND, destination="C")
    behind = await pulls.book(100 * SECOND, source="B", destination="C", not_before=at(105))
    assert finish(behind) > 295
    await cancel(pulls, ahead)
    await quiet(pulls)
    assert finish(await shown(pulls, across)) < 102
    assert finish(await shown(pulls, behind)) == pytest.approx(205, abs=0.1), "on a link that the cancelled one never took"
    await pulls.audit()


async def test_the_command_itself_is_as_careful(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the query and the locks anything may happen to a transfer."""
    monkeypatch.setattr(pulling, "traits_of", lambda name: Traits(eager=name == DEFAULT_PLANNER))
    await service.link()
    first = await service.book(100 * SECOND)
    paused, held, gone, steady, eager = [
        await service.book(100 * SECOND, **more) for more in ({}, {"hold": True}, {}, {"planner": "fbls"}, {})
    ]
    checked(await service.client.post(f"/v1/transfers/{paused['id']}/pause"))
    await cancel(service, gone)
    await cancel(service, first)
    ids = [one["id"] for one in (paused, held, gone, steady)]
    before = [await shown(service, one) for one in (paused, held, gone, steady)]
    desk = service.app.state.broker.desk
    answer = await desk.submit(PullForward([*ids, "tr_unknown", eager["id"]], POLICY, begun=True))
    assert answer.transfer_ids == (eager["id"],)
    assert [await shown(service, one) for one in (paused, held, gone, steady)] == before
    await service.audit()


async def test_what_gains_nothing_is_as_it_was_for_all_that_follow_in_the_batch(service: Service) -> None:
    await service.link("L1")
    await service.link("L2", metric=5)
    first = await service.book(100 * SECOND)
    other = await service.book(100 * SECOND, not_before=at(10), rate_max_bps=10**9)
    assert {s["path"][0] for s in other["plan"]["segments"]} == {"L2"}
    await cancel(service, first)
    desk = service.app.state.broker.desk
    pulled, ended = await asyncio.gather(
        desk.submit(PullForward([other["id"]], POLICY)), desk.submit(End(other["id"], "me", action=Action.CANCEL))
    )
    assert pulled.transfer_ids == (), "L1 is as good, and no better"
    assert ended.state is State.CANCELED
    for link_id in ("L1", "L2"):
        steps = checked(await service.client.get(f"/v1/links/{link_id}/calendar"))["steps"]
        assert {step["booked_bps"] for step in steps} == {0}
    await service.audit()


# -- the small parts ----------------------------------------------------------------------------------------------------------------


def test_given_back_is_what_is_less_than_before_at_some_instant() -> None:
    assert find_freed_links([]) == set()
    assert find_freed_links([Booking("a", 0, 10, 5)]) == set()
    assert find_freed_links([Booking("a", 0, 10, 5), Booking("b", 3, 4, -1)]) == {"b"}
    assert find_freed_links([Booking("a", 0, 10, -5), Booking("a", 0, 10, 5)]) == set()
    assert find_freed_links([Booking("a", 0, 10, -5), Booking("a", 0, 4, 5), Booking("a", 4, 10, 6)]) == set()
    assert find_freed_links([Booking("a", 0, 10, -5), Booking("a", 1, 11, 5)]) == {"a"}


def test_capacity_rises_where_it_is_more_from_now_on() -> None:
    flat, dip = [(DISTANT_PAST_US, 10)], [(DISTANT_PAST_US, 10), (5, 3), (9, 10)]
    assert rises(dip, flat, 0)
    assert rises(dip, flat, 8)
    assert not rises(dip, flat, 9), "that is over"
    assert not rises(flat, dip, 0)
    assert not rises(flat, flat, 0)
    assert rises((), flat, 0)
    assert not rises((), [(DISTANT_PAST_US, 0)], 0)


# -- random histories ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_in_any_history_nobody_loses(seed: int, postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "_REST", 0)
    machine = type("Machine", (Pulling,), {"server": postgres, "_hypothesis_internal_use_seed": seed})
    run_state_machine_as_test(
        machine,
        settings=histories(30),
    )
