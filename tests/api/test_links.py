# SPDX-License-Identifier: Apache-2.0
"""Links, windows, calendars, and what happens to bookings when capacity goes."""

import random
from itertools import pairwise
from typing import Any

import pytest

from broker.core.units import parse_time
from tests.api.problems import problem
from tests.api.readings import calendar
from tests.service import Clock, Service, at, checked


async def test_a_link_comes_back_as_it_was_given(service: Service) -> None:
    given = {
        "id": "core-1", "source": "A", "target": "B", "capacity_bps": 10**11, "mtu_bytes": 9000, "channel_bps": 10**8, "slot_us": 1000,
        "metric": 3, "available": [{"from": at(0), "bps": 4 * 10**10}, {"from": at(60), "bps": 10**11}],
    }  # fmt: skip
    made = await service.client.post("/v1/links", json=given)
    assert {name: checked(made, 201)[name] for name in given} == given
    assert made.headers["location"] == "/v1/links/core-1"
    shown = await service.client.get("/v1/links/core-1")
    assert checked(shown) == made.json() and shown.headers["etag"] == made.headers["etag"] == '"1"'
    assert checked(await service.client.get("/v1/links")) == [made.json()]


async def test_a_change_touches_only_what_is_given(service: Service) -> None:
    made = await service.link(mtu_bytes=1500, metric=5)
    changed = checked(await service.client.patch("/v1/links/L1", json={"metric": 6, "mtu_bytes": None}))
    nobody = {"replanned": [], "broken": [], "outcomes": [], "preview": False}
    assert changed == made | nobody | {"metric": 6, "mtu_bytes": None, "revision": 2}


@pytest.mark.parametrize("how", ["capacity", "window", "available"])
async def test_broken_promises_are_named_and_then_replanned(how: str, service: Service, clock: Clock) -> None:
    await service.link()
    important = await service.book(125_000_000, priority=5, not_before=at(100), deadline=at(102), label="important")
    moved = await service.book(125_000_000, not_before=at(100), deadline=at(102.5))
    lost = await service.book(125_000_000, not_before=at(101.5), deadline=at(103))
    far = await service.book(125_000_000, not_before=at(1000))

    async def lower(**more: Any) -> Any:
        if how == "window":
            return await service.client.post(
                "/v1/links/L1/windows", json={"begin": at(0), "end": at(500), "bps": 600_000_000, **more}
            )
        if how == "available":
            return await service.client.patch("/v1/links/L1", json={"available": [{"from": at(0), "bps": 600_000_000}], **more})
        return await service.client.patch("/v1/links/L1", json={"capacity_bps": 600_000_000, **more})

    before = checked(await service.client.get("/v1/transfers")), await calendar(service)
    said = problem(await lower(), 409, "breaks-promises")
    broken = {item["id"] for item in said["broken"]}
    assert {moved["id"], lost["id"]} <= broken and said["broken_total"] == len(said["broken"])
    assert (checked(await service.client.get("/v1/transfers")), await calendar(service)) == before

    answer = await lower(on_broken="replan")
    changed = checked(answer, 201 if how == "window" else 200)
    assert set(changed["replanned"]) == broken
    await service.audit()
    assert max(booked for begin, _, booked in await calendar(service) if begin < at(500)) <= 600_000_000
    now = {item["id"]: item for item in checked(await service.client.get("/v1/transfers"))["items"]}
    assert parse_time(now[important["id"]]["plan"]["finish"]) <= parse_time(at(102))
    for late in changed["broken"]:
        assert now[late]["waiting_reason"]["limited_by"] == "L1", now[late]
        assert now[late]["waiting_reason"]["code"] in ("promise_broken", "capacity_lowered", "capacity_lost")
    assert now[far["id"]]["plan"] == far["plan"] or how != "window"


async def test_a_total_outage_fails_what_has_nowhere_to_go(service: Service, clock: Clock) -> None:
    await service.link()
    transfer = await service.book()
    clock.advance(0.5)
    changed = checked(await service.client.patch("/v1/links/L1", json={"capacity_bps": 0, "on_broken": "replan"}))
    assert changed["broken"] == [transfer["id"]]
    failed = checked(await service.client.get(f"/v1/transfers/{transfer['id']}"))
    assert (failed["state"], failed["waiting_reason"]["code"]) == ("FAILED", "capacity_lost")
    await service.audit()
    problem(
        await service.client.post("/v1/transfers", json={"source": "A", "destination": "B", "volume_bytes": 1}), 409, "infeasible"
    )


async def test_windows_overlap_and_go(service: Service) -> None:
    await service.link()
    ids = []
    for begin, end, bps in ((10, 30, 5 * 10**8), (20, 40, 10**8), (15, 25, 8 * 10**8)):
        body = {"begin": at(begin), "end": at(end), "bps": bps, "kind": "background", "reason": "r"}
        ids.append(checked(await service.client.post("/v1/links/L1/windows", json=body), 201)["window"])
    assert [(begin, capacity) for begin, capacity, _ in await calendar(service)] == [
        (at(0), 10**9), (at(10), 5 * 10**8), (at(20), 10**8), (at(40), 10**9)
    ]  # fmt: skip
    left = checked(await service.client.delete(f"/v1/links/L1/windows/{ids[1]}"))
    assert [window["id"] for window in left["windows"]] == [ids[0], ids[2]]
    assert [(begin, capacity) for begin, capacity, _ in await calendar(service)] == [
        (at(0), 10**9),
        (at(10), 5 * 10**8),
        (at(30), 10**9),
    ]
    await service.audit()


async def test_delete(service: Service) -> None:
    await service.link()
    transfer = await service.book()
    said = problem(await service.client.delete("/v1/links/L1"), 409, "breaks-promises")
    assert [item["id"] for item in said["broken"]] == [transfer["id"]]
    await service.client.post(f"/v1/transfers/{transfer['id']}/cancel")
    assert (await service.client.delete("/v1/links/L1")).status_code == 204
    problem(await service.client.get("/v1/links/L1"), 404, "not-found")
    problem(await service.client.delete("/v1/links/L1"), 404, "not-found")
    problem(
        await service.client.post("/v1/transfers", json={"source": "A", "destination": "B", "volume_bytes": 1}), 422, "unknown-node"
    )
    again = await service.link(capacity_bps=5 * 10**8)
    assert (again["capacity_bps"], again["version"]) == (5 * 10**8, 2)
    await service.book()
    await service.audit()


# -- the calendar ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
async def test_the_calendar_against_brute_force(seed: int, service: Service, clock: Clock) -> None:
    dice = random.Random(seed)
    await service.link(mtu_bytes=dice.choice((None, 1500)))
    for _ in range(40):
        ask: dict[str, Any] = {
            "volume_bytes": dice.randrange(1, 300_000_000),
            "rate_max_bps": dice.choice((None, 10**8, 3 * 10**8)),
        }
        await service.book(**ask, not_before=at(dice.randrange(200)))
        clock.advance(dice.random())
    for item in checked(await service.client.get("/v1/transfers"))["items"]:
        if dice.random() < 0.3:
            await service.client.post(f"/v1/transfers/{item['id']}/cancel")
    body = {"begin": at(300), "end": at(310), "bps": 10}
    checked(await service.client.post("/v1/links/L1/windows", json=body | {"on_broken": "replan"}), 201)
    segments = [
        (parse_time(s["begin"]), parse_time(s["end"]), s["rate_bps"])
        for item in checked(await service.client.get("/v1/transfers"))["items"]
        for s in item["plan"]["segments"]
    ]

    def booked_at(instant: int) -> int:
        return sum(rate for begin, end, rate in segments if begin <= instant < end)

    for span in ((0, 3600), (10.5, 40.25), (dice.randrange(100), 200)):
        begin, end = (parse_time(at(second)) for second in span)
        between: dict[str, Any] = {"from": at(span[0]), "to": at(span[1])}
        steps = await calendar(service, points=100_000, **between)
        times = [parse_time(step[0]) for step in steps]
        assert times[0] == begin and times == sorted(set(times)) and times[-1] < end
        for (time, (_, _, booked)), following in zip(zip(times, steps, strict=True), [*times[1:], end], strict=True):
            assert {booked_at(instant) for instant in (time, (time + following) // 2, following - 1)} == {booked}
        assert all(former[1:] != latter[1:] for former, latter in pairwise(steps)), "steps are minimal"
        for points in (2, 7, 20):
            thin = await calendar(service, points=points, **between)
            if len(steps) <= points:
                assert thin == steps
                continue
            assert set(thin) <= set(steps) and thin[0] == steps[0] and len(thin) <= points + 2
            assert max(step[2] for step in thin) == max(step[2] for step in steps)
            assert min(step[1] - step[2] for step in thin) == min(step[1] - step[2] for step in steps), (
                "the tightest moment is kept"
            )


async def test_calendars_of_all_times(service: Service) -> None:
    await service.link()
    for n in range(30):
        await service.book(1_000_000, not_before=at(10 * n), rate_max_bps=10**8)
    for begin, end in (("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"), ("9999-12-31T23:00:00Z", None)):
        query: dict[str, Any] = {"from": begin, "points": 20} | ({"to": end} if end else {})
        found = checked(await service.client.get("/v1/links/L1/calendar", params=query))
        assert found["steps"][0]["begin"] == begin
        assert len(found["steps"]) <= 22
