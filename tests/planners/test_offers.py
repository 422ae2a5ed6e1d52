# SPDX-License-Identifier: Apache-2.0
"""A counter-offer is a promise: what it names is admitted, and a little more is not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Options, Request
from broker.planners import DEFAULT_PLANNER, PLANNERS
from broker.planners.offers import CounterOffer, find_counter_offer
from tests.core.grid import cases
from tests.planners.mesh import Mesh, meshes

LIST_PLANNERS = sorted(name for name, planner in PLANNERS.items() if not planner.traits.joint)
# What a solver finds in its time is not the edge of what could be found: its offers can be had, and that is all they promise.
EXACT = sorted(name for name in PLANNERS if name != "optimal")
MEGA = 1_000_000


def accepts(name: str, mesh: Mesh) -> Callable[..., bool]:
    network, calendars = mesh.network, mesh.calendars

    def ask(**changes: object) -> bool:
        request = replace(mesh.request, **changes)  # type: ignore[arg-type]
        return isinstance(PLANNERS[name].plan(request, network, calendars), Plan)

    return ask


@pytest.mark.parametrize("name", EXACT)
@cases(80)
@given(meshes(), st.integers(1, 60))
def test_the_finish_and_the_volume_can_be_had_and_no_more(name: str, mesh: Mesh, after: int) -> None:
    mesh = mesh.asking(deadline_us=mesh.request.not_before_us + after)
    asked = accepts(name, mesh)
    if asked():
        return
    offer = find_counter_offer(PLANNERS[name], mesh.request, mesh.network, mesh.calendars)
    finish, deadline = offer.earliest_finish_us, mesh.request.deadline_us
    assert deadline is not None
    if finish is None:
        assert not asked(deadline_us=deadline + 10**9), "a quarter of an hour more"
    else:
        assert finish > deadline
        assert asked(deadline_us=finish)
        assert not asked(deadline_us=finish - 1), "the smallest deadline"
        assert not asked(deadline_us=(deadline + finish) // 2)
    volume = offer.largest_volume_bytes
    assert volume is None or asked(volume_bytes=volume)
    assert not asked(volume_bytes=(volume or 0) + 1), "the largest volume"


@cases(10)
@given(meshes(), st.integers(1, 60))
def test_what_the_optimal_planner_offers_can_be_had(mesh: Mesh, after: int) -> None:
    mesh = mesh.asking(deadline_us=mesh.request.not_before_us + after)
    asked = accepts("optimal", mesh)
    if asked():
        return
    offer = find_counter_offer(PLANNERS["optimal"], mesh.request, mesh.network, mesh.calendars)
    assert offer.earliest_finish_us is None or asked(deadline_us=offer.earliest_finish_us)
    assert offer.largest_volume_bytes is None or asked(volume_bytes=offer.largest_volume_bytes)


@pytest.mark.parametrize("name", LIST_PLANNERS)
@cases(60)
@given(meshes(), st.integers(1, 80))
def test_the_smallest_rate_max_can_be_had_and_none_smaller(name: str, mesh: Mesh, after: int) -> None:
    """In whole Mb/s, so that every rate there is can be tried."""
    high = -(-(mesh.request.rate_max_bps or 5 * MEGA) // MEGA) * MEGA
    low = None if mesh.request.rate_min_bps is None else min(mesh.request.rate_min_bps // MEGA * MEGA + 1, high)
    mesh = mesh.asking(rate_max_bps=high, rate_min_bps=low, deadline_us=mesh.request.not_before_us + after)
    asked = accepts(name, mesh)
    if asked():
        return
    offered = find_counter_offer(PLANNERS[name], mesh.request, mesh.network, mesh.calendars).smallest_rate_max_bps
    if offered is not None:
        assert asked(rate_max_bps=offered)
        if offered > (low or 1):
            assert not asked(rate_max_bps=offered - 1)
    for rate in range(max(low or 1, MEGA // 4), 21 * MEGA, MEGA // 4):
        if offered is None or rate < offered:
            assert not asked(rate_max_bps=rate), rate


@pytest.mark.parametrize("name", LIST_PLANNERS)
@cases(60)
@given(meshes(), st.integers(1, 80), st.integers(1, 20 * MEGA), st.one_of(st.none(), st.integers(1, 30)))
def test_the_largest_rate_min_can_be_had_and_none_larger(name: str, mesh: Mesh, after: int, low: int, duration: int | None) -> None:
    mesh = mesh.asking(rate_min_bps=low, deadline_us=mesh.request.not_before_us + after)
    if mesh.request.rate_max_bps is not None and mesh.request.rate_max_bps < low:
        mesh = mesh.asking(rate_max_bps=low)
    if duration is not None:
        mesh = mesh.asking(volume_bytes=None, duration_us=duration)
    asked = accepts(name, mesh)
    if asked():
        return
    offered = find_counter_offer(PLANNERS[name], mesh.request, mesh.network, mesh.calendars).largest_rate_min_bps
    if offered is not None:
        assert 0 < offered < low
        assert asked(rate_min_bps=offered)
        assert not asked(rate_min_bps=offered + 1)
    for rate in range((offered or 0) + 1, low, max(low // 40, 1)):
        assert not asked(rate_min_bps=rate), rate


@pytest.mark.parametrize("name", LIST_PLANNERS)
@cases(60)
@given(meshes(), st.integers(1, 80), st.integers(1, 90))
def test_the_longest_duration_can_be_had_and_none_longer(name: str, mesh: Mesh, after: int, duration: int) -> None:
    mesh = mesh.asking(volume_bytes=None, duration_us=duration, deadline_us=mesh.request.not_before_us + after)
    asked = accepts(name, mesh)
    if asked():
        return
    offer = find_counter_offer(PLANNERS[name], mesh.request, mesh.network, mesh.calendars)
    offered = offer.longest_duration_us
    assert offered is None or (offered < duration and asked(duration_us=offered))
    for longer in range((offered or 0) + 1, duration):
        assert not asked(duration_us=longer)
    if offer.earliest_finish_us is not None:
        assert asked(deadline_us=offer.earliest_finish_us)
        assert not asked(deadline_us=offer.earliest_finish_us - 1)
    assert offer.largest_volume_bytes is None


@pytest.mark.parametrize("options", [Options(split=True), Options(paths=2, most_segments=2), Options(shortest_segment_us=5)])
@pytest.mark.parametrize("name", ["vbls", "alap"])
@cases(25)
@given(meshes(), st.integers(1, 60))
def test_offers_keep_the_options(name: str, options: Options, mesh: Mesh, after: int) -> None:
    links = tuple((replace(link, channel_bps=None), nodes) for link, nodes in mesh.links)
    mesh = Mesh(links, replace(mesh.request, options=options, deadline_us=mesh.request.not_before_us + after, rate_min_bps=None))
    asked = accepts(name, mesh)
    if asked():
        return
    offer = find_counter_offer(PLANNERS[name], mesh.request, mesh.network, mesh.calendars)
    if offer.earliest_finish_us is not None:
        assert asked(deadline_us=offer.earliest_finish_us)
        assert not asked(deadline_us=offer.earliest_finish_us - 1)
    assert offer.largest_volume_bytes is None or asked(volume_bytes=offer.largest_volume_bytes)
    assert not asked(volume_bytes=(offer.largest_volume_bytes or 0) + 1)
    if offer.smallest_rate_max_bps is not None:
        assert asked(rate_max_bps=offer.smallest_rate_max_bps)


def test_links_that_come_back_are_offers_too() -> None:
    """The near link is down until 100; the far way is too slow for the deadline. Whatever waits for the near link comes first at 108."""
    network = Network(
        [
            Link("near", "A", "B", 10 * MEGA, available=((0, 0), (100, 10 * MEGA))),
            Link("far 1", "A", "C", MEGA // 2),
            Link("far 2", "C", "B", MEGA // 2),
        ]
    )
    calendars = {link.id: Calendar(link.capacity()) for link in network.links.values()}
    request = Request("r", "A", "B", 10, 1, deadline_us=50, options=Options(paths=1))
    for name in ("vbls", "alap"):
        offer = find_counter_offer(PLANNERS[name], request, network, calendars)
        assert offer == CounterOffer(108, 3), name
    # At one rate from the beginning, only the far way will ever do, and a deadline after 100 lets the near link hide it again.
    assert find_counter_offer(PLANNERS["spaghetti"], request, network, calendars).earliest_finish_us == 161


def test_a_lower_rate_min_may_be_had_over_a_smaller_link() -> None:
    """At more than 10 Mb/s only the long way is left, on which 5 are free; at no more than that the short one comes in, with 8."""
    network = Network(
        [Link("thin", "A", "B", 10 * MEGA), Link("thick 1", "A", "C", 20 * MEGA), Link("thick 2", "C", "B", 20 * MEGA)]
    )
    calendars = {link.id: Calendar(link.capacity()) for link in network.links.values()}
    calendars["thin"].book(0, 10**9, 2 * MEGA)
    calendars["thick 2"].book(0, 10**9, 15 * MEGA)
    request = Request("r", "A", "B", 1_000, 0, rate_min_bps=15 * MEGA, deadline_us=10**9, options=Options(paths=1))
    for name in ("vbls", "alap"):
        assert find_counter_offer(PLANNERS[name], request, network, calendars).largest_rate_min_bps == 8 * MEGA


def test_fbls_may_be_served_by_less() -> None:
    """Rmax is free for too short a time; half of it is free for long enough, a quarter would take too long."""
    network = Network([Link("L", "A", "B", 8 * MEGA)])
    calendars = {"L": Calendar([(DISTANT_PAST_US, 0), (0, 8 * MEGA), (5, 4 * MEGA), (22, 2 * MEGA)])}
    request = Request("r", "A", "B", 10, 0, rate_max_bps=8 * MEGA, deadline_us=30)
    offer = find_counter_offer(PLANNERS["fbls"], request, network, calendars)
    assert offer == CounterOffer(None, 5, smallest_rate_max_bps=3_636_364)  # 80 bits in 22 us
    slower = replace(request, rate_max_bps=2 * MEGA)
    assert find_counter_offer(PLANNERS["fbls"], slower, network, calendars) == CounterOffer(40, 7, smallest_rate_max_bps=3_636_364)


def test_what_nothing_helps_is_offered_nothing() -> None:
    network = Network([Link("L", "A", "B", 100)])
    calendars = {"L": Calendar([(DISTANT_PAST_US, 0)])}
    request = Request("r", "A", "B", 10**9, 0, rate_max_bps=50, rate_min_bps=20, deadline_us=10**9)
    for name in LIST_PLANNERS:
        assert find_counter_offer(PLANNERS[name], request, network, calendars) == CounterOffer(None, None)
        assert find_counter_offer(PLANNERS[name], replace(request, deadline_us=None), network, calendars) == CounterOffer(
            None, None
        )
        nowhere = replace(request, destination="Z")
        assert isinstance(PLANNERS[name].plan(nowhere, network, calendars), Refusal)
        assert find_counter_offer(PLANNERS[name], nowhere, network, calendars) == CounterOffer(None, None)


def test_the_registry_knows_every_planner_by_its_name() -> None:
    assert {name: planner.name for name, planner in PLANNERS.items()} == {name: name for name in PLANNERS}
    assert DEFAULT_PLANNER in PLANNERS


@pytest.mark.parametrize("name", ["fbls", "spaghetti", "alap", "vbls"])
def test_a_link_of_many_rates_is_looked_at_a_bounded_number_of_times(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rate of a link makes other candidates: without a bound, 1e5 steps of capacity are 1e5 plans."""
    second = 10**6
    steps = tuple((i * second, 10**6 + i * 7919 % 2003 * 1000) for i in range(2000))
    links = [Link("1", "A", "B", 10**9, available=steps), Link("2", "A", "C", 10**9), Link("3", "C", "B", 10**9)]
    network, calendars = Network(links), {link.id: Calendar(link.capacity()) for link in links}
    request = Request("r", "A", "B", 10**14, 0, rate_max_bps=50 * 10**6, deadline_us=10**5 * second)
    assert len(network.rates) > 1000
    asked: list[int] = []
    below = Network.below

    def counted(*given: Any) -> Any:
        asked.append(1)
        return below(*given)

    monkeypatch.setattr(Network, "below", counted)
    monkeypatch.setattr(Link, "capacity", None)  # worked out once, when the network was made
    find_counter_offer(PLANNERS[name], request, network, calendars)
    assert len(asked) <= 300
