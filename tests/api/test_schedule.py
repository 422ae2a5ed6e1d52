# SPDX-License-Identifier: Apache-2.0
"""Who has what of a link and when, against the calendar; and the schedule, page by page."""

import random
import time
from typing import Any

import pytest
from sqlalchemy import text

from broker.core.units import parse_time
from tests.api.carried import managed, multiplied
from tests.api.problems import problem
from tests.service import Clock, Service, at, checked


async def bookings(service: Service, link: str = "L1", **query: Any) -> dict[str, Any]:
    return checked(await service.client.get(f"/v1/links/{link}/bookings", params={"from": at(0), "to": at(3600), **query}))


def rate_at(segments: list[list[int]], instant_us: int) -> int:
    return sum(rate for begin, end, rate in segments if begin <= instant_us < end)


async def test_what_a_transfer_has_is_net_of_what_it_gave_back(service: Service, clock: Clock) -> None:
    await service.link()
    first = await service.book(125_000_000 * 600, label="first", project="cms")
    second = await service.book(125_000_000 * 100)
    clock.advance(60)
    checked(await service.client.post(f"/v1/transfers/{first['id']}/cancel"))
    found = await bookings(service)
    begin = parse_time(at(0))
    shown = {item["id"]: item for item in found["transfers"]}
    assert (shown[first["id"]]["label"], shown[first["id"]]["state"], shown[first["id"]]["source"]) == ("first", "CANCELED", "A")
    ((start, end, rate),) = shown[first["id"]]["segments"]
    assert rate == 10**9 and start - begin < 1000 and 59 < (end - begin) / 1e6 < 61
    assert [item["id"] for item in found["transfers"]] == [second["id"], first["id"]], "the larger volume first"
    assert found["rest"] == {"transfers": 0, "booked_bytes": 0, "segments": []}
    clipped = await bookings(service, **{"from": at(10), "to": at(20)})
    assert clipped["transfers"][0]["booked_bytes"] == 125_000_000 * 10 and len(clipped["transfers"]) == 1


async def test_everybody_together_is_the_calendar(service: Service, clock: Clock) -> None:
    await service.link()
    draw = random.Random(7)
    made = [await service.book(draw.randrange(10**6, 10**10), rate_max_bps=draw.randrange(10**7, 10**9)) for _ in range(12)]
    clock.advance(20)
    for transfer in made[::3]:
        await service.client.post(f"/v1/transfers/{transfer['id']}/cancel")
    await service.client.patch(f"/v1/transfers/{made[1]['id']}", json={"rate_max_bps": 10**7})
    steps = checked(await service.client.get("/v1/links/L1/calendar", params={"from": at(0), "to": at(3600)}))["steps"]
    number = len((await bookings(service, top=100))["transfers"])
    assert 8 <= number < 12, "who was canceled before it began has nothing"
    for top in (1, 4, 100):
        found = await bookings(service, top=top)
        assert len(found["transfers"]) <= top and found["rest"]["transfers"] == max(number - top, 0)
        every = [part["segments"] for part in (*found["transfers"], found["rest"])]
        for step in steps:
            instant = parse_time(step["begin"])
            assert sum(rate_at(segments, instant) for segments in every) == step["booked_bps"], step
    thin = await bookings(service, top=1, points=2)
    highest = max(rate for _, _, rate in (await bookings(service, top=1))["rest"]["segments"])
    assert len(thin["rest"]["segments"]) <= 2 and max(rate for _, _, rate in thin["rest"]["segments"]) == highest
    problem(await service.client.get("/v1/links/none/bookings"), 404, "not-found")
    problem(await service.client.get("/v1/links/L1/bookings", params={"from": at(1), "to": at(1)}), 422, "invalid", "to")


async def test_what_senders_measured(service: Service, clock: Clock) -> None:
    await service.link()
    sender, receiver = await service.enrol("h1", "A"), await service.enrol("h2", "B")
    moved = [await managed(service) for _ in range(2)]
    clock.advance(30)
    for agent, host, factor in ((sender, "h1", 1), (receiver, "h2", 7)):
        reports = [
            {"transfer_id": transfer["id"], "sequence": n + 1, "at": at(5 + n), "kind": "progress", "bytes": n,
             "rate_bps": factor * 10**8 * (1 + n % 2)}
            for transfer in moved for n in range(10)
        ]  # fmt: skip
        checked(await agent.post(f"/v1/agents/{host}/reports", json={"reports": reports}))
    found = (await bookings(service, to=at(200), spans=20))["measured"]
    assert (found["begin_us"], found["span_us"]) == (parse_time(at(0)), 10_000_000)
    assert found["rates_bps"] == [280_000_000, 320_000_000, *[None] * 18], "the senders' alone, each one's mean, added up"


async def test_the_schedule(service: Service, clock: Clock) -> None:
    await service.link()
    await service.link("L2", "B", "C")
    first = await service.book(125_000_000 * 60, label="first", project="cms")
    second = await service.book(125_000_000 * 60, destination="C")
    third = await service.book(125_000_000 * 60, not_before=at(1000), source="B", destination="C")

    async def scheduled(**query: Any) -> dict[str, Any]:
        return checked(await service.client.get("/v1/schedule", params={"from": at(0), "to": at(3600), **query}))

    def ids(found: dict[str, Any]) -> list[str]:
        return [item["id"] for item in found["items"]]

    assert ids(await scheduled()) == [first["id"], second["id"], third["id"]]
    assert ids(await scheduled(link="L2")) == [second["id"], third["id"]] == ids(await scheduled(host="C"))
    assert ids(await scheduled(project="cms")) == [first["id"]]
    assert ids(await scheduled(**{"from": at(130)})) == [third["id"]]
    shown = (await scheduled(**{"from": at(30)}))["items"][0]
    assert (shown["label"], shown["paths"], shown["volume_bytes"]) == ("first", [["L1"]], 125_000_000 * 60)
    assert shown["segments"] == [[*(parse_time(first["plan"][name]) for name in ("start", "finish")), 10**9, 0]], (
        "whole, not cut at the range"
    )
    pages: list[str] = []
    cursor = None
    while True:
        page = await scheduled(limit=1, **({"cursor": cursor} if cursor else {}))
        pages += ids(page)
        if (cursor := page["next"]) is None:
            break
    assert pages == [first["id"], second["id"], third["id"]]
    clock.advance(30)
    checked(await service.client.post(f"/v1/transfers/{first['id']}/cancel"))
    assert ids(await scheduled(**{"from": at(40)})) == [second["id"], third["id"]]
    assert ids(await scheduled(**{"from": at(10)}))[0] == first["id"], "until it ended"


@pytest.mark.real_time
async def test_a_hundred_thousand_rows_are_answered_in_time(service: Service) -> None:
    await service.link()
    first = await service.book(1000)
    begin_us = parse_time(at(0))
    rows = f"""
        INSERT INTO ledger
        SELECT 'L1', 1000 + n, 'tr_' || n % 500, {begin_us} + n * 10000::bigint, {begin_us} + n * 10000::bigint + 5000000, 1 + n % 7
        FROM generate_series(1, 50000) AS n"""
    await multiplied(service, first["id"], 500)
    async with service.database.transaction() as connection:
        await connection.execute(text(rows))
    begin = time.perf_counter()
    found = await bookings(service, top=1000)
    print(f"bookings of 100,000 change points: {(time.perf_counter() - begin) * 1000:.0f} ms")
    assert len(found["transfers"]) == 500, "of one of them nothing is known"
    assert time.perf_counter() - begin < 5
