# SPDX-License-Identifier: Apache-2.0
"""VBLS calls on one link, with few and with very many change points ahead, and over several paths of a busy real network."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan
from broker.core.request import Options, Request
from broker.planners import PLANNERS

_RATE = 10_000_000_000
_CALLS = 5000

_NETWORK = Path(__file__).parents[1] / "data" / "esnet-network.json"
_LIVE = 10_000
_ASKED = 2_000
_DAY_US = 86_400 * 1_000_000


def _calendar(points: int, odd: int, even: int) -> Calendar:
    """`points` steps of one millisecond each, on which `odd` and `even` bit/s are booked in turn."""
    calendar = Calendar([(-(2**61), _RATE)])
    begins = np.arange(points, dtype=np.int64) * 1000
    calendar.book_all(begins, begins + 1000, np.where(np.arange(points) % 2, odd, even).astype(np.int64))
    return calendar


def _p50_us(calendar: Calendar, request: Request) -> tuple[float, int]:
    """(median microseconds of a call, segments of its plan)."""
    network = Network([Link("L", "A", "B", _RATE)])
    planner, calendars = PLANNERS["vbls"], {"L": calendar}
    plan = planner.plan(request, network, calendars)
    assert isinstance(plan, Plan)
    times = []
    for _ in range(_CALLS):
        begin = time.perf_counter_ns()
        planner.plan(request, network, calendars)
        times.append(time.perf_counter_ns() - begin)
    return sorted(times)[_CALLS // 2] / 1000, len(plan.segments)


def _network() -> Network:
    rows = json.loads(_NETWORK.read_text())["links"]
    names = ("id", "source", "target", "capacity_bps", "mtu_bytes", "metric")
    return Network(Link(**{name: row.get(name) for name in names}) for row in rows)


def _requests(network: Network, number: int, seed: int) -> Iterator[Request]:
    """Between random routers, 0.1 to 50 TB each at up to 10, 40 or 100 Gb/s, wanted at some time of a day, over four candidate paths."""
    random = np.random.default_rng(seed)
    nodes = sorted(network.nodes)
    for i in range(number):
        source, destination = random.choice(len(nodes), 2, replace=False)
        yield Request(
            str(i),
            nodes[source],
            nodes[destination],
            int(10 ** random.uniform(11, 13.7)),
            int(random.integers(0, _DAY_US)),
            rate_max_bps=int(random.choice([10, 40, 100])) * 10**9,
            options=Options(paths=4),
        )


def _over_paths() -> dict[str, Any]:
    """Plans a second on a network with `_LIVE` transfers booked."""
    network, planner = _network(), PLANNERS["vbls"]
    calendars = {link.id: Calendar(link.capacity()) for link in network.links.values()}
    rows = 0
    for request in _requests(network, _LIVE, seed=1):
        plan = planner.plan(request, network, calendars, fewest_rows=True)
        assert isinstance(plan, Plan)
        rows += len(plan.segments)
        for segment in plan.segments:
            for link_id in segment.path:
                calendars[link_id].book(segment.begin_us, segment.end_us, segment.rate_bps)
    asked = list(_requests(network, _ASKED, seed=2))
    rates = []
    for _ in range(3):
        begin = time.perf_counter()
        plans = [planner.plan(request, network, calendars, fewest_rows=True) for request in asked]
        rates.append(len(plans) / (time.perf_counter() - begin))
    return {
        "vbls_4_paths_plans_per_s": round(max(rates)),
        "vbls_4_paths_live_transfers": _LIVE,
        "vbls_4_paths_live_rows": rows,
        "vbls_4_paths_change_points": sum(calendar.n for calendar in calendars.values()),
    }


def measure() -> dict[str, Any]:
    few, segments = _p50_us(_calendar(1000, 3_000_000_000, 4_000_000_000), Request("r", "A", "B", 2_000_000, 500_000))
    many_calendar = _calendar(1_000_000, 3_000_000_000, 4_000_000_000)
    many, _ = _p50_us(many_calendar, Request("r", "A", "B", 2_000_000, 500_000_000))
    # Busy throughout, at levels that differ, so that no two steps can have been merged: all of them have to be looked at.
    busy = _calendar(1_000_000, _RATE, _RATE + 1)
    request, network = Request("r", "A", "B", 2_000_000, 0), Network([Link("L", "A", "B", _RATE)])
    skips = []
    for _ in range(9):
        begin = time.perf_counter()
        PLANNERS["vbls"].plan(request, network, {"L": busy})
        skips.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    for turn in range(100):
        many_calendar.book(500_000_100 + turn, 500_000_600, 1)
    return {
        "vbls_p50_us_1e3_points": round(few, 2),
        "vbls_p50_us_1e6_points": round(many, 2),
        "vbls_segments": segments,
        "skip_1e6_saturated_points_ms": round(sorted(skips)[4] * 1000, 2),
        "bytes_per_change_point": round(many_calendar.nbytes / many_calendar.n, 1),
        "book_in_the_middle_of_1e6_points_ms": round((time.perf_counter() - begin) * 10, 3),
        **_over_paths(),
    }
