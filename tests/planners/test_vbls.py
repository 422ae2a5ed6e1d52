# SPDX-License-Identifier: Apache-2.0
"""VBLS finishes as early as anything can: against slot counting, and in large numbers against exact fractions."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.core import profile
from broker.core.calendar import DISTANT_PAST_US, Calendar, Step
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal, verify
from broker.core.request import Options, Request
from broker.core.segments import coalesce
from broker.core.units import MAX_RATE_BPS, MAX_TIME_US, MAX_VOLUME_BYTES
from broker.planners import along
from broker.planners.vbls import Vbls
from tests.core.grid import MICROBITS_PER_BYTE, Scenario, any_scenarios, cases, crowded, plan_is_right, request_over

PLANNER = Vbls()


def planned(scenario: Scenario) -> Plan | Refusal:
    plan = PLANNER.plan(scenario.request, scenario.network, scenario.calendars)
    if isinstance(plan, Plan):
        verify(scenario.request, plan, scenario.network.links, scenario.calendars)
    return plan


def expected_finish(scenario: Scenario) -> int | None:
    finish, deadline = scenario.earliest_finish(), scenario.request.deadline_us
    return None if finish is None or (deadline is not None and finish > deadline) else finish


@cases(400)
@given(any_scenarios, st.sampled_from([1, 2, 512]))
def test_finish_is_the_earliest_possible(scenario: Scenario, first_cut: int) -> None:
    """With room for one row and one step at first, every way of asking again for more is taken."""
    with (
        patch.object(profile, "_FIRST_CUT", first_cut),
        patch.object(profile, "_NEXT_CUT", 2),
        patch.object(along, "_FIRST_ROWS", 1),
    ):
        plan = planned(scenario)
    finish = expected_finish(scenario)
    if finish is None:
        assert isinstance(plan, Refusal)
        assert plan.code == "infeasible"
        return
    assert isinstance(plan, Plan), plan
    assert plan.finish_us == finish
    assert plan_is_right(scenario, plan)
    few = PLANNER.plan(scenario.request, scenario.network, scenario.calendars, fewest_rows=True)
    assert few == Plan(coalesce(plan.segments))


@cases(60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.sampled_from([1, 1, 3]), st.floats(0.01, 1.1), st.integers(0, 3_000))
@example(0, 2, 1, 0.9, 0)
def test_paths_of_many_change_points(seed: int, n_links: int, slot: int, share: float, start: int) -> None:
    """Far more change points than the first cut of a profile (512) and than the first room for rows (64)."""
    links = crowded(seed, n_links, 3_000, slot)
    scenario = Scenario(links, request_over(links, not_before_us=start))
    volume = max(1, int(scenario.most_bytes(scenario.settled_us) * share))
    scenario = replace(scenario, request=request_over(links, not_before_us=start, volume_bytes=volume))
    plan = planned(scenario)
    finish = expected_finish(scenario)
    assert (plan.finish_us if isinstance(plan, Plan) else None) == finish
    if finish is not None and share > 0.5:
        assert isinstance(plan, Plan)
        assert len(plan.segments) > 64


# --- one exabyte, one petabit a second, ten thousand years ----------------------------------------------------------------------

large_rates = st.one_of(st.integers(0, MAX_RATE_BPS), st.sampled_from([0, 1, 2, 10**9, 10**12 + 1, MAX_RATE_BPS]))
large_times = st.one_of(st.integers(0, MAX_TIME_US), st.integers(0, 10**7), st.integers(0, 10**12))
large_volumes = st.one_of(st.integers(1, MAX_VOLUME_BYTES), st.integers(1, 10**6), st.sampled_from([1, MAX_VOLUME_BYTES]))
large_steps = st.lists(st.tuples(large_times, large_rates), max_size=10, unique_by=lambda step: step[0]).map(sorted)


def gamma_of(base: int, steps: list[Step]) -> list[Step]:
    return [(DISTANT_PAST_US, base), *steps]


def stretches(gammas: list[list[Step]], request: Request, channel: int, end: int) -> list[tuple[int, int, int]]:
    """(begin, end, rate that VBLS may book) between all change points of all links, on [not_before, end)."""
    instants = sorted({begin for gamma in gammas for begin, _ in gamma} | {request.not_before_us, end})
    rows = []
    for begin, stop in pairwise(instants):
        if begin < request.not_before_us or stop > end:
            continue
        rate = min([rate for at, rate in gamma if at <= begin][-1] for gamma in gammas)
        rate = min(rate, request.rate_max_bps or rate) // channel * channel
        rows.append((begin, stop, 0 if rate < (request.rate_min_bps or 0) else rate))
    return rows


@cases(300)
@given(
    st.lists(st.tuples(large_rates, large_steps), min_size=1, max_size=2),
    large_volumes,
    large_times,
    st.one_of(st.none(), st.integers(1, MAX_RATE_BPS)),
    st.one_of(st.none(), st.integers(1, 10**9)),
    st.sampled_from([1, 1, 7, 10**10]),
    st.one_of(st.none(), large_times),
)
@example([(1, [])], MAX_VOLUME_BYTES, 0, None, None, 1, None)
@example([(MAX_RATE_BPS, [])], MAX_VOLUME_BYTES, 0, None, None, 1, None)
@example([(1, [])], MAX_TIME_US // 8_000_000, 0, None, None, 1, None)
@example([(1, [])], MAX_TIME_US // 8_000_000 + 1, 0, None, None, 1, None)
def test_large_numbers_are_exact(
    gammas: list[tuple[int, list[Step]]],
    volume: int,
    start: int,
    rate_max: int | None,
    rate_min: int | None,
    channel: int,
    deadline: int | None,
) -> None:
    if deadline is not None and deadline <= start:
        deadline = None
    links = [Link(f"L{i}", f"N{i}", f"N{i + 1}", MAX_RATE_BPS, channel_bps=channel) for i in range(len(gammas))]
    network = Network(links)
    functions = [gamma_of(*gamma) for gamma in gammas]
    calendars = {link.id: Calendar(function) for link, function in zip(links, functions, strict=True)}
    if rate_min is not None and rate_max is not None:
        rate_min = min(rate_min, rate_max)
    request = Request("r", "N0", f"N{len(links)}", volume, start, rate_max, rate_min, deadline)
    end = MAX_TIME_US if deadline is None else deadline

    left = Fraction(volume * MICROBITS_PER_BYTE)
    finish: Fraction | None = None
    carried = 0
    for begin, stop, rate in stretches(functions, request, channel, end):
        carried += rate * (stop - begin)
        if finish is None and rate and left <= rate * (stop - begin):
            finish = begin + left / rate
        left -= rate * (stop - begin)

    plan = PLANNER.plan(request, network, calendars)
    if finish is None:
        assert isinstance(plan, Refusal)
    else:
        assert isinstance(plan, Plan)
        verify(request, plan, network.links, calendars)
        assert finish <= plan.finish_us < finish + 1
    assert PLANNER.largest_volume(replace(request, deadline_us=end), network, calendars) == min(
        volume, carried // MICROBITS_PER_BYTE
    )


# --- the largest volume by a deadline -------------------------------------------------------------------------------------------


@cases(300)
@given(any_scenarios, st.integers(1, 300))
def test_largest_volume_is_exact_and_plannable_and_not_a_byte_more_is(scenario: Scenario, after: int) -> None:
    deadline = scenario.request.not_before_us + after
    unbounded = replace(scenario.request, volume_bytes=10**6, deadline_us=deadline)
    most = PLANNER.largest_volume(unbounded, scenario.network, scenario.calendars)
    wanted = scenario.request.volume_bytes
    assert wanted is not None
    capped = replace(unbounded, volume_bytes=wanted)
    assert PLANNER.largest_volume(capped, scenario.network, scenario.calendars) == min(most, wanted), "at most what is asked"
    assert most == scenario.most_bytes(deadline)
    if most:
        assert isinstance(planned(replace(scenario, request=replace(unbounded, volume_bytes=most))), Plan)
    assert isinstance(planned(replace(scenario, request=replace(unbounded, volume_bytes=most + 1))), Refusal)


# --- the paper ------------------------------------------------------------------------------------------------------------------

CHANNEL = 10_000_000_000  # 10 Gb/s
UNIT = 100_000  # 100 ms in microseconds
FIGURE_1 = [
    (DISTANT_PAST_US, 0),
    (50 * UNIT, CHANNEL),
    (60 * UNIT, 2 * CHANNEL),
    (70 * UNIT, 3 * CHANNEL),
    (80 * UNIT, 4 * CHANNEL),
]


@pytest.mark.parametrize(
    ("case", "gigabytes", "start", "channels", "rows"),
    [
        ("the worked example of section 3.2", 5, 50, 2, [(50, 60, 1), (60, 70, 2), (70, 75, 2)]),
        ("case 1: gamma <= Rmax, and the file ends before the next change", 1, 50, 2, [(50, 58, 1)]),
        ("case 1, ending exactly at the change", 1.25, 50, 2, [(50, 60, 1)]),
        ("cases 2 and 1: gamma <= Rmax, the file goes on", 2.5, 50, 4, [(50, 60, 1), (60, 65, 2)]),
        ("case 3: gamma > Rmax, and the file ends before the next change", 1, 61, 1, [(61, 69, 1)]),
        ("cases 4 and 3: gamma > Rmax, the file goes on", 2.5, 60, 1, [(60, 70, 1), (70, 80, 1)]),
        ("gamma = 0 skips ahead", 1.25, 10, 4, [(50, 60, 1)]),
        ("after the last change", 10, 100, 4, [(100, 120, 4)]),
    ],
)
def test_rounds_of_the_paper(case: str, gigabytes: float, start: int, channels: int, rows: list[tuple[int, int, int]]) -> None:
    network = Network([Link("L", "A", "B", 4 * CHANNEL, channel_bps=CHANNEL, slot_us=UNIT)])
    request = Request("r", "A", "B", int(gigabytes * 10**9), start * UNIT, rate_max_bps=channels * CHANNEL)
    plan = PLANNER.plan(request, network, {"L": Calendar(FIGURE_1)})
    assert isinstance(plan, Plan)
    assert [(s.begin_us / UNIT, s.end_us / UNIT, s.rate_bps / CHANNEL) for s in plan.segments] == rows, case


# --- refusals -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "field", "words", "changes"),
    [
        ("no_path", "source", "no link of the network touches 'Z'", {"source": "Z"}),
        ("no_path", "destination", "no link of the network touches 'Z'", {"destination": "Z"}),
        ("no_path", "destination", "no path leads from 'B' to 'A'", {"source": "B", "destination": "A"}),
        ("no_path", "path", "there is no link 'X'", {"options": Options(path=("X",))}),
        ("no_path", "path", "L/L does not lead from 'A' to 'B' without a loop", {"options": Options(path=("L", "L"))}),
        ("infeasible", "rate_max_bps", "channel 10", {"rate_max_bps": 9}),
        ("infeasible", "rate_min_bps", "at most 100 bit/s", {"rate_min_bps": 101}),
        ("infeasible", "deadline", "the deadline 1970-01-01T00:00:00.079999Z", {"deadline_us": 79_999}),
        ("infeasible", "volume_bytes", "never suffices", {"volume_bytes": 10**18}),
    ],
)
def test_a_refusal_says_why_and_which_field(code: str, field: str, words: str, changes: dict[str, object]) -> None:
    network = Network([Link("L", "A", "B", 100, channel_bps=10)])
    calendars = {"L": Calendar([(DISTANT_PAST_US, 100)])}
    request = Request("r", "A", "B", 1, 0)
    assert isinstance(PLANNER.plan(request, network, calendars), Plan)
    refusal = PLANNER.plan(replace(request, **changes), network, calendars)  # type: ignore[arg-type]
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.field) == (code, field)
    assert words in refusal.detail


def test_slots_that_never_meet_are_refused() -> None:
    """Two primes near a day: their slots meet every 237 years, and a third link's would outgrow 64 bits."""
    slots = (86_399_999_953, 86_399_999_921, 86_399_999_911)
    network = Network([Link(f"L{i}", f"N{i}", f"N{i + 1}", 100, slot_us=slot) for i, slot in enumerate(slots)])
    calendars = {f"L{i}": Calendar([(DISTANT_PAST_US, 100)]) for i in range(3)}
    refusal = PLANNER.plan(Request("r", "N0", "N3", 1, 0), network, calendars)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, "coincide only every" in refusal.detail) == ("infeasible", True)
