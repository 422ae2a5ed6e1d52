# SPDX-License-Identifier: Apache-2.0
"""Requests of class 2 (a holding time, Rmin and Rmax) and limits on reprogramming, through the planners and over several paths."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal, verify
from broker.core.request import Options, Request
from broker.core.segments import Segment
from broker.planners import PLANNERS
from tests.core.every_cut import by_trying, fillings, most_by
from tests.core.grid import MICROBITS_PER_BYTE, Scenario, cases
from tests.planners.mesh import Mesh, meshes

MEGA = 1_000_000


def starts(scenario: Scenario, duration_us: int, end_us: int, least: int) -> list[int]:
    """Every slot from which at least `least` is free for the whole holding time, up to the end."""
    slot = scenario.slot
    length = -(-duration_us // slot)
    end = end_us // slot * slot
    if end <= scenario.first_slot:
        return []
    free = scenario.usable(scenario.slots(end)) >= least
    return [scenario.first_slot + i * slot for i in range(len(free) - length + 1) if free[i : i + length].all()]


def least_of(scenario: Scenario) -> int:
    return max(scenario.request.rate_min_bps or 1, 1)


def holding(mesh: Mesh, duration: int, after: int | None) -> Mesh:
    deadline = None if after is None else mesh.request.not_before_us + after
    return mesh.asking(volume_bytes=None, duration_us=duration, deadline_us=deadline)


def end_of(scenario: Scenario, duration: int) -> int:
    """Until where starts have to be tried: the deadline, or long enough after everything has settled."""
    deadline = scenario.request.deadline_us
    return scenario.settled_us + duration + 2 * scenario.slot if deadline is None else deadline


def rates_in(answer: Plan) -> dict[int, int]:
    return {moment: rate for begin, end, rate, _ in answer.segments for moment in range(begin, end)}


@cases(150)
@given(meshes(), st.integers(1, 40), st.one_of(st.none(), st.integers(1, 200)))
def test_vbls_holds_from_the_earliest_start_and_takes_all_there_is(mesh: Mesh, duration: int, after: int | None) -> None:
    mesh = holding(mesh, duration, after)
    answer = mesh.planned(PLANNERS["vbls"])
    found = [(begins[0] + -(-duration // s.slot) * s.slot, i) for i, s in enumerate(mesh.scenarios())
             if (begins := starts(s, duration, end_of(s, duration), least_of(s)))]  # fmt: skip
    if not found:
        assert isinstance(answer, Refusal)
        assert answer.code == "infeasible"
        return
    finish, index = min(found)
    best = mesh.scenarios()[index]
    assert isinstance(answer, Plan), answer
    assert answer.finish_us == finish
    assert answer.finish_us - answer.start_us == -(-duration // best.slot) * best.slot
    usable = np.repeat(best.usable(best.slots(finish)), best.slot)
    booked = rates_in(answer)
    assert [booked[moment] for moment in range(answer.start_us, finish)] == usable[answer.start_us - best.first_slot :].tolist()


@cases(100)
@given(meshes(), st.integers(1, 40), st.integers(1, 200))
def test_alap_holds_from_the_latest_start(mesh: Mesh, duration: int, after: int) -> None:
    mesh = holding(mesh, duration, after)
    answer = mesh.planned(PLANNERS["alap"])
    found = [begins[-1] for s in mesh.scenarios() if (begins := starts(s, duration, end_of(s, duration), least_of(s)))]
    assert (answer.start_us if isinstance(answer, Plan) else None) == max(found, default=None)


@cases(100)
@given(meshes(), st.integers(1, 40), st.one_of(st.none(), st.integers(1, 200)))
def test_fbls_holds_one_rate_the_highest_that_stays_free(mesh: Mesh, duration: int, after: int | None) -> None:
    mesh = holding(mesh, duration, after)
    if mesh.request.rate_min_bps is None:
        mesh = mesh.asking(rate_min_bps=1)
    answer = mesh.planned(PLANNERS["fbls"])
    found = [(begins[0] + -(-duration // s.slot) * s.slot, i) for i, s in enumerate(mesh.scenarios())
             if (begins := starts(s, duration, end_of(s, duration), least_of(s)))]  # fmt: skip
    if not found:
        assert isinstance(answer, Refusal)
        return
    finish, index = min(found)
    best = mesh.scenarios()[index]
    assert isinstance(answer, Plan), answer
    (row,) = answer.segments
    usable = np.repeat(best.usable(best.slots(finish)), best.slot)[answer.start_us - best.first_slot :]
    assert (row.end_us, row.rate_bps) == (finish, int(usable.min()))


def test_fbls_without_a_least_rate_holds_rmax() -> None:
    network = Network([Link("L", "A", "B", 10)])
    calendars = {"L": Calendar([(DISTANT_PAST_US, 10), (5, 4), (9, 10)])}
    request = Request("r", "A", "B", None, 0, rate_max_bps=6, duration_us=7)
    assert PLANNERS["fbls"].plan(request, network, calendars) == Plan((Segment(9, 16, 6, ("L",)),))
    assert PLANNERS["fbls"].plan(replace(request, rate_min_bps=3), network, calendars) == Plan((Segment(0, 7, 4, ("L",)),))
    assert PLANNERS["fbls"].plan(replace(request, rate_max_bps=None), network, calendars) == Plan((Segment(9, 16, 10, ("L",)),))


@pytest.mark.parametrize("name", ["vbls", "fbls", "alap"])
def test_a_holding_time_that_is_never_free_is_refused_by_field(name: str) -> None:
    network = Network([Link("L", "A", "B", 10)])
    calendars = {"L": Calendar([(DISTANT_PAST_US, 0), (5, 10), (9, 0)])}
    request = Request("r", "A", "B", None, 0, rate_min_bps=3, duration_us=5, deadline_us=100)
    refusal = PLANNERS[name].plan(request, network, calendars)
    assert refusal == Refusal(
        "infeasible",
        "at least 3 bit/s is nowhere free for 0.000005 s on end by the deadline 1970-01-01T00:00:00.000100Z",
        "deadline",
    )
    assert isinstance(PLANNERS[name].plan(replace(request, duration_us=4), network, calendars), Plan)
    for_ever = replace(request, duration_us=2**70, deadline_us=None if name != "alap" else 100)
    assert isinstance(PLANNERS[name].plan(for_ever, network, calendars), Refusal)
    assert PLANNERS[name].largest_volume(request, network, calendars) == 0


# --- limits on reprogramming ----------------------------------------------------------------------------------------------------


def limited(mesh: Mesh, most: int | None, shortest: int | None) -> Mesh:
    return mesh.asking(options=replace(mesh.request.options, most_segments=most, shortest_segment_us=shortest))


small_limits = st.tuples(st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, None, 1, 3, 7]))


def earliest_within(scenario: Scenario, most: int | None, shortest: int | None, horizon: int) -> int | None:
    """By trying every plan up to the horizon (an instant)."""
    assert scenario.request.volume_bytes is not None
    end = horizon // scenario.slot * scenario.slot
    if end <= scenario.first_slot:
        return None
    usable = tuple(scenario.usable(scenario.slots(end)).tolist())
    need = -(-scenario.request.volume_bytes * MICROBITS_PER_BYTE // scenario.slot)
    slots = -(-(shortest or 0) // scenario.slot)
    found = by_trying(usable, need, len(usable) if most is None else most, slots)
    return None if found is None else scenario.first_slot + found * scenario.slot


@cases(200)
@given(meshes(), small_limits, st.integers(1, 40), st.sampled_from([1, 2]))
def test_vbls_finishes_first_among_all_plans_within_the_limits(
    mesh: Mesh, limits: tuple[int | None, int | None], after: int, paths: int
) -> None:
    mesh = limited(mesh.asking(deadline_us=mesh.request.not_before_us + after), *limits)
    mesh = mesh.asking(options=replace(mesh.request.options, paths=paths))
    answer = mesh.planned(PLANNERS["vbls"])
    assert mesh.request.deadline_us is not None
    found = [earliest_within(s, *limits, mesh.request.deadline_us) for s in mesh.scenarios()]
    assert (answer.finish_us if isinstance(answer, Plan) else None) == min((f for f in found if f is not None), default=None)


@cases(100)
@given(meshes(), small_limits, st.integers(1, 30))
def test_alap_starts_last_among_all_plans_within_the_limits(mesh: Mesh, limits: tuple[int | None, int | None], after: int) -> None:
    mesh = limited(mesh.asking(deadline_us=mesh.request.not_before_us + after), *limits)
    mesh = mesh.asking(options=replace(mesh.request.options, paths=1))
    answer = mesh.planned(PLANNERS["alap"])
    expected = None
    for scenario in mesh.scenarios():
        assert mesh.request.deadline_us is not None
        for begin in range(scenario.first_slot, mesh.request.deadline_us, scenario.slot):
            later = replace(scenario, request=replace(scenario.request, not_before_us=begin))
            if earliest_within(later, *limits, mesh.request.deadline_us) is not None:
                expected = begin
    assert (answer.start_us if isinstance(answer, Plan) else None) == expected


@cases(100)
@given(meshes(), small_limits, st.integers(1, 30))
def test_the_largest_volume_within_the_limits_is_exact(mesh: Mesh, limits: tuple[int | None, int | None], after: int) -> None:
    mesh = limited(mesh.asking(volume_bytes=10**6, deadline_us=mesh.request.not_before_us + after), *limits)
    mesh = mesh.asking(options=replace(mesh.request.options, paths=1))
    expected = 0
    for scenario in mesh.scenarios():
        assert mesh.request.deadline_us is not None
        end = mesh.request.deadline_us // scenario.slot * scenario.slot
        if end <= scenario.first_slot:
            continue
        usable = tuple(scenario.usable(scenario.slots(end)).tolist())
        most, shortest = limits
        before = most_by(usable, (len(usable) if most is None else most) - 1, -(-(shortest or 0) // scenario.slot))[-1]
        best = max(
            before[begin] + min(usable[begin:stop]) * (stop - begin) for stop in range(1, len(usable) + 1) for begin in range(stop)
        )
        expected = max(expected, best * scenario.slot // MICROBITS_PER_BYTE)
    assert PLANNERS["vbls"].largest_volume(mesh.request, mesh.network, mesh.calendars) == expected
    if expected:
        assert isinstance(mesh.asking(volume_bytes=expected).planned(PLANNERS["vbls"]), Plan)
    assert isinstance(mesh.asking(volume_bytes=expected + 1).planned(PLANNERS["vbls"]), Refusal)


@cases(100)
@given(meshes(), small_limits, st.integers(1, 9), st.sampled_from(["vbls", "alap"]))
def test_a_holding_time_keeps_the_limits_with_fewer_and_lower_rows(
    mesh: Mesh, limits: tuple[int | None, int | None], slots: int, name: str
) -> None:
    mesh = limited(holding(mesh.asking(options=Options(paths=1)), slots, 60), *limits)
    scenarios = mesh.scenarios()
    if not scenarios:
        return
    duration = slots * scenarios[0].slot
    mesh = mesh.asking(duration_us=duration)
    answer = mesh.planned(PLANNERS[name])
    (scenario,) = mesh.scenarios()
    begins = starts(scenario, duration, end_of(scenario, duration), least_of(scenario))
    if not begins:
        assert isinstance(answer, Refusal)
        return
    begin = begins[0] if name == "vbls" else begins[-1]
    assert isinstance(answer, Plan), answer
    assert (answer.start_us, answer.finish_us) == (begin, begin + duration)
    first = (begin - scenario.first_slot) // scenario.slot
    usable = scenario.usable(scenario.slots(begin + duration))[first:].tolist()
    most, shortest = limits
    best = max(
        sum(min(usable[a:b]) * (b - a) for a, b in pairwise(bounds))
        for bounds in fillings(slots, slots if most is None else most, -(-(shortest or 0) // scenario.slot))
    )
    assert sum(segment.microbits for segment in answer.segments) == best * scenario.slot


def test_rates_below_rmin_make_no_row_longer() -> None:
    """One row of 3 Mb/s would be through at 14; at no less than 4 Mb/s it has to wait."""
    network = Network([Link("L", "A", "B", 8 * MEGA)])
    calendars = {"L": Calendar([(DISTANT_PAST_US, 8 * MEGA), (4, 3 * MEGA), (104, 8 * MEGA)])}
    request = Request("r", "A", "B", 5, 0, rate_min_bps=4 * MEGA, options=Options(most_segments=1))
    answer = PLANNERS["vbls"].plan(request, network, calendars)
    assert answer == Plan((Segment(104, 109, 8 * MEGA, ("L",)),))
    answer = PLANNERS["vbls"].plan(replace(request, rate_min_bps=3 * MEGA), network, calendars)
    assert answer == Plan((Segment(0, 14, 3 * MEGA, ("L",)),))


@cases(8)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 4, 40]), st.sampled_from([None, 30]))
def test_long_profiles_under_limits(seed: int, most: int, shortest: int | None) -> None:
    """Thousands of change points on two links: more than the first cuts of profiles and rows."""
    random = np.random.default_rng(seed)
    network = Network([Link("1", "A", "B", 10**10), Link("2", "B", "C", 10**10)])
    calendars = {name: Calendar([(DISTANT_PAST_US, 10**10)]) for name in "12"}
    for calendar in calendars.values():
        begins = np.sort(random.integers(0, 10**6, 2_000)).astype(np.int64)
        calendar.book_all(begins, begins + random.integers(1, 4_000, 2_000), random.integers(1, 10**9, 2_000))
    request = Request("r", "A", "C", int(random.integers(10**6, 4 * 10**8)), 0, deadline_us=[None, 10**6][random.integers(2)])
    mesh_free = PLANNERS["vbls"].plan(request, network, calendars)
    options = Options(most_segments=most, shortest_segment_us=shortest)
    answer = PLANNERS["vbls"].plan(replace(request, options=options), network, calendars)
    if isinstance(answer, Plan):
        verify(replace(request, options=options), answer, network.links, calendars)
        assert isinstance(mesh_free, Plan)
        assert mesh_free.finish_us <= answer.finish_us
    else:
        assert request.deadline_us is not None, "without a deadline there is always a plan"
