# SPDX-License-Identifier: Apache-2.0
"""A counter-offer is a promise: what it names is admitted, and a little more is not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.planners import DEFAULT_PLANNER, PLANNERS
from broker.planners.offers import Binding, CounterOffer, binding, counter_offer
from tests.core.grid import Scenario, any_scenarios, cases


@pytest.mark.parametrize("name", sorted(PLANNERS))
@cases(200)
@given(any_scenarios, st.integers(1, 60))
def test_what_is_offered_can_be_had(name: str, scenario: Scenario, after: int) -> None:
    planner, network, calendars = PLANNERS[name], scenario.network, scenario.calendars
    request = replace(scenario.request, deadline_us=scenario.request.not_before_us + after)
    if isinstance(planner.plan(request, network, calendars), Plan):
        return
    offer = counter_offer(planner, request, network, calendars)
    without_deadline = planner.plan(replace(request, deadline_us=None), network, calendars)
    if isinstance(without_deadline, Refusal):
        assert offer.earliest_finish_us is None
    else:
        assert offer.earliest_finish_us == without_deadline.finish_us
        assert request.deadline_us is not None
        assert offer.earliest_finish_us > request.deadline_us
        met = planner.plan(replace(request, deadline_us=offer.earliest_finish_us), network, calendars)
        assert isinstance(met, Plan)
        missed = planner.plan(replace(request, deadline_us=offer.earliest_finish_us - 1), network, calendars)
        assert isinstance(missed, Refusal), "the smallest deadline"
    if offer.largest_volume_bytes is not None:
        assert isinstance(planner.plan(replace(request, volume_bytes=offer.largest_volume_bytes), network, calendars), Plan)
    more = (offer.largest_volume_bytes or 0) + 1
    assert isinstance(planner.plan(replace(request, volume_bytes=more), network, calendars), Refusal), "the largest volume"


@cases(150)
@given(any_scenarios, st.integers(1, 200))
def test_the_binding_link_is_the_one_with_least_room(scenario: Scenario, after: int) -> None:
    request = replace(scenario.request, volume_bytes=10**6, deadline_us=scenario.request.not_before_us + after)
    found = binding(request, scenario.network, scenario.calendars)
    if found is None:
        return
    # The request's own limits are the path's: a link is asked for rates that the whole path could take.
    route = scenario.network.route("N0", request.destination)
    assert route is not None
    ceiling = min(request.rate_max_bps or route.ceiling_bps, route.ceiling_bps) // route.channel_bps * route.channel_bps
    assert request.deadline_us is not None

    def room(link_id: str) -> int:
        link = next(link for link in scenario.links if link.id == link_id)
        alone = Scenario((link,), replace(request, destination="N1", rate_max_bps=ceiling))
        return alone.most_bytes(request.deadline_us or 0)

    rooms = {link.id: room(link.id) for link in scenario.links}
    assert rooms[found.link] == min(rooms.values())
    assert (found.begin_us, found.end_us) == (request.not_before_us, request.deadline_us)


def test_without_a_deadline_the_tail_binds() -> None:
    network = Network([Link("a", "A", "B", 100), Link("b", "B", "C", 100)])
    calendars = {
        "a": Calendar([(DISTANT_PAST_US, 100), (10, 5), (20, 100)]),
        "b": Calendar([(DISTANT_PAST_US, 100), (30, 0)]),
    }
    request = Request("r", "A", "C", 10**9, 0)
    assert binding(request, network, calendars) == Binding("b", 30, 1_000_030)
    assert binding(replace(request, destination="Z"), network, calendars) is None
    assert counter_offer(PLANNERS["vbls"], request, network, calendars) == CounterOffer(None, None)


def test_the_registry_knows_every_planner_by_its_name() -> None:
    assert {name: planner.name for name, planner in PLANNERS.items()} == {name: name for name in PLANNERS}
    assert DEFAULT_PLANNER in PLANNERS
