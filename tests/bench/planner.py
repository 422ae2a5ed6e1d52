# SPDX-License-Identifier: Apache-2.0
"""VBLS calls on one link, with few and with very many change points ahead."""

import time
from typing import Any

import numpy as np

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan
from broker.core.request import Request
from broker.planners import PLANNERS

_RATE = 10_000_000_000
_CALLS = 5000


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
    }
