# SPDX-License-Identifier: Apache-2.0
"""FBLS starts as early as its one rate allows, by trying every slot."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core import profile
from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal, verify
from broker.core.request import Request
from broker.core.segments import Segment
from broker.core.units import MAX_RATE_BPS, MAX_TIME_US, MAX_VOLUME_BYTES, MIN_TIME_US
from broker.planners.fbls import Fbls
from tests.core.grid import MICROBITS_PER_BYTE, Scenario, any_scenarios, cases, crowded, request_over
from tests.planners.fixed_rate import earliest_start, rate_of

PLANNER = Fbls()


def largest(scenario: Scenario, deadline_us: int) -> int:
    end = deadline_us // scenario.slot * scenario.slot
    if end <= scenario.first_slot:
        return 0
    best = run = 0
    rate = rate_of(scenario)
    for free in scenario.slots(end):
        run = run + 1 if free >= rate else 0
        best = max(best, run)
    return best * scenario.slot * rate // MICROBITS_PER_BYTE


def planned(scenario: Scenario) -> Plan | Refusal:
    plan = PLANNER.plan(scenario.request, scenario.network, scenario.calendars)
    if isinstance(plan, Plan):
        verify(scenario.request, plan, scenario.network.links, scenario.calendars)
        assert len(plan.segments) == 1
    return plan


@cases(400)
@given(any_scenarios, st.sampled_from([1, 2, 512]))
def test_start_is_the_earliest_possible(scenario: Scenario, first_cut: int) -> None:
    with patch.object(profile, "_FIRST_CUT", first_cut), patch.object(profile, "_NEXT_CUT", 2):
        plan = planned(scenario)
    expected = earliest_start(scenario)
    if expected is None:
        assert isinstance(plan, Refusal)
        assert plan.code == "infeasible"
        return
    assert isinstance(plan, Plan), plan
    assert (plan.start_us, plan.finish_us) == expected
    assert plan.segments[0].rate_bps == rate_of(scenario)


@cases(40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.sampled_from([1, 3]), st.integers(1, 30), st.integers(0, 3_000))
def test_paths_of_many_change_points(seed: int, n_links: int, slot: int, volume: int, start: int) -> None:
    links = crowded(seed, n_links, 3_000, slot)
    scenario = Scenario(links, request_over(links, not_before_us=start, volume_bytes=volume, rate_max_bps=8 * 1_000_003))
    plan, expected = planned(scenario), earliest_start(scenario)
    assert ((plan.start_us, plan.finish_us) if isinstance(plan, Plan) else None) == expected


@cases(300)
@given(any_scenarios, st.integers(1, 300))
def test_largest_volume_is_exact_and_plannable_and_not_a_byte_more_is(scenario: Scenario, after: int) -> None:
    deadline = scenario.request.not_before_us + after
    unbounded = replace(scenario.request, volume_bytes=10**6, deadline_us=deadline)
    most = PLANNER.largest_volume(unbounded, scenario.network, scenario.calendars)
    assert most == largest(scenario, deadline)
    if most:
        assert isinstance(planned(replace(scenario, request=replace(unbounded, volume_bytes=most))), Plan)
    assert isinstance(planned(replace(scenario, request=replace(unbounded, volume_bytes=most + 1))), Refusal)


@cases(100)
@given(st.integers(1, MAX_VOLUME_BYTES), st.integers(1, MAX_RATE_BPS), st.integers(0, 10**15))
def test_large_numbers_are_exact(volume: int, rate: int, start: int) -> None:
    network = Network([Link("L", "A", "B", MAX_RATE_BPS)])
    calendars = {"L": Calendar([(DISTANT_PAST_US, MAX_RATE_BPS)])}
    request = Request("r", "A", "B", volume, start, rate_max_bps=rate)
    duration = -(-volume * MICROBITS_PER_BYTE // rate)
    plan = PLANNER.plan(request, network, calendars)
    if start + duration <= MAX_TIME_US:
        assert plan == Plan((Segment(start, start + duration, rate, ("L",)),))
    else:
        assert isinstance(plan, Refusal)
    deadline = min(start + duration - 1, MAX_TIME_US)
    most = rate * (deadline - start) // MICROBITS_PER_BYTE
    assert most < volume
    if deadline > start:
        assert PLANNER.largest_volume(replace(request, deadline_us=deadline), network, calendars) == most


@pytest.mark.parametrize("not_before", [0, -1, MIN_TIME_US])
def test_what_takes_for_ever_is_refused_in_any_year(not_before: int) -> None:
    """An exabyte at 1 bit/s outgrows 64 bits; it was once cut to the deadline, and fitted exactly from 1970 on."""
    network, calendars = Network([Link("L", "A", "B", 1)]), {"L": Calendar([(DISTANT_PAST_US, 1)])}
    for deadline in (None, not_before + 1, not_before + 10**12):
        request = Request("r", "A", "B", MAX_VOLUME_BYTES, not_before, deadline_us=deadline)
        assert isinstance(PLANNER.plan(request, network, calendars), Refusal)


def test_without_a_rate_it_takes_what_the_path_can_carry_from_then_on() -> None:
    """Before its first step the link was faster; asking for that rate would be refused for ever."""
    network = Network([Link("L", "A", "B", 100)])
    calendars = {"L": Calendar([(DISTANT_PAST_US, 100), (1_000, 0), (2_000, 40), (3_000, 30)])}
    assert PLANNER.plan(Request("r", "A", "B", 1, 1_500), network, calendars) == Refusal(
        "infeasible", "40 bit/s is nowhere free for 0.200000 s on end", "rate_max_bps"
    )
    plan = PLANNER.plan(Request("r", "A", "B", 1, 3_500), network, calendars)
    assert plan == Plan((Segment(3_500, 3_500 + 266_667, 30, ("L",)),))
    closed = {"L": Calendar([(DISTANT_PAST_US, 100), (1_000, 0)])}
    refusal = PLANNER.plan(Request("r", "A", "B", 1, 3_500), network, closed)
    assert refusal == Refusal("infeasible", "path L carries at most 0 bit/s from not_before on", "not_before")


def test_more_than_the_path_ever_carries_is_refused_with_no_offer() -> None:
    network, calendars = Network([Link("L", "A", "B", 100)]), {"L": Calendar([(DISTANT_PAST_US, 100)])}
    request = Request("r", "A", "B", 1, 0, rate_max_bps=101, deadline_us=10**9)
    refusal = PLANNER.plan(request, network, calendars)
    assert isinstance(refusal, Refusal)
    assert (refusal.field, refusal.code) == ("rate_max_bps", "infeasible")
    assert PLANNER.largest_volume(request, network, calendars) == 0


def test_the_paper_baseline_waits_for_rmax() -> None:
    """FBLS on figure 1: two channels are free for 20 units from 60 on (VBLS is done at 75)."""
    channel, unit = 10_000_000_000, 100_000
    steps = [(DISTANT_PAST_US, 0), *((at * unit, n * channel) for at, n in ((50, 1), (60, 2), (70, 3), (80, 4)))]
    network = Network([Link("L", "A", "B", 4 * channel, channel_bps=channel, slot_us=unit)])
    request = Request("r", "A", "B", 5 * 10**9, 50 * unit, rate_max_bps=2 * channel)
    plan = PLANNER.plan(request, network, {"L": Calendar(steps)})
    assert plan == Plan((Segment(60 * unit, 80 * unit, 2 * channel, ("L",)),))


def test_the_oracle_sees_what_it_should() -> None:
    """Of two oracles that agree with the code, this one is checked by hand once."""
    links = crowded(seed=3, n_links=1, changes=4)
    scenario = Scenario(
        (replace(links[0], levels=np.array([0, 8, 8, 0, 8, 8, 8, 0]) * 1_000_000),),
        request_over(links, volume_bytes=3, rate_max_bps=8_000_000),
    )
    assert earliest_start(scenario) == (4, 7)
    assert largest(scenario, 5) == 2
