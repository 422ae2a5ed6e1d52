# SPDX-License-Identifier: Apache-2.0
"""A host starts by the clock alone only while it knows broker time well enough; and everybody can see how well that is."""

from typing import Any

import pytest

from broker.core.transfer_spec import SignalKind, StartSignal
from broker.fleet.clocks import Limits, begins_by_clock, find_trouble
from tests.api.problems import problem
from tests.asks import make_ask
from tests.fleet.world import VOLUME, Fleet
from tests.service import Clock, Service, checked

LIMITS = Limits(10_000, 90_000_000)
CLOCK = StartSignal(SignalKind.CLOCK)
GOOD = {"offset_us": -120, "error_us": 300, "adjtimex_error_us": 1500, "synchronised": True}


@pytest.mark.parametrize(
    ("clock", "why"),
    [
        (None, "has not said yet"),
        ({"error_us": 300}, "said last"),  # by an agent of an earlier version of the broker
        ({"error_us": 300, "at_us": 9_999_999}, "said last 90 s ago"),
        ({"error_us": 10_001, "at_us": 100_000_000}, "10.0 ms only, and the limit is 10 ms (BWB_CLOCK_LIMIT_MS)"),
        ({"error_us": 10_000, "at_us": 10_000_000}, None),
    ],
)
def test_which_clocks_are_good(clock: dict[str, Any] | None, why: str | None) -> None:
    found = find_trouble(clock, 100_000_000, LIMITS)
    assert found is None if why is None else found is not None and why in found


def test_who_begins_by_the_clock() -> None:
    def begins(after: str | None, signal: StartSignal | None, planner: str = "vbls") -> bool:
        return begins_by_clock(make_ask("tr_2", "A", "B", 1, after=after, signal=signal, planner=planner))

    assert begins("tr_1", CLOCK) and begins(None, CLOCK, "vifi")
    assert not begins("tr_1", StartSignal()) and not begins("tr_1", None)
    assert not begins(None, CLOCK)


async def _say(f: Fleet, host: str, **clock: Any) -> None:
    checked(await f.agents[host].post(f"/v1/agents/{host}/reports", json={"clock": GOOD | clock}))


async def test_a_start_by_the_clock_needs_a_good_one(fleet: Fleet, service: Service, clock: Clock) -> None:
    first = await fleet.book()
    ask = {
        "source": "h1",
        "destination": "h2",
        "volume_bytes": VOLUME,
        "payload": {"path": "y.h5"},
        "after": first["id"],
        "signal": {"kind": "clock"},
    }

    async def refused() -> dict[str, Any]:
        answer = await service.client.post("/v1/transfers", json=ask)
        return problem(answer, 409, "clock-uncertain", "signal.kind")

    assert "has not said yet" in (await refused())["detail"]
    await _say(fleet, "h1", error_us=23_100)
    said = await refused()
    assert (said["host"], said["error_us"], said["limit_us"]) == ("h1", 23_100, 10_000)
    for part in ("'h1'", "23.1 ms", "10 ms (BWB_CLOCK_LIMIT_MS)", "NTP or PTP", 'signal.kind "direct"'):
        assert part in said["detail"]
    items = checked(await service.client.post("/v1/transfers/batch", json=[ask, ask | {"after": None, "signal": None}]))["items"]
    assert [item["status"] for item in items] == [409, 201], "one refusal is no reason to refuse the others"
    checked(await service.client.post("/v1/transfers", json=ask | {"signal": {"kind": "direct"}}), 201)
    await _say(fleet, "h1", error_us=300)
    checked(await service.client.post("/v1/transfers", json=ask), 201)
    clock.advance(91)
    for host in ("h1", "h2"):
        checked(await fleet.agents[host].post(f"/v1/agents/{host}/reports", json={}))  # heard, but not of its clock
    assert "said last 91 s ago" in (await refused())["detail"]


async def test_the_clock_of_a_host_is_shown(fleet: Fleet, service: Service, clock: Clock) -> None:
    assert checked(await service.client.get("/v1/hosts/h1"))["clock"] is None
    await _say(fleet, "h1", error_us=12_000, steps=1, last_step_us=2_000_000)
    await _say(fleet, "h2")
    bad, good = [host["clock"] for host in checked(await service.client.get("/v1/hosts"))]
    assert not bad["good"] and "12.0 ms only" in bad["reason"]
    assert (bad["steps"], bad["last_step_us"]) == (1, 2_000_000)
    assert bad["at"].startswith("2026-01-01T00:00:00.")
    assert good == GOOD | {"good": True, "reason": None, "steps": 0, "last_step_us": None, "at": good["at"]}
    lines = (await service.client.get("/metrics")).text
    assert 'bwb_agent_clock_error_seconds{host="h1"} 0.012' in lines
    assert 'bwb_agent_clock_offset_seconds{host="h2"} -0.00012' in lines
    checked(await service.client.delete("/v1/hosts/h2"), 204)
    assert "h2" not in (await service.client.get("/metrics")).text, "a removed host leaves no series behind"
