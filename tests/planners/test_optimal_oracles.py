# SPDX-License-Identifier: Apache-2.0
"""`optimal` against oracles that know no linear programs: YDS density, exhaustive search, Smith's rule."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.network import Link, Network
from broker.core.plan import Plan
from broker.core.request import Request
from broker.core.units import US_PER_S
from broker.planners.optimal import Optimal
from broker.planners.optimal.measure import weight
from tests.core.grid import cases
from tests.planners.optimal_cases import (
    BYTE_PER_US,
    assert_fits,
    best_subset,
    empty,
    fits,
    least_share,
    one_link_case,
    one_link_network,
)

seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds)
@cases(150)
def test_least_congestion_of_one_link_is_the_maximum_density(seed: int) -> None:
    calendar, requests = one_link_case(seed)
    network, calendars = one_link_network(calendar), {"L": calendar}
    solution = Optimal().solve(requests, network, calendars)
    assert_fits(solution, requests, network, calendars)
    if not fits(calendar, requests):
        served = sum(isinstance(answer, Plan) for answer in solution.answers)
        assert served <= best_subset(calendar, requests, by_volume=False) < len(requests)
        return
    least = least_share(calendar, requests)
    # No plan is below; and above it only by whole bit/s and whole microseconds of a request each.
    whole = calendar.capacity[0][1]
    assert solution.value >= least
    if all(isinstance(answer, Plan) for answer in solution.answers):
        assert solution.value <= least + Fraction(len(requests) + 1, whole) + Fraction(1, 10**9)
        assert solution.bound == pytest.approx(float(least), rel=1e-6)
    else:
        assert least > 1 - Fraction(2 * len(requests), 50)  # so tight that whole microseconds do not suffice


@pytest.mark.parametrize("objective", ["admitted", "volume"])
@given(seed=seeds)
@cases(100)
def test_most_served_on_one_link_is_what_exhaustive_search_finds(objective: str, seed: int) -> None:
    calendar, requests = one_link_case(seed)
    network, calendars = one_link_network(calendar), {"L": calendar}
    solution = Optimal(objective).solve(requests, network, calendars)  # type: ignore[arg-type]
    assert_fits(solution, requests, network, calendars)
    by_volume = objective == "volume"
    best = best_subset(calendar, requests, by_volume)
    # The same thing nearly always; where a batch fits to the last byte, whole microseconds may be too coarse for it.
    assert best_subset(calendar, requests, by_volume, grain_us=1) <= solution.value <= best
    assert solution.bound is None or solution.bound >= float(solution.value) * (1 - 1e-9)


@given(seed=seeds)
@cases(60)
def test_least_weighted_completion_is_smiths_rule_on_one_link(seed: int) -> None:
    """One after the other at full rate by volume over weight, when all may begin at once."""
    random = np.random.default_rng(seed)
    network = Network([Link("L", "A", "B", BYTE_PER_US)])
    requests = [
        Request(f"r{i}", "A", "B", int(random.integers(1, 1000)), 0, priority=int(random.integers(-3, 4)))
        for i in range(int(random.integers(1, 12)))
    ]
    solution = Optimal("completion").solve(requests, network, empty(network))
    assert_fits(solution, requests, network, empty(network))
    clock, expected = 0, Fraction(0)
    for request in sorted(requests, key=lambda r: (r.volume_bytes or 0) / weight(r)):
        clock += request.volume_bytes or 0
        expected += weight(request) * Fraction(clock, US_PER_S)
    assert solution.value == expected
    assert solution.bound is not None
    assert solution.bound <= float(expected) * (1 + 1e-9)


@given(seed=seeds)
@cases(40)
def test_least_completion_with_any_begins_is_the_best_preemptive_order(seed: int) -> None:
    """Exhaustive over orders, in bytes and microseconds: the earlier in the order takes the link whenever it is there."""
    random = np.random.default_rng(seed)
    network = Network([Link("L", "A", "B", BYTE_PER_US)])
    requests = [
        Request(f"r{i}", "A", "B", int(random.integers(1, 40)), int(random.integers(0, 80)), priority=int(random.integers(0, 4)))
        for i in range(int(random.integers(1, 6)))
    ]
    solution = Optimal("completion").solve(requests, network, empty(network))
    best = min(_served_in(order) for order in permutations(requests))
    assert solution.value == best


def _served_in(order: tuple[Request, ...]) -> Fraction:
    free = [True] * 1000
    total = Fraction(0)
    for request in order:
        left, instant = request.volume_bytes or 0, request.not_before_us
        while left:
            if free[instant]:
                free[instant] = False
                left -= 1
            instant += 1
        total += weight(request) * Fraction(instant - request.not_before_us, US_PER_S)
    return total
