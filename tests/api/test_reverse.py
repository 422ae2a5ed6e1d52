# SPDX-License-Identifier: Apache-2.0
"""The way back of a link, and what is booked there."""

import random
from itertools import pairwise

import pytest

from broker.core.units import format_time, parse_time
from tests.service import START_US, Service, checked


def at(seconds: float) -> str:
    return format_time(START_US + int(seconds * 1_000_000))


async def test_links_name_their_way_back(service: Service) -> None:
    assert (await service.link("there"))["reverse"] is None
    assert (await service.link("back", "B", "A"))["reverse"] == "there"
    await service.link("second")
    await service.link("aside", "B", "C")
    await service.enrol("h1", "A")
    found = {item["id"]: item["reverse"] for item in checked(await service.client.get("/v1/links"))}
    assert found == {"there": None, "second": "back", "back": "second", "aside": None, "h1~up": "h1~down", "h1~down": "h1~up"}
    checked(await service.client.delete("/v1/links/second"), 204)
    assert checked(await service.client.get("/v1/links/there"))["reverse"] == "back"
    assert checked(await service.client.patch("/v1/links/back", json={"metric": 4}))["reverse"] == "there"
    window = {"begin": at(10), "end": at(20), "bps": 0}
    assert checked(await service.client.post("/v1/links/aside/windows", json=window), 201)["reverse"] is None


@pytest.mark.parametrize("seed", range(2))
async def test_the_calendar_shows_the_load_on_the_way_back(seed: int, service: Service) -> None:
    dice = random.Random(seed)
    await service.link("there")
    await service.link("back", "B", "A")
    rows = []
    for _ in range(30):
        ends = dice.choice((("A", "B"), ("B", "A")))
        rate = dice.choice((10**8, 3 * 10**8))
        ask = {"source": ends[0], "destination": ends[1], "rate_max_bps": rate, "not_before": at(dice.randrange(200))}
        made = await service.book(dice.randrange(1, 200_000_000), **ask)
        rows += [(ends[0], parse_time(s["begin"]), parse_time(s["end"]), s["rate_bps"]) for s in made["plan"]["segments"]]

    def booked_at(source: str, instant: int) -> int:
        return sum(rate for start, begin, end, rate in rows if start == source and begin <= instant < end)

    query = {"from": at(0), "to": at(300), "points": "10000", "reverse": "true"}
    found = checked(await service.client.get("/v1/links/there/calendar", params=query))
    assert found["reverse"] == "back"
    steps = found["steps"]
    for step, following in zip(steps, [*(s["begin"] for s in steps[1:]), at(300)], strict=True):
        for instant in (parse_time(step["begin"]), parse_time(following) - 1):
            assert step["booked_bps"] == booked_at("A", instant)
            assert step["reverse_booked_bps"] == booked_at("B", instant)
    columns = [(s["capacity_bps"], s["booked_bps"], s["reverse_booked_bps"]) for s in steps]
    assert all(former != latter for former, latter in pairwise(columns)), "steps are minimal"
    thin = checked(await service.client.get("/v1/links/there/calendar", params=query | {"points": "12"}))
    assert thin["decimated"] and len(thin["steps"]) <= 14
    for name in ("booked_bps", "reverse_booked_bps"):
        assert max(step[name] for step in thin["steps"]) == max(step[name] for step in steps)
    plain = checked(await service.client.get("/v1/links/there/calendar", params=query | {"reverse": "false"}))
    assert "reverse" not in plain and all("reverse_booked_bps" not in step for step in plain["steps"])
    assert len(plain["steps"]) < len(steps)


async def test_a_one_way_link_has_no_load_on_its_way_back(service: Service) -> None:
    await service.link()
    await service.book()
    found = checked(await service.client.get("/v1/links/L1/calendar", params={"reverse": "true"}))
    assert found["reverse"] is None
    assert {step["reverse_booked_bps"] for step in found["steps"]} == {None}
