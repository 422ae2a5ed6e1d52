# SPDX-License-Identifier: Apache-2.0
"""Spaghetti books the least single rate that is free from not_before on until the volume is through, by trying every length."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal, verify
from broker.core.request import Options, Request
from broker.core.segments import Segment
from broker.core.units import MAX_RATE_BPS, MAX_TIME_US, MAX_VOLUME_BYTES
from broker.planners.spaghetti import Spaghetti
from tests.core.grid import MICROBITS_PER_BYTE, Scenario, any_scenarios, cases
from tests.planners.mesh import Mesh, meshes

PLANNER = Spaghetti()
MEGA = 1_000_000


def least(scenario: Scenario) -> tuple[int, int] | None:
    """(rate, finish): for every number of slots, the least rate that does it within them."""
    request, slot, channel = scenario.request, scenario.slot, scenario.channel
    assert request.deadline_us is not None
    assert request.volume_bytes is not None
    need = request.volume_bytes * MICROBITS_PER_BYTE
    end = request.deadline_us // slot * slot
    best = None
    if end <= scenario.first_slot:
        return None
    free = scenario.usable(scenario.slots(end))
    for n in range(1, len(free) + 1):
        rate = max(-(-need // (n * slot)), request.rate_min_bps or 1)
        rate = -(-rate // channel) * channel
        length = -(-need // (rate * slot))  # it may be through before
        if free[:length].min() >= rate and (best is None or rate < best[0]):
            best = rate, scenario.first_slot + length * slot
    return best


def with_deadline(scenario: Scenario, after: int) -> Scenario:
    return replace(scenario, request=replace(scenario.request, deadline_us=scenario.request.not_before_us + after))


def planned(scenario: Scenario) -> Plan | Refusal:
    plan = PLANNER.plan(scenario.request, scenario.network, scenario.calendars)
    if isinstance(plan, Plan):
        verify(scenario.request, plan, scenario.network.links, scenario.calendars)
    return plan


@cases(200)
@given(any_scenarios, st.integers(1, 300))
def test_the_rate_is_the_least_possible(scenario: Scenario, after: int) -> None:
    scenario = with_deadline(scenario, after)
    plan, expected = planned(scenario), least(scenario)
    if expected is None:
        assert isinstance(plan, Refusal)
        assert plan.code == "infeasible"
        return
    assert isinstance(plan, Plan), plan
    (row,) = plan.segments
    assert (row.begin_us, row.rate_bps, row.end_us) == (scenario.first_slot, *expected)


@cases(120)
@given(any_scenarios, st.integers(1, 300))
def test_largest_volume_is_exact_and_plannable_and_not_a_byte_more_is(scenario: Scenario, after: int) -> None:
    scenario = with_deadline(scenario, after)
    unbounded = replace(scenario, request=replace(scenario.request, volume_bytes=10**6))
    most = PLANNER.largest_volume(unbounded.request, scenario.network, scenario.calendars)
    if most:
        assert isinstance(planned(replace(scenario, request=replace(scenario.request, volume_bytes=most))), Plan)
    for more in (most + 1, most + 2, most + 50):
        assert isinstance(planned(replace(scenario, request=replace(scenario.request, volume_bytes=more))), Refusal)


@cases(100)
@given(meshes(), st.integers(1, 300))
def test_it_takes_the_path_whose_busiest_link_stays_least_busy(mesh: Mesh, after: int) -> None:
    mesh = mesh.asking(deadline_us=mesh.request.not_before_us + after)
    answer = mesh.planned(PLANNER)
    assert mesh.request.volume_bytes is not None
    even = -(-mesh.request.volume_bytes * MICROBITS_PER_BYTE // after)
    found = [(scenario, row) for scenario in mesh.scenarios(even) if (row := least(scenario)) is not None]
    if not found:
        assert isinstance(answer, Refusal)
        return
    # gamma is the capacity here, and nothing is booked: the share is the rate in that of the smallest link.
    shares = [max(Fraction(rate, max(int(link.levels.max()), 1)) for link in s.links) for s, (rate, _) in found]
    scenario, (rate, finish) = found[shares.index(min(shares))]
    assert isinstance(answer, Plan), answer
    assert answer.segments == (Segment(scenario.first_slot, finish, rate, tuple(link.id for link in scenario.links)),)


@cases(100)
@given(st.integers(1, MAX_VOLUME_BYTES), st.integers(0, 10**15), st.integers(1, 10**17), st.sampled_from([1, 7, 10**10]))
def test_large_numbers_are_exact(volume: int, start: int, window: int, channel: int) -> None:
    network = Network([Link("L", "A", "B", MAX_RATE_BPS, channel_bps=channel)])
    calendars = {"L": Calendar([(DISTANT_PAST_US, MAX_RATE_BPS)])}
    deadline = min(start + window, MAX_TIME_US)
    plan = PLANNER.plan(Request("r", "A", "B", volume, start, deadline_us=deadline), network, calendars)
    need = volume * MICROBITS_PER_BYTE
    even = -(-need // (deadline - start))
    rate = -(-even // channel) * channel
    if rate > MAX_RATE_BPS:
        assert isinstance(plan, Refusal)
    else:
        assert plan == Plan((Segment(start, start + -(-need // rate), rate, ("L",)),))


def test_what_is_booked_already_counts_into_the_share() -> None:
    """Both ways have the same room; on the second, a link is busier with others."""
    links = [Link(name, name[0], name[1], 10 * MEGA) for name in ("SA", "AD", "SB", "BD")]
    network = Network(links)
    calendars = {link.id: Calendar(link.capacity()) for link in links}
    request = Request("r", "S", "D", 1_000, 0, deadline_us=8_000)
    for busy, way in (("SA", ("SB", "BD")), ("AD", ("SB", "BD")), ("BD", ("SA", "AD"))):
        calendars[busy].book(3_000, 3_001, 2 * MEGA)
        plan = PLANNER.plan(request, network, calendars)
        assert plan == Plan((Segment(0, 8_000, MEGA, way),))
        calendars[busy].release(3_000, 3_001, 2 * MEGA)
    # A share is one of the link's capacity, not of what is free of it.
    calendars["SA"].set_capacity([(DISTANT_PAST_US, 2 * MEGA)])
    plan = PLANNER.plan(replace(request, options=Options(paths=1)), network, calendars)
    assert plan == Plan((Segment(0, 8_000, MEGA, ("SA", "AD")),))


@pytest.mark.parametrize(
    ("field", "changes"),
    [("deadline", {"deadline_us": None}), ("volume_bytes", {"volume_bytes": None, "duration_us": 5})],
)
def test_it_says_what_it_needs_and_the_way_out(field: str, changes: dict[str, int | None]) -> None:
    network, calendars = Network([Link("L", "A", "B", 100)]), {"L": Calendar([(DISTANT_PAST_US, 100)])}
    request = replace(Request("r", "A", "B", 1, 0, deadline_us=10**9), **changes)  # type: ignore[arg-type]
    refusal = PLANNER.plan(request, network, calendars)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.field, "use vbls" in refusal.detail) == ("unsupported", field, True)
    assert PLANNER.largest_volume(request, network, calendars) == 0


def test_smaller_volumes_may_have_other_paths() -> None:
    """A volume that needs more than the thin link carries goes around it; one that does not may be stuck with it (one path)."""
    network = Network(
        [Link("thin", "A", "B", 10 * MEGA), Link("thick 1", "A", "C", 20 * MEGA), Link("thick 2", "C", "B", 20 * MEGA)]
    )
    calendars = {link.id: Calendar(link.capacity()) for link in network.links.values()}
    calendars["thin"].book(0, 10**6, 9 * MEGA)
    calendars["thick 2"].book(500_000, 10**6, 15 * MEGA)
    request = Request("r", "A", "B", 10**6, 0, deadline_us=10**6, options=Options(paths=1))
    most = PLANNER.largest_volume(request, network, calendars)
    assert most == 125_000, (
        "over the thin link: the thick ones carry 20 Mb/s for half the time, which is no more than it could at even rate"
    )
    assert isinstance(PLANNER.plan(replace(request, volume_bytes=most), network, calendars), Plan)
    calendars["thick 2"].release(500_000, 10**6, 15 * MEGA)
    assert PLANNER.largest_volume(replace(request, volume_bytes=10**7), network, calendars) == 2_500_000
