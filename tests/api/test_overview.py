# SPDX-License-Identifier: Apache-2.0
"""The overview: what counts as a promise kept, at risk and broken; what was asked for; how full the links are."""

import time
from typing import Any

import pytest

from tests.api.carried import managed, multiplied, reported
from tests.api.problems import problem
from tests.service import Clock, Service, at, checked


async def overview(service: Service) -> dict[str, Any]:
    return checked(await service.client.get("/v1/overview"))


async def live(service: Service) -> dict[str, int]:
    return (await overview(service))["promises"]["live"]


async def test_promises_of_live_transfers(service: Service, clock: Clock) -> None:
    await service.link()
    sender, receiver = await service.enrol("h1", "A"), await service.enrol("h2", "B")
    assert await live(service) == {"kept": 0, "at_risk": 0, "broken": 0}
    await service.book(hold=True)
    await service.book(label="booked only")
    moved = await managed(service)
    assert await live(service) == {"kept": 2, "at_risk": 0, "broken": 0}, "nothing is promised of a hold"

    clock.advance(15)
    found = await overview(service)
    assert found["promises"]["live"] == {"kept": 1, "at_risk": 1, "broken": 0}
    (endangered,) = found["promises"]["endangered"]
    assert (endangered["id"], endangered["why"], endangered["promise"]) == (moved["id"], "not_begun", "at_risk")
    assert endangered["promised_finish"] == moved["promised_finish"] and endangered["detail"]

    on_plan = 125_000_000 * 13
    await reported(sender, "h1", moved["id"], ("started", 0, 4), ("progress", on_plan, 15))
    assert (await live(service))["at_risk"] == 0
    clock.advance(40)
    await reported(sender, "h1", moved["id"], ("progress", on_plan + 1, 55), first=3)
    assert [item["why"] for item in (await overview(service))["promises"]["endangered"]] == ["behind"]
    await reported(receiver, "h2", moved["id"], ("progress", 125_000_000 * 53, 55))
    assert (await live(service))["at_risk"] == 0

    clock.advance(91)
    kinds = {item["why"] for item in (await overview(service))["promises"]["endangered"]}
    assert kinds == {"overdue"} and (await live(service))["broken"] == 1


async def test_a_silent_host_and_a_lost_link(service: Service, clock: Clock) -> None:
    await service.link()
    await service.enrol("h1", "A")
    await service.enrol("h2", "B")
    await managed(service, 125_000_000 * 1000)
    booked = await service.book()
    clock.advance(5)
    body = {"begin": at(0), "end": at(9000), "kind": "outage", "on_broken": "replan"}
    checked(await service.client.post("/v1/links/L1/windows", json=body), 201)
    assert {item["why"] for item in (await overview(service))["promises"]["endangered"]} == {"booked_late"}
    for transfer in (await overview(service))["promises"]["endangered"]:
        assert transfer["promise"] == "broken" and transfer["finish"] > transfer["promised_finish"]
    await service.client.post(f"/v1/transfers/{booked['id']}/pause")
    assert (await live(service))["broken"] == 1, "who is paused is promised nothing"
    clock.advance(60)
    assert (await overview(service))["agents"] == {"up": 0, "late": 2, "down": 0}
    clock.advance(40)
    assert (await overview(service))["agents"] == {"up": 0, "late": 0, "down": 2}
    await service.link("L2", "A", "B")
    await managed(service, hosts_up_from=at(1000))
    assert {item["why"] for item in (await overview(service))["promises"]["endangered"]} == {"booked_late", "host_down"}


async def test_promises_of_what_has_ended(service: Service, clock: Clock) -> None:
    await service.link()
    sender, receiver = await service.enrol("h1", "A"), await service.enrol("h2", "B")
    kept, late, failed = [await managed(service, 125_000_000) for _ in range(3)]
    canceled = await service.book()
    await service.client.post(f"/v1/transfers/{canceled['id']}/cancel")
    for transfer, when in ((kept, 2.0), (late, 9.0)):
        await reported(sender, "h1", transfer["id"], ("started", 0, 1.6))
        await reported(receiver, "h2", transfer["id"], ("finished", 125_000_000, when))
    await reported(sender, "h1", failed["id"], ("started", 0, 1.6), ("failed", 0, 2))
    found = await overview(service)
    assert found["promises"]["day"] == {"kept": 1, "broken": 2}
    assert {state: number for state, number in found["transfers"].items() if number} == {"FINISHED": 2, "FAILED": 1, "CANCELED": 1}
    clock.advance(24 * 3600 + 10)
    assert (await overview(service))["promises"]["day"] == {"kept": 0, "broken": 0}


async def test_what_was_asked_for(service: Service, clock: Clock) -> None:
    await service.link()
    await service.book()
    good = {"source": "A", "destination": "B", "volume_bytes": 1000}
    bad = [good | {"volume_bytes": 10**12, "deadline": at(1)}, good | {"source": "X"}, good | {"planner": "none"}]
    for body in bad:
        await service.client.post("/v1/transfers", json=body)
    clock.advance(3700)
    keyed = {"Idempotency-Key": "k"}
    for _ in range(3):  # the same refusal, said again
        await service.client.post("/v1/transfers", json=bad[1] | {"label": "twice"}, headers=keyed)
    await service.client.post("/v1/transfers/batch", json=[good, bad[1], bad[1]])
    await service.client.post("/v1/quotes", json=bad[1])
    found = (await overview(service))["decisions"]
    assert (found["admitted_hour"], found["admitted_day"], found["refused_hour"], found["refused_day"]) == (1, 2, 3, 6)
    assert found["reasons"] == [
        {"reason": "unknown-node", "hour": 3, "day": 4},
        {"reason": "infeasible", "hour": 0, "day": 1},
        {"reason": "unknown-planner", "hour": 0, "day": 1},
    ]
    assert len(found["hours"]) == 24 and [hour["admitted"] for hour in found["hours"][-2:]] == [1, 1]


async def test_how_full_the_links_are(service: Service, clock: Clock) -> None:
    await service.link()
    await service.link("L2", "B", "C", available=[{"from": at(7200), "bps": 0}])
    await service.book(125_000_000 * 3600, rate_max_bps=5 * 10**8)  # two hours at half the rate
    found = await overview(service)
    assert found["links"]["number"] == 2
    assert found["links"]["busiest"][0] == {
        "id": "L1", "source": "A", "target": "B", "capacity_bps": 10**9, "booked_bps": 5 * 10**8, "share": 0.5
    }  # fmt: skip
    loads = checked(await service.client.get("/v1/network/load", params={"from": at(0), "to": at(4 * 3600), "steps": 4}))
    shares = {link["id"]: link["shares"] for link in loads["links"]}
    assert shares == {"L1": [0.5, 0.5, 0.5, 0.0], "L2": [0.0, 0.0, None, None]}
    now = checked(await service.client.get("/v1/network/load", params={"at": at(3600)}))
    assert [link["shares"] for link in now["links"]] == [[0.5], [0.0]] and now["steps"] == 1
    await service.client.delete("/v1/links/L2")
    assert len(checked(await service.client.get("/v1/network/load"))["links"]) == 1
    problem(await service.client.get("/v1/network/load", params={"to": at(-1)}), 422, "invalid", "to")


@pytest.mark.real_time
async def test_ten_thousand_live_transfers_are_counted_at_once(service: Service, clock: Clock) -> None:
    await service.link()
    first = await service.book(125_000_000 * 3600)
    await multiplied(service, first["id"], 10_000)
    took = []
    for _ in range(3):
        begin = time.perf_counter()
        found = await overview(service)
        took.append(time.perf_counter() - begin)
    assert found["promises"]["live"] == {"kept": 10001, "at_risk": 0, "broken": 0}
    print(f"overview of 10,000 active transfers: {min(took) * 1000:.0f} ms")
    assert min(took) < 0.5
