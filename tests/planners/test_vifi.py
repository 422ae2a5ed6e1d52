# SPDX-License-Identifier: Apache-2.0
"""Nobody finishes later than under fair sharing; and where order alone sees to that, transfers go one at a time."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.cli.network_file import read_network
from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Options, Request
from broker.core.units import US_PER_S
from broker.planners import vifi
from broker.planners.ifs import Ifs
from broker.planners.vbls import Vbls
from broker.planners.vifi import Vifi
from tests.core.grid import Scenario, any_scenarios, cases
from tests.planners.fluid_oracle import Drop, fair_finishes
from tests.planners.joint import BYTE_PER_US, Batch, batches, fit_side_by_side

PLANNER = Vifi()
ESNET = Path(__file__).parents[1] / "data/esnet-network.json"


def planned(batch: Batch) -> list[Plan | Refusal]:
    answers = list(PLANNER.plan_together(batch.requests, batch.network, batch.calendars()))
    fit_side_by_side(batch, answers)
    return answers


def assert_nobody_is_later_than_under_fair_sharing(batch: Batch) -> None:
    fair = Ifs().plan_together(batch.requests, batch.network, batch.calendars())
    for request, ours, theirs in zip(batch.requests, planned(batch), fair, strict=True):
        if isinstance(theirs, Plan):
            assert isinstance(ours, Plan), (request, ours)
            assert ours.finish_us <= theirs.finish_us, request


@cases(150)
@given(batches())
def test_nobody_is_later_than_under_fair_sharing(batch: Batch) -> None:
    assert_nobody_is_later_than_under_fair_sharing(batch)


@cases(100)
@given(batches(grids=True))
def test_nor_with_channels_and_slots(batch: Batch) -> None:
    assert_nobody_is_later_than_under_fair_sharing(batch)


@pytest.mark.parametrize(("rounds", "attempts", "patience"), [(0, 8, 1_000), (1, 0, 1_000), (1, 1, 1_000), (2, 8, 0), (0, 2, 200)])
@cases(30)
@given(batches(grids=True, most=14))
def test_nor_when_patience_ends_at_any_point(rounds: int, attempts: int, patience: int, batch: Batch) -> None:
    with (
        patch.object(vifi, "_MAX_ROUNDS", rounds),
        patch.object(vifi, "_MAX_ATTEMPTS", attempts),
        patch.object(vifi, "_PATIENCE", patience),
        patch.object(vifi, "_PATIENCE_OF_FEW", patience),
    ):
        assert_nobody_is_later_than_under_fair_sharing(batch)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_hundred_and_fifty_transfers_on_a_real_network(seed: int) -> None:
    import random

    draw = random.Random(seed)
    network = read_network(ESNET).network
    nodes = sorted(network.nodes)
    requests = []
    for i in range(150):
        source, destination = draw.sample(nodes, 2)
        begin = draw.randrange(1_800 * US_PER_S)
        requests.append(
            Request(
                str(i),
                source,
                destination,
                int(10 ** draw.uniform(11, 14)),
                begin,
                rate_max_bps=draw.choice([None, 10**10, 4 * 10**10, 10**11]),
                deadline_us=draw.choice([None, begin + draw.randrange(1, 20_000) * US_PER_S]),
            )
        )
    assert_nobody_is_later_than_under_fair_sharing(Batch(network, tuple(requests)))


# --- one at a time ------------------------------------------------------------------------------------------------------------------------


@cases(150)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40)), min_size=1, max_size=12))
def test_on_one_link_without_caps_the_next_byte_goes_to_the_smallest_virtual_finish(drawn: list[tuple[int, int]]) -> None:
    """A link that carries a byte a microsecond, and an oracle that hands them out one by one."""
    batch = Batch(
        Network([Link("l", "A", "B", BYTE_PER_US)]),
        tuple(Request(f"r{i}", "A", "B", volume, begin) for i, (begin, volume) in enumerate(drawn)),
    )
    exact = fair_finishes(
        [Drop(("l",), begin, volume * 8, BYTE_PER_US) for begin, volume in drawn], {"l": [(DISTANT_PAST_US, BYTE_PER_US)]}
    )
    virtual = [finish for finish in exact if finish is not None]
    assert len(virtual) == len(drawn)
    left = [volume for _, volume in drawn]
    finishes = [0] * len(drawn)
    for moment in range(60 + sum(left) + 1):
        here = [i for i, (begin, _) in enumerate(drawn) if begin <= moment and left[i] > 0]
        if here:
            first = min(here, key=lambda i: (virtual[i], i))
            left[first] -= 1
            finishes[first] = moment + 1
    answers = planned(batch)
    ours = [answer.finish_us for answer in answers if isinstance(answer, Plan)]
    # Integers may swap two whose virtual finishes are less than some microseconds apart: their order is then ours to choose.
    close = any(abs(a - b) < 20 for k, a in enumerate(virtual) for b in virtual[:k])
    assert (ours == finishes or close) and sum(ours) <= sum(finish for finish in map(float, virtual)) + 20 * len(drawn)
    assert all(finish <= float(fair) + 2 + len(drawn) for finish, fair in zip(ours, virtual, strict=True))


def test_table_1_of_the_report() -> None:
    """Soudan, Guillier, Primet 2007: two transfers, the second twice the first, on one link: v1 / C and (v1 + v2) / C."""
    v1, capacity = 15_000_000_000, 949_290_000
    network = Network([Link("dumbbell", "s", "S", capacity)])
    batch = Batch(network, (Request("2", "s", "S", 2 * v1, 0), Request("1", "s", "S", v1, 0)))
    second, first = planned(batch)
    assert isinstance(first, Plan)
    assert isinstance(second, Plan)
    assert [segment.rate_bps for segment in (*first.segments, *second.segments)] == [capacity, capacity]
    assert first.finish_us == pytest.approx(v1 * 8e6 / capacity, abs=1)
    assert second.finish_us == pytest.approx(3 * v1 * 8e6 / capacity, abs=2)


def test_a_cap_that_order_alone_would_break() -> None:
    """C = 2, and 2.2 units at a rate of 1 at most: behind the first it would end at 3.2, and under fair sharing it ends at 2.2."""
    unit = 10**9
    network = Network([Link("l", "A", "B", 2 * 8 * unit)])
    first = Request("1", "A", "B", 2 * unit, 0)
    batch = Batch(network, (first, Request("2", "A", "B", unit * 22 // 10, 0, rate_max_bps=8 * unit)))
    assert [answer.finish_us for answer in planned(batch) if isinstance(answer, Plan)] == [2 * US_PER_S, 2_200_000]
    # With a third one that can wait, the first two are faster than under fair sharing.
    more = replace(batch, requests=(*batch.requests, Request("3", "A", "B", 10 * unit, 0)))
    fair = Ifs().plan_together(more.requests, network, more.calendars())
    ours = planned(more)
    gains = [b.finish_us - a.finish_us for a, b in zip(ours, fair, strict=True) if isinstance(a, Plan) and isinstance(b, Plan)]
    assert gains[0] > US_PER_S // 10
    assert gains[1] >= 0, "its cap binds it now"
    assert gains[2] >= 0


def test_pushing_is_worth_it() -> None:
    """Where order alone fails, here on a line of links, much of what it would give is had all the same."""
    import random

    draw = random.Random(1)
    network = Network([Link(f"l{i}", f"N{i}", f"N{i + 1}", draw.choice([10, 20, 40]) * 10**9) for i in range(4)])
    requests = []
    for i in range(40):
        first = draw.randrange(4)
        last = draw.randrange(first + 1, 5)
        requests.append(Request(str(i), f"N{first}", f"N{last}", int(10 ** draw.uniform(10, 13)), draw.randrange(3_600 * US_PER_S)))
    batch = Batch(network, tuple(requests))
    assert_nobody_is_later_than_under_fair_sharing(batch)
    fair = Ifs().plan_together(batch.requests, network, batch.calendars())
    ours, theirs = (sum(a.finish_us for a in answers if isinstance(a, Plan)) for answers in (planned(batch), fair))
    begun = sum(request.not_before_us for request in requests)
    assert (ours - begun) < 0.9 * (theirs - begun)


# --- deadlines, single requests, what is not taken ------------------------------------------------------------------------------------------


def test_who_would_be_late_under_fair_sharing_may_be_in_time_here() -> None:
    network = Network([Link("l", "A", "B", 800)])
    urgent = Request("urgent", "A", "B", 100, 0, deadline_us=1 * US_PER_S)
    batch = Batch(network, (Request("long", "A", "B", 300, 0), urgent))
    assert isinstance(Ifs().plan_together(batch.requests, network, batch.calendars())[1], Refusal)
    plan, other = planned(batch)[1], planned(batch)[0]
    assert isinstance(plan, Plan)
    assert isinstance(other, Plan)
    assert (plan.finish_us, other.finish_us) == (1 * US_PER_S, 4 * US_PER_S)


def test_who_misses_its_deadline_is_refused_and_takes_nothing() -> None:
    network = Network([Link("l", "A", "B", 800)])
    lost = Request("lost", "A", "B", 200, 0, deadline_us=1_500_000)
    batch = Batch(network, (Request("first", "A", "B", 100, 0), lost, Request("last", "A", "B", 250, 0)))
    first, refusal, last = planned(batch)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.field) == ("infeasible", "deadline")
    assert isinstance(first, Plan)
    assert isinstance(last, Plan)
    assert (first.finish_us, last.finish_us) == (1 * US_PER_S, 3_500_000)


@cases(100)
@given(any_scenarios)
def test_alone_it_is_vbls(scenario: Scenario) -> None:
    arguments = scenario.request, scenario.network, scenario.calendars
    assert PLANNER.plan(*arguments) == Vbls().plan(*arguments)
    assert list(PLANNER.plan_together([scenario.request], *arguments[1:])) == [Vbls().plan(*arguments, fewest_rows=True)]


@pytest.mark.parametrize("together", [False, True])
def test_holding_times_are_not_taken(together: bool) -> None:
    network = Network([Link("l", "A", "B", 800)])
    request = Request("r", "A", "B", None, 0, duration_us=1)
    calendars = {"l": Calendar([(DISTANT_PAST_US, 800)])}
    answer = PLANNER.plan_together([request], network, calendars)[0] if together else PLANNER.plan(request, network, calendars)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.field) == ("unsupported", "duration_s")


def test_limits_on_reprogramming_are_kept_even_where_fair_sharing_cannot() -> None:
    network = Network([Link("l", "A", "B", 800)])
    limited = Request("limited", "A", "B", 200, 0, options=Options(most_segments=1))
    batch = Batch(network, (Request("other", "A", "B", 100, 0), limited))
    assert isinstance(Ifs().plan_together(batch.requests, network, batch.calendars())[1], Refusal)
    plan = planned(batch)[1]
    assert isinstance(plan, Plan)
    assert len(plan.segments) == 1


@cases(60)
@given(batches(grids=True))
@example(Batch(Network([]), ()))
def test_calendars_are_only_read_and_the_answer_is_the_same_again(batch: Batch) -> None:
    calendars = batch.calendars()
    first = PLANNER.plan_together(batch.requests, batch.network, calendars)
    assert {link: calendar.steps() for link, calendar in calendars.items()} == {
        link: calendar.steps() for link, calendar in batch.calendars().items()
    }
    assert PLANNER.plan_together(batch.requests, batch.network, calendars) == first
