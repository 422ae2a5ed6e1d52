# SPDX-License-Identifier: Apache-2.0
"""ALAP: what fits by the deadline starts as late as it can, and every instant is as late as it can be."""

from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from broker.core import profile
from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal, verify
from broker.core.request import Request
from broker.core.segments import Segment
from broker.planners import along
from broker.planners.alap import Alap
from tests.core.grid import Scenario, any_scenarios, cases, crowded, plan_is_right, request_over
from tests.planners.fixed_rate import latest_start

PLANNER = Alap()


def planned(scenario: Scenario) -> Plan | Refusal:
    plan = PLANNER.plan(scenario.request, scenario.network, scenario.calendars)
    if isinstance(plan, Plan):
        verify(scenario.request, plan, scenario.network.links, scenario.calendars)
    return plan


@cases(250)
@given(any_scenarios, st.integers(1, 300), st.sampled_from([1, 2, 512]))
def test_every_instant_is_as_late_as_it_can_be(scenario: Scenario, after: int, first_cut: int) -> None:
    deadline = scenario.request.not_before_us + after
    scenario = replace(scenario, request=replace(scenario.request, deadline_us=deadline))
    with (
        patch.object(profile, "_FIRST_CUT", first_cut),
        patch.object(profile, "_NEXT_CUT", 2),
        patch.object(along, "_FIRST_ROWS", 1),
    ):
        plan = planned(scenario)
    start = latest_start(scenario)
    if start is None:
        assert isinstance(plan, Refusal)
        return
    assert isinstance(plan, Plan), plan
    assert plan.start_us == start
    assert plan_is_right(scenario, plan)
    # From the second slot on it takes all there is: nothing could be moved to later.
    moments = {moment: rate for begin, end, rate, _ in plan.segments for moment in range(begin, end)}
    slot = scenario.slot
    usable = scenario.usable(scenario.slots(deadline // slot * slot))
    for index, rate in enumerate(usable.tolist()):
        moment = scenario.first_slot + index * slot
        if moment > start:
            assert moments.get(moment, 0) == rate


@cases(25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([1, 3]), st.floats(0.01, 1.0), st.integers(0, 3_000))
def test_paths_of_many_change_points(seed: int, n_links: int, slot: int, share: float, start: int) -> None:
    links = crowded(seed, n_links, 3_000, slot)
    deadline = start + 9_000
    scenario = Scenario(links, request_over(links, not_before_us=start, deadline_us=deadline))
    volume = max(1, int(scenario.most_bytes(deadline) * share))
    scenario = Scenario(links, request_over(links, not_before_us=start, deadline_us=deadline, volume_bytes=volume))
    plan = planned(scenario)
    assert (plan.start_us if isinstance(plan, Plan) else None) == latest_start(scenario)


def test_it_leaves_the_near_future_free_and_rounds_at_the_first_row() -> None:
    network = Network([Link("L", "A", "B", 10_000_000, slot_us=5)])
    calendars = {"L": Calendar([(DISTANT_PAST_US, 10_000_000), (60, 2_000_000), (80, 10_000_000)])}
    plan = PLANNER.plan(Request("r", "A", "B", 39, 0, deadline_us=104), network, calendars)
    # 39 bytes are 312 bits: 200 in [80, 100), 40 in [60, 80), and the other 72 at 10 bits a microsecond take 7.2, that is two slots.
    assert plan == Plan(
        (
            Segment(50, 60, 10_000_000, ("L",)),
            Segment(60, 80, 2_000_000, ("L",)),
            Segment(80, 100, 10_000_000, ("L",)),
        )
    )


def test_it_needs_a_deadline() -> None:
    network, calendars = Network([Link("L", "A", "B", 100)]), {"L": Calendar([(DISTANT_PAST_US, 100)])}
    refusal = PLANNER.plan(Request("r", "A", "B", 1, 0), network, calendars)
    assert refusal == Refusal("unsupported", "alap plans backwards from the deadline; give a deadline, or use vbls", "deadline")
