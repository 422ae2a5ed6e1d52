# SPDX-License-Identifier: Apache-2.0
"""The compiled loop answers what the planners answer on a Calendar, one request after the other."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan
from broker.core.request import Request
from broker.planners import PLANNERS
from broker.simulate.paper import LINK_BPS, Point, draw_files
from broker.simulate.single_link import Unschedulable, fbls_finishes, vbls_finishes
from tests.core.grid import cases

CAPACITY = 12_000_000


def by_planner(
    name: str, arrivals: np.ndarray, sizes: np.ndarray, rates: np.ndarray, capacity: int, channel: int | None
) -> list[int]:
    """Nothing is forgotten, and plans have the rows of the paper."""
    network = Network([Link("L", "A", "B", capacity, channel_bps=channel)])
    calendar = Calendar(network.links["L"].capacity())
    finishes = []
    for i, (arrival, size, rate) in enumerate(zip(arrivals.tolist(), sizes.tolist(), rates.tolist(), strict=True)):
        plan = PLANNERS[name].plan(Request(str(i), "A", "B", size, arrival, rate_max_bps=rate), network, {"L": calendar})
        assert isinstance(plan, Plan)
        for segment in plan.segments:
            calendar.book(segment.begin_us, segment.end_us, segment.rate_bps)
        assert all(a.end_us <= b.begin_us for a, b in pairwise(plan.segments))
        finishes.append(plan.finish_us)
    return finishes


requests = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 200), st.sampled_from([1_000_000, 2_500_000, 3_000_000, 7_000_001, CAPACITY])),
    min_size=1,
    max_size=40,
)


@cases(150)
@given(requests, st.sampled_from([None, 1_000_000]))
def test_as_the_planners(drawn: list[tuple[int, int, int]], channel: int | None) -> None:
    arrivals = np.cumsum([gap for gap, _, _ in drawn]).astype(np.int64)
    sizes = np.array([size for _, size, _ in drawn], np.int64)
    rates = np.array([rate for _, _, rate in drawn], np.int64)
    found = vbls_finishes(arrivals, sizes * 8, rates, CAPACITY, channel or 1)
    assert found.tolist() == by_planner("vbls", arrivals, sizes, rates, CAPACITY, channel)
    assert fbls_finishes(arrivals, sizes * 8, rates, CAPACITY).tolist() == by_planner(
        "fbls", arrivals, sizes, rates, CAPACITY, None
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_as_the_planners_on_the_papers_files(seed: int) -> None:
    files = draw_files(Point(0.95, seed, 1500))
    sizes = files.bits // 8
    found = vbls_finishes(files.arrivals_us, files.bits, files.rate_bps, LINK_BPS)
    assert found.tolist() == by_planner("vbls", files.arrivals_us, sizes, files.rate_bps, LINK_BPS, None)
    found = fbls_finishes(files.arrivals_us, files.bits, files.rate_bps, LINK_BPS)
    assert found.tolist() == by_planner("fbls", files.arrivals_us, sizes, files.rate_bps, LINK_BPS, None)


def test_an_overloaded_link_has_room_for_all() -> None:
    """Everything at once: nothing of gamma can be forgotten."""
    count = 5000
    arrivals, bits = np.zeros(count, np.int64), np.arange(1, count + 1, dtype=np.int64) * 800
    rates = np.tile(np.array([1_000_000, 3_000_000, 5_000_000], np.int64), count)[:count]
    finishes = vbls_finishes(arrivals, bits, rates, CAPACITY)
    assert finishes.max() * CAPACITY >= bits.sum() * 1_000_000
    assert fbls_finishes(arrivals, bits, rates, CAPACITY).max() >= finishes.max() * 0.9


def test_what_never_fits_is_said() -> None:
    one = np.ones(1, np.int64)
    with pytest.raises(Unschedulable):
        vbls_finishes(one, one * 8, one * 999, CAPACITY, 1000)
    with pytest.raises(Unschedulable):
        fbls_finishes(one, one * 8, one * (CAPACITY + 1), CAPACITY)
