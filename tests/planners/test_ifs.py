# SPDX-License-Identifier: Apache-2.0
"""Fair sharing in integers is what it is in exact fractions, fits the network, and leaves nothing that somebody could use."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Options, Request
from broker.core.units import MAX_RATE_BPS, MAX_VOLUME_BYTES, US_PER_S
from broker.planners.fluid import Flow, share_fairly
from broker.planners.ifs import Ifs
from broker.planners.vbls import Vbls
from tests.core.grid import Scenario, any_scenarios, cases
from tests.planners.fluid_oracle import Drop, fair_finishes, fair_rates
from tests.planners.joint import Batch, batches, fit_side_by_side

PLANNER = Ifs()
GIGA = 10**9


# --- against exact fractions ------------------------------------------------------------------------------------------------------------


def scattered(seed: int) -> tuple[list[Flow], dict[str, list[tuple[int, int]]]]:
    """Numbers that do not come out even, flows that their caps bind about as often as links do."""
    random = np.random.default_rng(seed)
    links = [f"l{i}" for i in range(random.integers(1, 5))]
    gammas = {}
    for link in links:
        times = sorted(random.choice(60 * US_PER_S, random.integers(0, 4), replace=False).tolist())
        levels = [int(random.integers(0, 5 * GIGA)) * int(random.integers(0, 4) > 0) for _ in times]
        gammas[link] = [(DISTANT_PAST_US, int(random.integers(GIGA // 10, 5 * GIGA))), *zip(times, levels, strict=True)]
    flows = []
    for _ in range(random.integers(1, 13)):
        path = tuple(random.choice(links, min(int(random.integers(1, 4)), len(links)), replace=False).tolist())
        begin = int(random.choice([0, 0, int(random.integers(0, 60 * US_PER_S))]))
        flows.append(Flow(path, begin, int(random.integers(GIGA // 100, 50 * GIGA)), int(random.integers(GIGA // 10, 2 * GIGA))))
    return flows, gammas


@cases(120)
@given(st.integers(0, 2**32 - 1))
def test_finishes_are_those_of_the_exact_fluid(seed: int) -> None:
    flows, gammas = scattered(seed)
    shares = share_fairly(flows, {link: Calendar(steps) for link, steps in gammas.items()})
    exact = fair_finishes([Drop(f.path, f.begin_us, f.bits, f.rate_max) for f in flows], gammas)
    for flow, share, finish in zip(flows, shares, exact, strict=True):
        if finish is None:
            assert share.finish_us is None
        else:
            # Rates are rounded by less than ten bit/s of 1e7 and more, and finishes up to a microsecond.
            assert share.finish_us == pytest.approx(float(finish), abs=100, rel=1e-5), flow


@cases(250)
@given(st.integers(0, 2**32 - 1))
@example(16)
@example(339)
def test_rates_are_max_min_fair_at_every_instant(seed: int) -> None:
    flows, gammas = scattered(seed)
    shares = share_fairly(flows, {link: Calendar(steps) for link, steps in gammas.items()})
    instants = {flow.begin_us for flow in flows} | {begin for steps in gammas.values() for begin, _ in steps[1:]}
    instants |= {share.finish_us for share in shares if share.finish_us is not None}
    for instant in sorted(instants):
        here = [
            i
            for i, (flow, share) in enumerate(zip(flows, shares, strict=True))
            if flow.begin_us <= instant and share.finish_us is not None and instant < share.finish_us
        ]
        if any(share.finish_us is None and flow.begin_us <= instant for flow, share in zip(flows, shares, strict=True)):
            continue  # the rates of those that never end are not told
        free = {link: [rate for begin, rate in steps if begin <= instant][-1] for link, steps in gammas.items()}
        exact = fair_rates([Drop(f.path, f.begin_us, f.bits, f.rate_max) for f in (flows[i] for i in here)], free)
        for i, rate in zip(here, exact, strict=True):
            ours = next((row[2] for row in shares[i].rows.tolist() if row[0] <= instant < row[1]), 0)
            assert abs(ours - rate) <= 2 * len(flows), "whole bit/s, and what remains goes to the first"


def test_table_1_of_the_report() -> None:
    """Soudan, Guillier, Primet 2007: two transfers, the second twice the first, on one link: 2 v1 / C and (v1 + v2) / C."""
    v1, capacity = 15_000_000_000, 949_290_000
    network = Network([Link("dumbbell", "s", "S", capacity)])
    requests = [Request("1", "s", "S", v1, 0), Request("2", "s", "S", 2 * v1, 0)]
    first, second = PLANNER.plan_together(requests, network, {"dumbbell": Calendar(network.links["dumbbell"].capacity())})
    assert isinstance(first, Plan)
    assert isinstance(second, Plan)
    assert first.finish_us == pytest.approx(2 * v1 * 8e6 / capacity, abs=2)
    assert second.finish_us == pytest.approx(3 * v1 * 8e6 / capacity, abs=2)
    assert [segment.rate_bps for segment in second.segments] == [capacity // 2, capacity]


def test_of_two_links_the_one_that_can_give_less_settles_first() -> None:
    """The classic: a long flow over both links, a short one on each. The long one gets a half of 4, and the other short one 8."""
    calendars = {"a": Calendar([(DISTANT_PAST_US, 10)]), "b": Calendar([(DISTANT_PAST_US, 4)])}
    flows = [Flow(("a", "b"), 0, 1_000, 10), Flow(("a",), 0, 1_000, 10), Flow(("b",), 0, 1_000, 10)]
    assert [share.rows[0, 2] for share in share_fairly(flows, calendars)] == [2, 8, 2]
    capped = [flows[0], flows[1], flows[2]._replace(rate_max=1)]
    assert [share.rows[0, 2] for share in share_fairly(capped, calendars)] == [3, 7, 1]


def test_what_does_not_divide_goes_to_whoever_began_first() -> None:
    calendar = Calendar([(DISTANT_PAST_US, 11)])
    flows = [Flow(("l",), 5, 10**6, 11), Flow(("l",), 0, 10**6, 11), Flow(("l",), 5, 10**6, 11)]
    shares = share_fairly(flows, {"l": calendar})
    at_5 = [next(rate for begin, end, rate in share.rows.tolist() if begin <= 5 < end) for share in shares]
    assert at_5 == [4, 4, 3]
    assert shares[1].rows[0].tolist() == [0, 5, 11]


def test_flows_that_share_nothing_do_not_see_each_other() -> None:
    calendars = {link: Calendar([(DISTANT_PAST_US, 10)]) for link in "ab"}
    alone = share_fairly([Flow(("a",), 0, 100, 10)], calendars)[0]
    beside = share_fairly([Flow(("a",), 0, 100, 10), Flow(("b",), 3, 50, 10, slot=1_000_003)], calendars)[0]
    assert (alone.finish_us, alone.grid_us, alone.rows.tolist()) == (beside.finish_us, beside.grid_us, beside.rows.tolist())


# --- channels, slots, least rates ---------------------------------------------------------------------------------------------------------


@cases(150)
@given(batches(grids=True))
def test_all_plans_fit_side_by_side_and_nothing_useful_is_left(batch: Batch) -> None:
    fit_side_by_side(batch, PLANNER.plan_together(batch.requests, batch.network, batch.calendars()))
    flows = [
        Flow(route.path, r.not_before_us, (r.volume_bytes or 0) * 8, cap, r.rate_min_bps or 0, route.channel_bps, route.slot_us)
        for r in batch.requests
        if (route := batch.network.route(r.source, r.destination))
        and (cap := min(r.rate_max_bps or 10**12, route.ceiling_bps) // route.channel_bps * route.channel_bps)
    ]
    if not flows:
        return
    flows = [flow._replace(rate_min=min(flow.rate_min, flow.rate_max)) for flow in flows]
    calendars = batch.calendars()
    shares = share_fairly(flows, calendars)
    left = batch.calendars()
    for flow, share in zip(flows, shares, strict=True):
        for begin, end, rate in share.rows.tolist():
            assert flow.rate_min <= rate <= flow.rate_max
            assert rate % flow.channel == 0
            for link in flow.path:
                left[link].book(begin, end, rate)
    for calendar in left.values():
        assert (calendar.free[: calendar.n] >= 0).all()
    for flow, share in zip(flows, shares, strict=True):
        if share.finish_us is None:
            continue
        instants = sorted({t for c in left.values() for t, _ in c.steps() if flow.begin_us < t < share.finish_us} | {flow.begin_us})
        for instant in instants:
            begin = -(-instant // share.grid_us) * share.grid_us
            end = begin + share.grid_us
            if end > share.finish_us // share.grid_us * share.grid_us:
                continue
            rate = next((rate for a, b, rate in share.rows.tolist() if a <= begin < b), 0)
            more = min(left[link].lowest(begin, end) for link in flow.path)
            more = min(more, flow.rate_max - rate) // flow.channel * flow.channel
            # Another flow that ends inside this stretch of the grid leaves room that nobody may take before its end.
            ends_here = any(s.finish_us is not None and begin < s.finish_us < end for s in shares)
            assert ends_here or more == 0 or rate + more < flow.rate_min, (flow, instant)


def test_who_cannot_have_its_least_rate_waits_the_last_one_first() -> None:
    """Three channels for five flows that need one each: the last two wait, and begin as soon as others end."""
    network = Network([Link("l", "A", "B", 35, channel_bps=10)])
    requests = [Request(f"r{i}", "A", "B", 5, 0) for i in range(5)]
    plans = PLANNER.plan_together(requests, network, {"l": Calendar([(DISTANT_PAST_US, 35)])})
    rows = [[(s.begin_us, s.end_us, s.rate_bps) for s in plan.segments] for plan in plans if isinstance(plan, Plan)]
    four, six = 4 * US_PER_S, 6 * US_PER_S
    assert rows == [[(0, four, 10)]] * 3 + [[(four, six, 20)], [(four, six, 10), (six, 6_666_667, 30)]]


@cases(100)
@given(any_scenarios)
def test_alone_it_is_vbls(scenario: Scenario) -> None:
    ours = PLANNER.plan(scenario.request, scenario.network, scenario.calendars)
    theirs = Vbls().plan(scenario.request, scenario.network, scenario.calendars, fewest_rows=True)
    assert isinstance(ours, Plan) == isinstance(theirs, Plan)
    if isinstance(ours, Plan):
        assert ours == theirs
    if scenario.request.deadline_us is not None:
        arguments = scenario.request, scenario.network, scenario.calendars
        assert PLANNER.largest_volume(*arguments) == Vbls().largest_volume(*arguments)


@pytest.mark.parametrize("volume", [1, 10**9 + 7, MAX_VOLUME_BYTES])
@pytest.mark.parametrize("capacity", [1, 10**9, MAX_RATE_BPS])
def test_extreme_numbers(volume: int, capacity: int) -> None:
    network = Network([Link("l", "A", "B", capacity)])
    batch = Batch(network, tuple(Request(f"r{i}", "A", "B", volume, 0) for i in range(3)))
    answers = PLANNER.plan_together(batch.requests, network, batch.calendars())
    fit_side_by_side(batch, answers)
    exact = fair_finishes([Drop(("l",), 0, volume * 8, capacity)] * 3, {"l": [(DISTANT_PAST_US, capacity)]})
    for answer, finish in zip(answers, exact, strict=True):
        assert finish is not None
        if isinstance(answer, Plan):
            assert answer.finish_us == pytest.approx(float(finish), rel=1e-6, abs=3) or capacity < 3
        else:
            assert finish > 2 * 10**17, "no time stamp names it"


# --- what is asked ------------------------------------------------------------------------------------------------------------------------

NETWORK = Network([Link("l", "A", "B", 800)])


def answers_to(*requests: Request) -> list[Plan | Refusal]:
    return list(PLANNER.plan_together(requests, NETWORK, {"l": Calendar([(DISTANT_PAST_US, 800)])}))


def test_who_would_be_late_takes_its_share_all_the_same() -> None:
    early, late = Request("1", "A", "B", 100, 0), Request("2", "A", "B", 100, 0, deadline_us=1_500_000)
    plan, refusal = answers_to(early, late)
    assert isinstance(plan, Plan)
    assert plan.finish_us == 2 * US_PER_S
    assert refusal == Refusal(
        "infeasible",
        "under fair sharing it would finish at 1970-01-01T00:00:02Z, after the deadline 1970-01-01T00:00:01.500000Z",
        "deadline",
    )


@pytest.mark.parametrize(
    ("code", "field", "words", "changes"),
    [
        ("no_path", "source", "'Z'", {"source": "Z"}),
        ("no_path", "destination", "'Z'", {"destination": "Z"}),
        ("unsupported", "duration_s", "give volume_bytes", {"volume_bytes": None, "duration_us": 1}),
        ("infeasible", "rate_min_bps", "801", {"rate_min_bps": 801}),
        ("infeasible", "volume_bytes", "never finish", {"volume_bytes": MAX_VOLUME_BYTES}),
        ("unsupported", "most_segments", "takes 2 segments", {"options": Options(most_segments=1), "volume_bytes": 200}),
        (
            "unsupported",
            "shortest_segment_s",
            "a segment of 2.000000 s, at least 3.000000 s",
            {"options": Options(shortest_segment_us=3 * US_PER_S), "volume_bytes": 200},
        ),
    ],
)
def test_a_refusal_says_why_and_which_field(code: str, field: str, words: str, changes: dict[str, object]) -> None:
    other = Request("1", "A", "B", 100, 0)
    refusal = answers_to(other, replace(other, id="2", **changes))[1]  # type: ignore[arg-type]
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.field) == (code, field)
    assert words in refusal.detail


def test_slots_that_never_meet_are_refused() -> None:
    """Each path has slots that a plan can keep, but the two flows share a link and can hardly ever change together."""
    slots = (86_399_999_953, 86_399_999_921)
    links = [Link("l", "A", "B", 100), *(Link(f"x{i}", "B", f"C{i}", 100, slot_us=slot) for i, slot in enumerate(slots))]
    batch = Batch(Network(links), (Request("1", "A", "C0", 1, 0), Request("2", "A", "C1", 1, 0)))
    for answer in PLANNER.plan_together(batch.requests, batch.network, batch.calendars()):
        assert isinstance(answer, Refusal)
        assert "coincide only every" in answer.detail
    assert isinstance(PLANNER.plan(batch.requests[0], batch.network, batch.calendars()), Plan)


def test_nothing_is_asked_of_nobody() -> None:
    assert answers_to() == []


@cases(60)
@given(batches(grids=True))
@example(Batch(NETWORK, ()))
def test_calendars_are_only_read_and_the_answer_is_the_same_again(batch: Batch) -> None:
    calendars = batch.calendars()
    first = PLANNER.plan_together(batch.requests, batch.network, calendars)
    assert {link: calendar.steps() for link, calendar in calendars.items()} == {
        link: calendar.steps() for link, calendar in batch.calendars().items()
    }
    assert PLANNER.plan_together(batch.requests, batch.network, calendars) == first
    for plan in first:
        if isinstance(plan, Plan):
            assert all(a.end_us < b.begin_us or a.rate_bps != b.rate_bps for a, b in pairwise(plan.segments)), (
                "as few rows as can be"
            )
