# SPDX-License-Identifier: Apache-2.0
"""`verify` against every rule checked microsecond by microsecond, on plans that were right before a mutation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link
from broker.core.plan import Plan, PlanRejected, verify
from broker.core.request import Request
from broker.core.segments import Segment, coalesce
from broker.planners.vbls import Vbls
from tests.core.grid import GridLink, Scenario, cases, plan_is_right, plannable


def accepts(scenario: Scenario, plan: Plan) -> bool:
    try:
        verify(scenario.request, plan, scenario.network.links, scenario.calendars)
    except PlanRejected:
        return False
    return True


# --- mutations of a plan that is right ------------------------------------------------------------------------------------------

Segments = list[Segment]
amounts = st.sampled_from([1, 2, 3, 5, 15, 100])
signs = st.sampled_from([1, -1])


def shift_begin(draw: Callable[..., int], rows: Segments, i: int) -> Segments:
    rows[i] = rows[i]._replace(begin_us=rows[i].begin_us + draw(amounts) * draw(signs))
    return rows


def shift_end(draw: Callable[..., int], rows: Segments, i: int) -> Segments:
    rows[i] = rows[i]._replace(end_us=rows[i].end_us + draw(amounts) * draw(signs))
    return rows


def shift_all(draw: Callable[..., int], rows: Segments, _: int) -> Segments:
    by = draw(amounts) * draw(signs)
    return [row._replace(begin_us=row.begin_us + by, end_us=row.end_us + by) for row in rows]


def change_rate(draw: Callable[..., int], rows: Segments, i: int) -> Segments:
    by = draw(st.sampled_from([1, 1_000, 500_000, 700_001, 1_000_000, 3_000_000])) * draw(signs)
    rows[i] = rows[i]._replace(rate_bps=rows[i].rate_bps + by)
    return rows


def drop(draw: Callable[..., int], rows: Segments, i: int) -> Segments:
    return rows[:i] + rows[i + 1 :]


def duplicate(draw: Callable[..., int], rows: Segments, i: int) -> Segments:
    return [*rows[: i + 1], *rows[i:]]


def swap(draw: Callable[..., int], rows: Segments, i: int) -> Segments:
    if i > 0:
        rows[i - 1], rows[i] = rows[i], rows[i - 1]
    return rows


def other_path(draw: Callable[..., tuple[str, ...]], rows: Segments, i: int) -> Segments:
    path = rows[i].path
    others = st.sampled_from([(), path[1:], path[:-1], path[::-1], (*path, path[0]), ("nowhere",), (*path, "nowhere")])
    rows[i] = rows[i]._replace(path=draw(others.filter(lambda other: other != path)))
    return rows


def extra_slot(draw: Callable[..., int], rows: Segments, i: int) -> Segments:
    last = rows[-1]
    length = draw(amounts)
    return [*rows, Segment(last.end_us, last.end_us + length, last.rate_bps, last.path)]


def split(draw: Callable[..., int], rows: Segments, i: int) -> Segments:
    """Often harmless: two rows at one rate are as good as one."""
    begin, end, rate, path = rows[i]
    middle = draw(st.integers(begin, end))
    return [*rows[:i], Segment(begin, middle, rate, path), Segment(middle, end, rate, path), *rows[i + 1 :]]


MUTATIONS = [shift_begin, shift_end, shift_all, change_rate, drop, duplicate, swap, other_path, extra_slot, split]


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
@cases(80)
@given(plannable(), st.data())
def test_a_mutated_plan_is_accepted_only_if_it_is_still_right(
    mutate: Callable[..., Any], scenario: Scenario, data: st.DataObject
) -> None:
    plan = Vbls().plan(scenario.request, scenario.network, scenario.calendars)
    assert isinstance(plan, Plan)
    assert accepts(scenario, plan)
    assert plan_is_right(scenario, plan)
    rows = mutate(data.draw, list(plan.segments), data.draw(st.integers(0, len(plan.segments) - 1)))
    mutant = Plan(tuple(rows))
    assert accepts(scenario, mutant) == plan_is_right(scenario, mutant)


@cases(120)
@given(plannable(), st.data())
def test_a_plan_is_refused_once_somebody_else_has_booked_there(scenario: Scenario, data: st.DataObject) -> None:
    plan = Vbls().plan(scenario.request, scenario.network, scenario.calendars)
    assert isinstance(plan, Plan)
    segment = data.draw(st.sampled_from(plan.segments))
    instant = data.draw(st.integers(segment.begin_us, segment.end_us - 1))
    link_id = data.draw(st.sampled_from(segment.path))
    calendars = scenario.calendars
    left = calendars[link_id].free_at(instant) - segment.rate_bps
    calendars[link_id].book(instant, instant + 1, left + 1)
    with pytest.raises(PlanRejected, match=f"books {segment.rate_bps} bit/s on {link_id}, which is not free"):
        verify(scenario.request, plan, scenario.network.links, calendars)
    calendars[link_id].release(instant, instant + 1, 1)
    verify(scenario.request, plan, scenario.network.links, calendars)


# --- each rule once, with its words ---------------------------------------------------------------------------------------------

# 100 Mb/s in channels of 10, slots of 10 us. 250 bytes are 2000 bits: [100, 110) at 80, [120, 130) at 50, [130, 140) at 70 Mb/s.
MEGA = 1_000_000
SCENARIO = Scenario(
    (GridLink("L0", 0, np.full(1, 100 * MEGA), 10 * MEGA, 10),),
    Request("r", "N0", "N1", 250, 100, rate_max_bps=80 * MEGA, rate_min_bps=50 * MEGA, deadline_us=140),
)
P = ("L0",)
ROWS = (Segment(100, 110, 80 * MEGA, P), Segment(120, 130, 50 * MEGA, P), Segment(130, 140, 70 * MEGA, P))


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("no segments", []),
        ("segment begins at 90, before 100", [Segment(90, 110, 80 * MEGA, P), *ROWS[1:]]),
        ("empty segment", [ROWS[0], Segment(120, 120, 50 * MEGA, P), ROWS[2]]),
        ("empty segment", [ROWS[0], Segment(130, 120, 50 * MEGA, P), ROWS[2]]),
        ("begins at 120, before 130", [ROWS[0], Segment(120, 130, 50 * MEGA, P), Segment(120, 140, 70 * MEGA, P)]),
        ("after the deadline 140", [*ROWS[:2], Segment(130, 150, 70 * MEGA, P)]),
        ("above rate_max_bps", [Segment(100, 110, 90 * MEGA, P), *ROWS[1:]]),
        ("below rate_min_bps", [ROWS[0], Segment(120, 130, 40 * MEGA, P), ROWS[2]]),
        ("is not positive", [Segment(100, 110, -80 * MEGA, P), *ROWS[1:]]),
        ("not a multiple of 10000000", [ROWS[0], Segment(120, 130, 50 * MEGA + 1, P), ROWS[2]]),
        ("off the 10 us slots", [Segment(100, 109, 80 * MEGA, P), *ROWS[1:]]),
        ("does not lead from N0 to N1", [Segment(100, 110, 80 * MEGA, ()), *ROWS[1:]]),
        ("does not lead from N0 to N1", [Segment(100, 110, 80 * MEGA, ("L0", "L0")), *ROWS[1:]]),
        ("does not lead from N0 to N1", [Segment(100, 110, 80 * MEGA, ("L1",)), *ROWS[1:]]),
        ("2000000000 are asked", [*ROWS[:2], Segment(130, 140, 60 * MEGA, P)]),
        (
            "it would end a slot earlier",
            [Segment(at, at + 10, rate * MEGA, P) for at, rate in ((100, 50), (110, 80), (120, 70), (130, 50))],
        ),
        ("it would end a slot earlier", [Segment(100, 120, 80 * MEGA, P), *ROWS[1:]]),
    ],
)
def test_every_rule_has_its_words(words: str, rows: list[Segment]) -> None:
    network, calendars = SCENARIO.network, SCENARIO.calendars
    verify(SCENARIO.request, Plan(ROWS), network.links, calendars)
    with pytest.raises(PlanRejected, match=f"request r: .*{words}"):
        verify(SCENARIO.request, Plan(tuple(rows)), network.links, calendars)


def test_all_links_of_a_path_are_checked() -> None:
    links = {"a": Link("a", "A", "B", 100), "b": Link("b", "B", "C", 100)}
    calendars = {"a": Calendar([(DISTANT_PAST_US, 100)]), "b": Calendar([(DISTANT_PAST_US, 99)])}
    plan = Plan((Segment(0, 80_000, 100, ("a", "b")),))
    with pytest.raises(PlanRejected, match="on b, which is not free"):
        verify(Request("r", "A", "C", 1, 0), plan, links, calendars)


@dataclass(frozen=True)
class Holding:
    """A class-2 request (section 5 of the paper): 95 us held from 100 on, on slots of 10 us."""

    rows: tuple[tuple[int, int], ...]
    words: str | None = None


@pytest.mark.parametrize(
    "case",
    [
        Holding(((100, 200),)),
        Holding(((100, 150), (150, 200))),
        Holding(((100, 150), (160, 210)), "pauses within the holding time"),
        Holding(((100, 190),), "holds for 90 us, 95 us are asked"),
        Holding(((100, 210),), "holds for 110 us, 95 us are asked"),
    ],
)
def test_a_holding_time_is_held_without_a_pause(case: Holding) -> None:
    request = replace(SCENARIO.request, volume_bytes=None, duration_us=95, deadline_us=None)
    plan = Plan(tuple(Segment(begin, end, 50 * MEGA, P) for begin, end in case.rows))
    network, calendars = SCENARIO.network, SCENARIO.calendars
    if case.words is None:
        verify(request, plan, network.links, calendars)
        return
    with pytest.raises(PlanRejected, match=case.words):
        verify(request, plan, network.links, calendars)


def test_a_plan_knows_its_start_finish_and_volume() -> None:
    plan = Plan(ROWS)
    assert (plan.start_us, plan.finish_us, plan.volume_bytes) == (100, 140, 250)


@cases(100)
@given(
    st.integers(-50, 50),
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3), st.integers(1, 2), st.sampled_from([P, ("L1",)])), max_size=8),
)
def test_coalesced_rows_say_the_same_in_fewest_rows(begin: int, pieces: list[tuple[int, int, int, tuple[str, ...]]]) -> None:
    rows: list[Segment] = []
    for gap, length, rate, path in pieces:
        begin += gap
        rows.append(Segment(begin, begin + length, rate, path))
        begin += length
    few = coalesce(rows)

    def moments(segments: Sequence[Segment]) -> list[tuple[int, int, tuple[str, ...]]]:
        return [(t, s.rate_bps, s.path) for s in segments for t in range(s.begin_us, s.end_us)]

    assert moments(few) == moments(rows)
    assert not any(a.end_us == b.begin_us and a[2:] == b[2:] for a, b in pairwise(few))
