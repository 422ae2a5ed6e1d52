# SPDX-License-Identifier: Apache-2.0
"""A planner that nobody has heard of: defined here, registered by one line, and everything that the broker does works with it."""

import pytest

from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.core.segments import Segment
from broker.core.units import parse_time
from broker.desk.rebalance.pull_forward import PullForward
from broker.planners import PLANNERS
from broker.planners.signature import Calendars, Traits, task
from broker.planners.vbls import Vbls
from tests.service import Service, at, checked

ABOUT = str(__doc__).strip()


class Steady:
    """One rate on the shortest path, as early as it is free throughout: at most half of what the path can carry."""

    name = "steady"
    traits = Traits(eager=True, fixed_rate=True)

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:
        wanted = task(request, network)
        if isinstance(wanted, Refusal):
            return wanted
        rate = wanted.rate_max // 2
        duration = -(-wanted.bits * 1_000_000 // rate)
        calendar = calendars[wanted.path[0]]
        begins = [request.not_before_us, *(int(time) for time in calendar.times[: calendar.n] if time > request.not_before_us)]
        for begin in begins:
            if calendar.lowest(begin, begin + duration) >= rate and begin + duration <= wanted.deadline_us:
                return Plan((Segment(begin, begin + duration, rate, wanted.path),))
        return Refusal("infeasible", "there is no half of the path for so long before the deadline", "deadline")

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        return Vbls().largest_volume(request, network, calendars) // 2


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLANNERS, Steady.name, Steady())


async def test_it_is_listed_quoted_booked_and_planned_anew(service: Service) -> None:
    await service.link()
    listed = {one["name"]: one for one in checked(await service.client.get("/v1/planners"))}
    assert listed["steady"] == {
        "name": "steady", "about": ABOUT,
        "books": True, "joint": False, "eager": True, "late": False, "fixed_rate": True, "takes_turns": False, "time_limit": False, "default": False,
    }  # fmt: skip
    body = {"source": "A", "destination": "B", "volume_bytes": 125_000_000}  # 2 s at half of the link
    [quote] = checked(await service.client.post("/v1/quotes", json=body | {"planners": ["steady"]}))["quotes"]
    assert quote["admitted"] and quote["books"] and quote["plan"]["segments"][0]["rate_bps"] == 500_000_000

    first = await service.book(planner="steady")
    second = await service.book(planner="steady")
    third = await service.book(planner="steady")
    assert (first["planner"], first["plan"]["segments"][0]["rate_bps"]) == ("steady", 500_000_000)
    begin = parse_time(third["plan"]["segments"][0]["begin"])
    assert begin == parse_time(first["plan"]["finish"]), "two halves are a whole"

    changed = checked(await service.client.patch(f"/v1/transfers/{second['id']}", json={"volume_bytes": 250_000_000}))
    assert changed["planner"] == "steady" and changed["plan"]["finish"] > second["plan"]["finish"]
    await service.audit()


async def test_its_refusals_come_with_counter_offers_that_hold(service: Service) -> None:
    await service.link()
    body = {"source": "A", "destination": "B", "volume_bytes": 250_000_000, "planner": "steady"}
    refused = (await service.client.post("/v1/transfers", json=body | {"deadline": at(3)})).json()
    assert refused["type"].endswith("/infeasible")
    offers = {offer["kind"]: offer for offer in refused["counter_offers"]}
    later = body | {"deadline": offers["smallest_deadline"]["deadline"]}
    checked(await service.client.post("/v1/transfers", json=later), 201)
    await service.audit()


async def test_what_waits_moves_up_because_it_is_eager(service: Service) -> None:
    """Nothing but the trait says so."""
    await service.link()
    ahead = [await service.book(1_250_000_000, planner="steady") for _ in range(2)]
    waits = await service.book(planner="steady")
    checked(await service.client.post(f"/v1/transfers/{ahead[0]['id']}/cancel"))
    broker = service.app.state.broker
    answer = await broker.desk.submit(PullForward([waits["id"]], broker.policy))
    assert answer.transfer_ids == (waits["id"],)
    moved = checked(await service.client.get(f"/v1/transfers/{waits['id']}"))
    assert parse_time(moved["plan"]["finish"]) < parse_time(waits["plan"]["finish"]) and moved["planner"] == "steady"
    await service.audit()
