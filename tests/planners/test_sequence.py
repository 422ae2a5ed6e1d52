# SPDX-License-Identifier: Apache-2.0
"""Requests one after the other: each sees what the ones before it left, and the metrics are true."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.network import Link, Network
from broker.core.plan import Plan, PlanRejected, Refusal
from broker.core.request import Request
from broker.core.segments import Segment
from broker.planners import PLANNERS
from broker.planners.sequence import Schedule, plan_all
from broker.planners.vbls import Vbls
from broker.planners.vifi import Vifi
from tests.core.grid import cases

MEGA = 1_000_000
LINKS = [
    Link("ab", "A", "B", 20 * MEGA, available=((40, 3 * MEGA), (90, 20 * MEGA))),
    Link("bc", "B", "C", 12 * MEGA + 7),
    Link("ca", "C", "A", 16 * MEGA, channel_bps=4 * MEGA, slot_us=5),
]
NETWORK = Network(LINKS)


@st.composite
def requests(draw: st.DrawFn) -> list[Request]:
    rows = []
    for i in range(draw(st.integers(0, 12))):
        source, destination = tuple(draw(st.sampled_from(["AB", "AC", "BC", "BA", "CA", "CB", "AZ"])))
        begin = draw(st.integers(0, 120))
        deadline = draw(st.one_of(st.none(), st.integers(begin + 1, begin + 200)))
        rate_max = draw(st.one_of(st.none(), st.integers(MEGA, 20 * MEGA)))
        rows.append(Request(f"r{i}", source, destination, draw(st.integers(1, 60)), begin, rate_max, deadline_us=deadline))
    return rows


def usage(schedule: Schedule) -> dict[tuple[str, int], int]:
    """(link, microsecond) -> booked rate."""
    booked: dict[tuple[str, int], int] = {}
    for plan in schedule.plans:
        for begin, end, rate, path in plan.segments:
            for link_id in path:
                for moment in range(begin, end):
                    booked[link_id, moment] = booked.get((link_id, moment), 0) + rate
    return booked


@pytest.mark.parametrize("name", sorted(PLANNERS.keys() - {"optimal"}))  # it asks solvers, and has tests of its own
@cases(100)
@given(requests())
def test_nothing_is_overbooked_and_the_metrics_are_true(name: str, asked: list[Request]) -> None:
    schedule = plan_all(PLANNERS[name], asked, NETWORK)
    assert [decision.request for decision in schedule.decisions] == asked
    booked = usage(schedule)
    for (link_id, moment), rate in booked.items():
        assert rate <= [level for begin, level in NETWORK.links[link_id].capacity() if begin <= moment][-1]
    shares = [Fraction(rate, NETWORK.links[link_id].capacity_bps) for (link_id, _), rate in booked.items()]
    assert schedule.congestion_factor == max(shares, default=0)
    finishes = [plan.finish_us for plan in schedule.plans]
    assert schedule.makespan_us == (max(finishes) - min(request.not_before_us for request in asked) if finishes else 0)
    assert plan_all(PLANNERS[name], asked, NETWORK) == schedule, "the same inputs, the same answer"


@pytest.mark.parametrize("name", [name for name in sorted(PLANNERS) if not PLANNERS[name].traits.joint])
@cases(60)
@given(requests())
def test_refused_requests_book_nothing_and_later_ones_change_nothing(name: str, asked: list[Request]) -> None:
    schedule = plan_all(PLANNERS[name], asked, NETWORK)
    admitted = [decision.request for decision in schedule.decisions if isinstance(decision.answer, Plan)]
    alone = plan_all(PLANNERS[name], admitted, NETWORK)
    assert alone.plans == schedule.plans
    assert plan_all(PLANNERS[name], asked[:3], NETWORK).decisions == schedule.decisions[:3]
    for decision in schedule.decisions:
        assert (decision.offer is not None) == isinstance(decision.answer, Refusal)


def test_what_a_joint_planner_offers_is_free_beside_all_of_its_plans() -> None:
    """The first one is refused before the second one is booked; what it is offered comes after that one all the same."""
    lost = Request("lost", "B", "C", 100, 0, deadline_us=60)
    schedule = plan_all(Vifi(), [lost, Request("other", "B", "C", 30, 0)], NETWORK)
    refused, served = schedule.decisions
    assert isinstance(refused.answer, Refusal)
    assert isinstance(served.answer, Plan)
    assert refused.offer is not None
    assert refused.offer.earliest_finish_us == served.answer.finish_us + 67
    assert refused.offer.largest_volume_bytes == (60 - served.answer.finish_us) * 12_000_007 // 8_000_000


def test_the_order_is_the_files() -> None:
    first, second = Request("1", "B", "C", 100, 0), Request("2", "B", "C", 1, 0)
    there = plan_all(Vbls(), [first, second], NETWORK)
    back = plan_all(Vbls(), [second, first], NETWORK)
    assert [(plan.start_us, plan.finish_us) for plan in there.plans] == [(0, 67), (67, 68)]
    assert [(plan.start_us, plan.finish_us) for plan in back.plans] == [(0, 1), (1, 68)]


def test_shares_are_of_the_payload_capacity_of_the_link() -> None:
    """A full link is 100 % busy with or without headers; of a link that others half fill, half can be booked."""
    network = Network([Link("a", "A", "B", 10**9, mtu_bytes=1_500), Link("b", "B", "C", 10**9, available=((0, 5 * 10**8),))])
    full = plan_all(Vbls(), [Request("r", "A", "B", 10**6, 0)], network)
    assert full.congestion_factor == 1
    half = plan_all(Vbls(), [Request("r", "B", "C", 10**6, 0)], network)
    assert half.congestion_factor == Fraction(1, 2)


class Careless(Vbls):
    """Books twice the rate that it found."""

    name = "careless"

    def plan(self, *given: Any, **more: Any) -> Plan | Refusal:
        plan = super().plan(*given, **more)
        assert isinstance(plan, Plan)
        return replace(plan, segments=tuple(Segment(s.begin_us, s.end_us, 2 * s.rate_bps, s.path) for s in plan.segments))


def test_a_bad_plan_is_never_booked() -> None:
    with pytest.raises(PlanRejected, match="not free"):
        plan_all(Careless(), [Request("r", "B", "C", 10, 0)], NETWORK)
