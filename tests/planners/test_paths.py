# SPDX-License-Identifier: Apache-2.0
"""Of several candidate paths the best one is taken: each path alone is counted in slots."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Options, Request
from broker.planners import PLANNERS, along
from broker.planners.offers import find_binding, find_counter_offer
from broker.planners.signature import candidates
from tests.core.grid import cases
from tests.planners.fixed_rate import earliest_start, latest_start, rate_of
from tests.planners.mesh import Mesh, meshes

MEGA = 1_000_000


def finishes(mesh: Mesh) -> list[int]:
    """The earliest finish on each path that has one in time, in order of the paths."""
    found = [scenario.earliest_finish() for scenario in mesh.scenarios()]
    deadline = mesh.request.deadline_us
    return [finish for finish in found if finish is not None and (deadline is None or finish <= deadline)]


@cases(200)
@given(meshes())
def test_vbls_finishes_on_the_path_that_is_through_first(mesh: Mesh) -> None:
    answer, expected = mesh.planned(PLANNERS["vbls"]), finishes(mesh)
    if not expected:
        assert isinstance(answer, Refusal)
        return
    assert isinstance(answer, Plan), answer
    assert answer.finish_us == min(expected)
    used = {segment.path for segment in answer.segments}
    first = next(s for s in mesh.scenarios() if s.earliest_finish() == min(expected))
    assert used == {tuple(link.id for link in first.links)}, "the shorter one among equals"


@cases(100)
@given(meshes())
def test_skipping_paths_by_their_bottlenecks_changes_nothing(mesh: Mesh) -> None:
    request, network, calendars = mesh.request, mesh.network, mesh.calendars
    tasks = candidates(request, network)
    if isinstance(tasks, Refusal):
        return
    begin = request.not_before_us

    def attempt(task: Any, deadline: int) -> Any:
        return along.fit_varying(task, calendars, begin, deadline, False)

    deadline = tasks[0].deadline_us
    every = along.best_of(tasks, begin, deadline, attempt)
    assert along.best_of(tasks, begin, deadline, attempt, along.Bottlenecks(request, calendars)) == every


@cases(100)
@given(meshes(), st.integers(1, 300))
def test_the_largest_volume_is_that_of_the_best_path(mesh: Mesh, after: int) -> None:
    deadline = mesh.request.not_before_us + after
    mesh = mesh.asking(volume_bytes=10**6, deadline_us=deadline)
    expected = max((scenario.most_bytes(deadline) for scenario in mesh.scenarios()), default=0)
    for name in ("vbls", "alap"):
        assert PLANNERS[name].largest_volume(mesh.request, mesh.network, mesh.calendars) == expected


@cases(120)
@given(meshes())
def test_fbls_finishes_on_the_path_that_is_through_first(mesh: Mesh) -> None:
    answer = mesh.planned(PLANNERS["fbls"])
    scenarios = mesh.scenarios(mesh.request.rate_max_bps or 1) or mesh.scenarios()
    found = [(times[1], i) for i, s in enumerate(scenarios) if (times := earliest_start(s)) is not None]
    if not found:
        assert isinstance(answer, Refusal)
        return
    assert isinstance(answer, Plan), answer
    finish, index = min(found)
    best = scenarios[index]
    (row,) = answer.segments
    assert (answer.finish_us, row.rate_bps, row.path) == (finish, rate_of(best), tuple(link.id for link in best.links))


@cases(100)
@given(meshes(), st.integers(1, 300))
def test_alap_starts_on_the_path_that_can_wait_longest(mesh: Mesh, after: int) -> None:
    mesh = mesh.asking(deadline_us=mesh.request.not_before_us + after)
    answer = mesh.planned(PLANNERS["alap"])
    starts = [start for scenario in mesh.scenarios() if (start := latest_start(scenario)) is not None]
    assert (answer.start_us if isinstance(answer, Plan) else None) == max(starts, default=None)


# --- which paths there are ------------------------------------------------------------------------------------------------------


def calendars_of(network: Network) -> dict[str, Calendar]:
    return {link.id: Calendar(link.capacity()) for link in network.links.values()}


NEAR = Link("near", "A", "B", 100 * MEGA)
FAR = [Link("far 1", "A", "C", 10 * MEGA), Link("far 2", "C", "B", 10 * MEGA)]


@pytest.mark.parametrize("name", ["vbls", "fbls", "spaghetti", "alap"])
def test_a_link_that_is_down_in_the_whole_window_hides_no_longer_path(name: str) -> None:
    network = Network([replace(NEAR, available=((0, 0), (10**9, 100 * MEGA))), *FAR])
    request = Request("r", "A", "B", 1_000, 1, deadline_us=10**8, options=Options(paths=1))
    answer = PLANNERS[name].plan(request, network, calendars_of(network))
    assert isinstance(answer, Plan)
    assert {segment.path for segment in answer.segments} == {("far 1", "far 2")}


@pytest.mark.parametrize("name", ["vbls", "fbls"])
def test_a_link_that_comes_back_later_hides_no_longer_path_either(name: str) -> None:
    """Without a deadline the link is alive in the window, but what is free today is better than what is free next week."""
    network = Network([replace(NEAR, available=((0, 0), (10**9, 100 * MEGA))), *FAR])
    small, large = (
        Request("r", "A", "B", volume, 1, rate_max_bps=10 * MEGA, options=Options(paths=1)) for volume in (1_000, 10**10)
    )
    for request in (small, large):
        answer = PLANNERS[name].plan(request, network, calendars_of(network))
        assert isinstance(answer, Plan)
        assert {segment.path for segment in answer.segments} == {("far 1", "far 2")}
    huge = replace(large, rate_max_bps=100 * MEGA)
    answer = PLANNERS[name].plan(huge, network, calendars_of(network))
    assert isinstance(answer, Plan)
    assert {segment.path for segment in answer.segments} == {("near",)}, "worth waiting for"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("vbls", {"rate_min_bps": 11 * MEGA}),
        ("fbls", {"rate_max_bps": 11 * MEGA}),
        ("spaghetti", {"volume_bytes": 1_375_001}),  # in one second
        ("alap", {"rate_min_bps": 11 * MEGA}),
    ],
)
def test_a_link_too_small_for_the_least_rate_hides_no_longer_path(name: str, fields: dict[str, int]) -> None:
    thin, thick = Link("thin", "A", "B", 10 * MEGA), [Link("thick 1", "A", "C", 20 * MEGA), Link("thick 2", "C", "B", 20 * MEGA)]
    network = Network([thin, *thick])
    request = Request("r", "A", "B", 1_000, 0, deadline_us=1_000_000, options=Options(paths=1))
    usual = PLANNERS[name].plan(request, network, calendars_of(network))
    assert isinstance(usual, Plan)
    assert usual.segments[0].path == ("thin",)
    answer = PLANNERS[name].plan(replace(request, **fields), network, calendars_of(network))  # type: ignore[arg-type]
    assert isinstance(answer, Plan), answer
    assert answer.segments[0].path == ("thick 1", "thick 2")


@pytest.mark.parametrize("name", ["vbls", "fbls", "spaghetti", "alap"])
def test_the_path_that_was_asked_for_is_the_one_that_is_taken(name: str) -> None:
    network = Network([NEAR, *FAR])
    request = Request("r", "A", "B", 1_000, 0, deadline_us=10**8)
    planner = PLANNERS[name]
    for path in (("near",), ("far 1", "far 2")):
        answer = planner.plan(replace(request, options=Options(path=path)), network, calendars_of(network))
        assert isinstance(answer, Plan)
        assert {segment.path for segment in answer.segments} == {path}
    wrong: list[tuple[tuple[str, ...], str]] = [
        (("far 1", "nowhere"), "there is no link 'nowhere'"),
        (("far 1",), "far 1 does not lead from 'A' to 'B'"),
        (("far 2", "far 1"), "does not lead"),
    ]
    for named, words in wrong:
        answer = planner.plan(replace(request, options=Options(path=named)), network, calendars_of(network))
        assert isinstance(answer, Refusal)
        assert (answer.code, answer.field, words in answer.detail) == ("no_path", "path", True)


def test_nothing_is_left_to_go_around() -> None:
    network = Network([replace(NEAR, available=((0, 0), (10**9, 100 * MEGA)))])
    request = Request("r", "A", "B", 1_000, 1, deadline_us=10**8)
    answer = PLANNERS["vbls"].plan(request, network, calendars_of(network))
    assert answer == Refusal(
        "infeasible",
        "no path from 'A' to 'B' carries 1 bit/s at any time after 1970-01-01T00:00:00.000001Z and the deadline 1970-01-01T00:01:40Z",
        "deadline",
    )


@pytest.mark.parametrize("name", ["vbls", "fbls", "spaghetti", "alap"])
@cases(40)
@given(meshes(), st.integers(0, 200), st.booleans(), st.booleans())
def test_a_window_that_is_over_is_refused_like_any_other(name: str, mesh: Mesh, before: int, split: bool, hold: bool) -> None:
    """Who plans the rest of a transfer anew may be too late for its deadline: an answer, not an error."""
    options = replace(mesh.request.options, split=split)
    mesh = mesh.asking(deadline_us=mesh.request.not_before_us - before, options=options)
    if hold:
        mesh = mesh.asking(volume_bytes=None, duration_us=5)
    answer = mesh.planned(PLANNERS[name])
    assert isinstance(answer, Refusal)
    assert PLANNERS[name].largest_volume(mesh.request, mesh.network, mesh.calendars) == 0
    offer = find_counter_offer(PLANNERS[name], mesh.request, mesh.network, mesh.calendars)
    if offer.earliest_finish_us is not None:
        assert isinstance(mesh.asking(deadline_us=offer.earliest_finish_us).planned(PLANNERS[name]), Plan)
    find_binding(mesh.request, mesh.network, mesh.calendars)
