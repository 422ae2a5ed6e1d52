# SPDX-License-Identifier: Apache-2.0
"""Several paths at once, against a linear programme per microsecond (GLOP)."""

from dataclasses import replace
from math import lcm
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ortools.linear_solver import pywraplp

from broker.core import profile
from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Options, Request
from broker.core.segments import Segment, total_rates
from broker.core.side_by_side import _share_out
from broker.planners import PLANNERS, split
from tests.core.grid import MICROBITS_PER_BYTE, GridLink, cases
from tests.planners.mesh import Mesh, meshes

PLANNER = PLANNERS["vbls"]
MEGA = 1_000_000


def most_at_once(paths: list[tuple[str, ...]], free: dict[str, int], rate_max: int | None) -> float:
    """The largest sum of rates over the paths."""
    solver = pywraplp.Solver.CreateSolver("GLOP")
    rates = [solver.NumVar(0, solver.infinity(), "") for _ in paths]
    for link_id, level in free.items():
        solver.Add(sum(rate for rate, path in zip(rates, paths, strict=True) if link_id in path) <= max(level, 0) / MEGA)
    if rate_max is not None:
        solver.Add(sum(rates) <= rate_max / MEGA)
    solver.Maximize(sum(rates))
    assert solver.Solve() == pywraplp.Solver.OPTIMAL
    return float(solver.Objective().Value() * MEGA)


def without_channels(mesh: Mesh) -> Mesh:
    links = tuple((replace(link, channel_bps=None), nodes) for link, nodes in mesh.links)
    return Mesh(links, replace(mesh.request, options=replace(mesh.request.options, split=True)))


class Sums:
    """What all paths carry together in each slot of the paths' common grid."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        # Rmin is a limit of the sum: no path is gone around for it.
        self.paths = mesh.asking(rate_min_bps=None).paths()
        together: list[tuple[GridLink, ...]] = []
        for path in self.paths:
            slots = [lcm(*(link.slot_us for link in each)) for each in (*together, path)]
            if all(slots[-1] % slot == 0 or slot % slots[-1] == 0 for slot in slots):
                together.append(path)
        self.together = together
        self.slot = max((lcm(*(link.slot_us for link in path)) for path in together), default=1)
        self.first = -(-mesh.request.not_before_us // self.slot) * self.slot

    def per_slot(self, end_us: int) -> list[float]:
        links = {link.id: link for path in self.together for link in path}
        names = [tuple(link.id for link in path) for path in self.together]
        least = max(self.mesh.request.rate_min_bps or 1, 1)
        sums, known = [], {}
        for begin in range(self.first, end_us - self.slot + 1, self.slot):
            free = {name: int(link.gamma(begin, begin + self.slot).min()) for name, link in links.items()}
            key = tuple(free.values())
            if key not in known:
                known[key] = most_at_once(names, free, self.mesh.request.rate_max_bps)
            sums.append(known[key] if known[key] >= least - 0.5 else 0.0)
        return sums

    def finish(self, sums: list[float], lost: float) -> int | None:
        """When the volume is through at these rates, each `lost` bit/s lower."""
        assert self.mesh.request.volume_bytes is not None
        need = self.mesh.request.volume_bytes * MICROBITS_PER_BYTE
        least = max(self.mesh.request.rate_min_bps or 1, 1)
        for index, rate in enumerate(sums):
            lower = rate - lost
            if lower < least - (0.5 if lost == 0 else 0):
                continue
            need -= int(lower * self.slot + 1e-3)
            if need <= 0:
                return self.first + (index + 1) * self.slot
        return None


@cases(80)
@given(meshes(), st.integers(5, 120))
def test_the_finish_is_the_earliest_that_the_paths_allow(mesh: Mesh, after: int) -> None:
    mesh = without_channels(mesh).asking(deadline_us=mesh.request.not_before_us + after)
    with patch.object(profile, "_FIRST_CUT", 2), patch.object(split, "_FIRST_ROWS", 1):
        answer = mesh.planned(PLANNER)
    alone = PLANNER.plan(replace(mesh.request, options=replace(mesh.request.options, split=False)), mesh.network, mesh.calendars)
    oracle = Sums(mesh)
    assert mesh.request.deadline_us is not None
    sums = oracle.per_slot(mesh.request.deadline_us // oracle.slot * oracle.slot)
    best, sure = oracle.finish(sums, 0.0), oracle.finish(sums, float(len(oracle.together)))
    if isinstance(alone, Plan):
        assert isinstance(answer, Plan)
        assert answer.finish_us <= alone.finish_us, "never later than on one path"
    if sure is not None:
        assert isinstance(answer, Plan)
        assert answer.finish_us <= sure
    if isinstance(answer, Plan) and (isinstance(alone, Refusal) or answer.finish_us < alone.finish_us):
        assert best is not None
        # The end is brought to the slots of the paths in use, which may be finer than the grid of all.
        assert answer.finish_us > best - oracle.slot


@cases(80)
@given(meshes(), st.integers(5, 100))
def test_the_largest_volume_over_all_paths(mesh: Mesh, after: int) -> None:
    mesh = without_channels(mesh).asking(volume_bytes=10**6, deadline_us=mesh.request.not_before_us + after)
    most = PLANNER.largest_volume(mesh.request, mesh.network, mesh.calendars)
    if most:
        assert isinstance(mesh.asking(volume_bytes=most).planned(PLANNER), Plan)
    assert isinstance(mesh.asking(volume_bytes=most + 1).planned(PLANNER), Refusal)
    oracle = Sums(mesh)
    assert mesh.request.deadline_us is not None
    sums = oracle.per_slot(mesh.request.deadline_us // oracle.slot * oracle.slot)
    if (mesh.request.rate_min_bps or 1) == 1:
        assert most >= int(sum(max(rate - len(oracle.together), 0) * oracle.slot for rate in sums)) // MICROBITS_PER_BYTE


@cases(60)
@given(meshes(), st.integers(1, 30), st.one_of(st.none(), st.integers(1, 100)))
def test_a_holding_time_starts_as_soon_as_the_sum_suffices(mesh: Mesh, duration: int, after: int | None) -> None:
    mesh = without_channels(mesh)
    deadline = None if after is None else mesh.request.not_before_us + after
    mesh = mesh.asking(volume_bytes=None, duration_us=duration, deadline_us=deadline)
    answer = mesh.planned(PLANNER)
    alone = PLANNER.plan(replace(mesh.request, options=replace(mesh.request.options, split=False)), mesh.network, mesh.calendars)
    if isinstance(alone, Plan):
        assert isinstance(answer, Plan)
        assert answer.finish_us <= alone.finish_us
    oracle = Sums(mesh)
    settled = max(link.base_us + len(link.levels) for link, _ in mesh.links)
    end = max(settled, oracle.first) + duration + 2 * oracle.slot if deadline is None else deadline
    least = (mesh.request.rate_min_bps or 1) + len(oracle.together)
    enough = [rate >= least for rate in oracle.per_slot(end // oracle.slot * oracle.slot)]
    length = -(-duration // oracle.slot)
    begins = [i for i in range(len(enough) - length + 1) if all(enough[i : i + length])]
    if begins:
        assert isinstance(answer, Plan)
        assert answer.start_us <= oracle.first + begins[0] * oracle.slot


@cases(100)
@given(meshes(), st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, 1, 4]))
def test_channels_slots_and_limits_hold_and_it_is_never_later(mesh: Mesh, most: int | None, shortest: int | None) -> None:
    """`verify` looks at every plan; with channels the sum is not always the most."""
    options = replace(mesh.request.options, split=True, most_segments=most, shortest_segment_us=shortest)
    answer = mesh.asking(options=options).planned(PLANNER)
    alone = mesh.asking(options=replace(options, split=False)).planned(PLANNER)
    if isinstance(alone, Plan):
        assert isinstance(answer, Plan)
        assert answer.finish_us <= alone.finish_us


@pytest.mark.parametrize("scale", [1, 1_000_003, 10**13])
@cases(150)
@given(
    st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=2, max_size=6),
    st.lists(st.integers(0, 60), min_size=6, max_size=6),
    st.one_of(st.none(), st.integers(1, 100)),
)
@example([[True, True, False, False, False, False], [False, True, True, False, False, False], [True, False, True, False, False, False]],
         [7, 7, 7, 0, 0, 0], None)  # fmt: skip
def test_rates_are_shared_out_for_the_largest_sum(
    scale: int, uses: list[list[bool]], free: list[int], rate_max: int | None
) -> None:
    """Any sets of links, also those of no network; each path uses its own link at least."""
    members = np.array([[*row, *(j == i for j in range(len(uses)))] for i, row in enumerate(uses)], np.bool_)
    level = np.array([*free, *([80] * len(uses))], np.int64) * scale
    most = 10**15 if rate_max is None else rate_max * scale
    rates = np.zeros(len(uses), np.int64)
    groups = len(level)
    table, basis = np.empty((groups + 2, len(uses) + groups + 2)), np.empty(groups + 1, np.int64)
    total = _share_out(level, members, np.ones(len(uses), np.int64), most, np.zeros(len(uses), np.int64), rates, table, basis)
    names = [str(g) for g in range(groups)]
    paths = [tuple(names[g] for g in range(groups) if members[p, g]) for p in range(len(uses))]
    best = most_at_once(paths, dict(zip(names, level.tolist(), strict=True)), most)
    assert total == rates.sum() <= most
    assert (rates >= 0).all()
    assert all(rates[members[:, g]].sum() <= level[g] for g in range(groups))
    assert best * (1 - 1e-9) - len(uses) <= total <= best * (1 + 1e-9) + 1e-3


def test_three_paths_that_share_links_in_pairs() -> None:
    """The odd cycle: one path after the other carries 1, halves of all three carry 1.5. Split keeps rates where it can."""
    links = [
        Link("p", "S", "A", 10 * MEGA),
        Link("q", "S", "B", 10 * MEGA),
        Link("a", "A", "D", 4 * MEGA),
        Link("b", "B", "D", 6 * MEGA),
    ]
    network = Network(links)
    calendars = {link.id: Calendar(link.capacity()) for link in links}
    calendars["p"].book(10, 20, 1 * MEGA)
    request = Request("r", "S", "D", 50, 0, options=Options(split=True))
    answer = PLANNER.plan(request, network, calendars)
    assert answer == Plan((Segment(0, 40, 4 * MEGA, ("p", "a")), Segment(0, 40, 6 * MEGA, ("q", "b"))))
    capped = PLANNER.plan(replace(request, rate_max_bps=5 * MEGA), network, calendars)
    assert isinstance(capped, Plan)
    assert total_rates(capped.segments) == [(0, 80, 5 * MEGA)]
    # Neither way carries 8 Mb/s alone.
    needy = replace(request, rate_min_bps=8 * MEGA)
    assert isinstance(PLANNER.plan(replace(needy, options=Options()), network, calendars), Refusal)
    assert PLANNER.plan(needy, network, calendars) == answer


def test_a_split_that_needs_too_many_rows_goes_over_one_path() -> None:
    links = [Link("1", "S", "D", 10 * MEGA), Link("2", "S", "D", 10 * MEGA)]
    network = Network(links)
    calendars = {
        "1": Calendar([(DISTANT_PAST_US, 10 * MEGA)]),
        "2": Calendar([(DISTANT_PAST_US, 0), (8, 10 * MEGA)]),
    }
    request = Request("r", "S", "D", 15, 0, options=Options(split=True))
    both = PLANNER.plan(request, network, calendars)
    assert isinstance(both, Plan)
    assert both.finish_us == 10
    one = PLANNER.plan(replace(request, options=Options(split=True, most_segments=1)), network, calendars)
    assert one == Plan((Segment(0, 12, 10 * MEGA, ("1",)),))


def test_the_end_is_on_the_slots_of_the_paths_that_are_used() -> None:
    """The third path would ask for slots of 5, but it is full: 56 bits at 16 a microsecond end at 4."""
    links = [Link("1", "S", "D", 8 * MEGA), Link("2", "S", "D", 8 * MEGA), Link("3", "S", "D", 8 * MEGA, slot_us=5)]
    network = Network(links)
    calendars = {link.id: Calendar(link.capacity()) for link in links}
    calendars["3"].book(0, 1_000, 8 * MEGA)
    request = Request("r", "S", "D", 7, 0, options=Options(split=True))
    answer = PLANNER.plan(request, network, calendars)
    assert answer == Plan((Segment(0, 4, 8 * MEGA, ("1",)), Segment(0, 4, 8 * MEGA, ("2",))))
    held = PLANNER.plan(replace(request, volume_bytes=None, duration_us=6, rate_min_bps=16 * MEGA), network, calendars)
    assert held == Plan((Segment(0, 6, 8 * MEGA, ("1",)), Segment(0, 6, 8 * MEGA, ("2",))))
    calendars["3"].release(0, 1_000, 8 * MEGA)
    assert PLANNER.plan(request, network, calendars) == answer, "24 bits a microsecond, but over whole slots of 5"
