# SPDX-License-Identifier: Apache-2.0
"""Which link binds, and when: the interval with the largest shortfall, by trying every interval."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.request import Options, Request
from broker.planners.binding import Binding, find_binding
from tests.core.grid import MICROBITS_PER_BYTE, Scenario, cases
from tests.planners.mesh import Mesh, meshes

MEGA = 1_000_000


def shortfall(rates: list[int], asked: int) -> tuple[int, set[tuple[int, int]]]:
    """The most that is missing of `asked` in any interval of slots, and the intervals in which so much is."""
    sums = {
        (begin, end): sum(asked - rate for rate in rates[begin:end])
        for begin in range(len(rates))
        for end in range(begin + 1, len(rates) + 1)
    }
    most = max(sums.values(), default=0)
    return most, {interval for interval, missing in sums.items() if missing == most}


@cases(120)
@given(meshes(), st.integers(1, 60), st.booleans())
def test_the_interval_is_where_most_is_missing_and_the_link_carries_least_in_it(mesh: Mesh, after: int, hold: bool) -> None:
    mesh = mesh.asking(volume_bytes=50, deadline_us=mesh.request.not_before_us + after)
    if hold:
        mesh = mesh.asking(volume_bytes=None, duration_us=after)
    mesh = mesh.asking(options=Options(paths=1))
    found = find_binding(mesh.request, mesh.network, mesh.calendars)
    scenarios = [s for s in mesh.scenarios() if s.usable(s.links[0].levels.max()[None]).any()]
    if not scenarios:
        return
    (scenario,) = scenarios
    assert found is not None
    assert found.link in {link.id for link in scenario.links}
    request, slot = mesh.request, scenario.slot
    assert request.deadline_us is not None
    end = request.deadline_us // slot * slot
    ceiling = min(int(link.levels.max()) for link in scenario.links)
    best_rate = min(request.rate_max_bps or ceiling, ceiling) // scenario.channel * scenario.channel
    if best_rate < (request.rate_min_bps or 1):
        return  # no rate fits: any interval will do
    expected = {(request.not_before_us, request.deadline_us)}
    if end > scenario.first_slot:
        rates = scenario.usable(scenario.slots(end)).tolist()
        least = max(request.rate_min_bps or 1, 1)
        even = least if request.volume_bytes is None else -(-request.volume_bytes * MICROBITS_PER_BYTE // after)
        for asked in (min(max(even, least), best_rate), best_rate):
            most, intervals = shortfall(rates, asked)
            if most > 0:
                expected = {(scenario.first_slot + a * slot, scenario.first_slot + b * slot) for a, b in intervals}
                break
    assert (found.begin_us, found.end_us) in expected

    def room(link_id: str) -> int:
        link = next(link for link in scenario.links if link.id == link_id)
        alone = replace(
            request, destination="N1", volume_bytes=1, duration_us=None, rate_max_bps=best_rate, not_before_us=found.begin_us
        )
        return Scenario((link,), alone).most_bytes(found.end_us)

    # In bytes, which are coarser than what is compared: no link has a byte less room.
    assert room(found.link) <= min(room(link.id) for link in scenario.links)


def test_the_path_that_comes_nearest_is_looked_at() -> None:
    network = Network([Link("a", "A", "B", 8 * MEGA), Link("b", "A", "B", 8 * MEGA)])
    calendars = {
        "a": Calendar([(DISTANT_PAST_US, 8 * MEGA), (10, 0), (90, 8 * MEGA)]),
        "b": Calendar([(DISTANT_PAST_US, 8 * MEGA), (40, MEGA), (60, 8 * MEGA)]),
    }
    request = Request("r", "A", "B", 90, 0, deadline_us=100)
    assert find_binding(request, network, calendars) == Binding("b", 40, 60)
    assert find_binding(replace(request, options=Options(paths=1)), network, calendars) == Binding("a", 10, 90)
    assert find_binding(replace(request, options=Options(path=("a",))), network, calendars) == Binding("a", 10, 90)


def test_without_a_deadline_the_tail_binds() -> None:
    network = Network([Link("a", "A", "B", 100), Link("b", "B", "C", 100)])
    calendars = {
        "a": Calendar([(DISTANT_PAST_US, 100), (10, 5), (20, 100)]),
        "b": Calendar([(DISTANT_PAST_US, 100), (30, 0)]),
    }
    request = Request("r", "A", "C", 10**9, 0)
    assert find_binding(request, network, calendars) == Binding("b", 30, 1_000_030)
    assert find_binding(replace(request, destination="Z"), network, calendars) is None
    assert find_binding(replace(request, options=Options(path=("Z",))), network, calendars) is None


def test_a_path_that_is_down_says_so() -> None:
    links = [Link("a", "A", "B", 100), Link("b", "B", "C", 100, available=((5, 0), (1_000, 100)))]
    network = Network(links)
    calendars = {link.id: Calendar(link.capacity()) for link in links}
    request = Request("r", "A", "C", 1, 10, deadline_us=500)
    assert find_binding(request, network, calendars) == Binding("b", 10, 500)
