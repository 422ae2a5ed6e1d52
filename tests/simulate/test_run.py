# SPDX-License-Identifier: Apache-2.0
"""Whole simulations: every figure against one that is counted out from the plans, and no link over its capacity at any instant."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, PlanRejected, Refusal
from broker.core.request import Request
from broker.core.segments import Segment
from broker.core.units import US_PER_S
from broker.planners import PLANNERS
from broker.planners.ifs import Ifs
from broker.planners.signature import Planner
from broker.planners.vifi import Vifi
from broker.simulate import Cancelled, Specification, SpecificationError, run
from broker.simulate.admission import serve
from broker.simulate.control import Control
from broker.simulate.measures import frame, measure
from broker.simulate.outcome import Outcome, of_packets, of_planner
from broker.simulate.steps import carried_by
from broker.simulate.workload import Workload, draw
from tests.core.grid import cases

MEGA = 1_000_000


def quietly() -> Control:
    ticks = count()
    return Control(lambda share, text: None, lambda: False, lambda: next(ticks) / 1000)


def quick(document: dict[str, Any], network: Network) -> dict[str, Any]:
    return run(Specification.from_document(document), network, lambda share, text: None, lambda: False, lambda: 0.0)


def ring(*capacities: int, **more: Any) -> Network:
    """Nodes N0, N1, ... in a circle, both ways round: two paths for everybody."""
    n = len(capacities)
    links = []
    for i, capacity in enumerate(capacities):
        links.append(Link(f"L{i}", f"N{i}", f"N{(i + 1) % n}", capacity, **more))
        links.append(Link(f"R{i}", f"N{(i + 1) % n}", f"N{i}", capacity, **more))
    return Network(links)


BUSY = {
    "load": 1.3,
    "requests": 60,
    "sizes": {"distribution": "pareto", "least_bytes": 20_000, "most_bytes": 2_000_000},
    "rates": [{"rate_max_bps": 1 * MEGA}, {"rate_max_bps": 3 * MEGA}, {}],
    "deadlines": {"share": 0.6, "least_factor": 1.5, "most_factor": 6},
    "leads": {"share": 0.4, "least_seconds": 0, "most_seconds": 5},
    "batch_s": 1.5,
}
NETWORKS = [
    Network([Link("L", "A", "B", 4 * MEGA)]),
    ring(4 * MEGA, 2 * MEGA, 3 * MEGA, 4 * MEGA),
    ring(4 * MEGA, 3 * MEGA, 3 * MEGA, channel_bps=MEGA, slot_us=1000),
]
PLANNING: list[Planner] = [*(PLANNERS[name] for name in ("vbls", "fbls", "spaghetti", "alap")), Vifi(), Ifs()]


def never_over(plans: Sequence[Plan], network: Network) -> None:
    """On every link, at every begin of a segment, what all plans book together."""
    booked = defaultdict(list)
    for plan in plans:
        for begin, end, rate, path in plan.segments:
            for link in path:
                booked[link].append((begin, end, rate))
    for link, rows in booked.items():
        table = np.array(rows)
        for instant in table[:, 0]:
            here = table[(table[:, 0] <= instant) & (instant < table[:, 1]), 2].sum()
            assert here <= network.links[link].capacity_bps


@pytest.mark.parametrize("planner", PLANNING, ids=lambda planner: planner.name)
@pytest.mark.parametrize("network", NETWORKS, ids=["one link", "ring", "channels"])
@pytest.mark.parametrize("seed", [1, 2])
def test_figures_counted_out(planner: Planner, network: Network, seed: int) -> None:
    specification = Specification.from_document(BUSY | {"seed": seed, "begin": "2026-01-01T00:00:00Z"})
    workload = draw(specification, network)
    begin_us = specification.begin_us
    found = serve(planner, workload, network, specification.batch_us, begin_us, quietly())
    outcome = of_planner(planner.name, found)
    never_over(outcome.plans, network)
    against = frame(workload, [outcome], network, begin_us, 7)
    measures = measure(outcome, workload, against)

    served = [
        (each.request, answer) for each, answer in zip(workload.arrivals, found.answers, strict=True) if isinstance(answer, Plan)
    ]
    assert len(served) == measures.admitted == 60 - sum(measures.refusals.values())
    assert measures.acceptance_ratio == len(served) / 60
    assert measures.asked_bytes == sum(each.request.volume_bytes or 0 for each in workload.arrivals)
    assert measures.admitted_bytes == sum(request.volume_bytes or 0 for request, _ in served)
    for request, plan in served:
        assert plan.volume_bytes >= (request.volume_bytes or 0)
        assert plan.start_us >= request.not_before_us
        assert not planner.traits.books or request.deadline_us is None or plan.finish_us <= request.deadline_us
    assert measures.normalized_delay_s == pytest.approx(weighted_delay(served))
    for one in measures.classes:
        mine = [(request, plan) for request, plan in served if request.rate_max_bps == one.rate_max_bps]
        assert one.admitted == len(mine)
        assert one.normalized_delay_s == (pytest.approx(weighted_delay(mine)) if mine else None)
        assert one.requests == sum(each.request.rate_max_bps == one.rate_max_bps for each in workload.arrivals)
    with_deadline = sum(each.request.deadline_us is not None for each in workload.arrivals)
    met = sum(request.deadline_us is not None and plan.finish_us <= request.deadline_us for request, plan in served)
    assert (measures.deadlines.requests, measures.deadlines.met, measures.deadlines.missed) == (
        with_deadline,
        met,
        with_deadline - met,
    )
    assert measures.makespan_s == pytest.approx(max(plan.finish_us - begin_us for _, plan in served) / US_PER_S)
    assert measures.mean_rows == pytest.approx(np.mean([len(reprogrammed(plan)) for _, plan in served]))
    assert measures.most_rows == max(len(reprogrammed(plan)) for _, plan in served)

    last = max(plan.finish_us for _, plan in served)
    arrivals_end = workload.arrivals[-1].arrival_us
    used = {link for _, plan in served for segment in plan.segments for link in segment.path}
    assert {link.link for link in measures.links} == used
    peaks = []
    for link in measures.links:
        capacity = network.links[link.link].capacity_bps
        assert link.mean == pytest.approx(
            bits(served, link.link, begin_us, arrivals_end) / (capacity * (arrivals_end - begin_us) / US_PER_S)
        )
        peaks.append(peak(served, link.link) / capacity)
        assert link.peak == pytest.approx(peaks[-1])
    assert measures.congestion_factor == pytest.approx(max(peaks))
    capacity = sum(network.links[link].capacity_bps for link in used)
    edges = np.linspace(begin_us, last, 8)
    for k, share in enumerate(measures.utilisation_over_time):
        moved = sum(bits(served, link, edges[k], edges[k + 1]) for link in used)
        assert share == pytest.approx(moved / (capacity * (last - begin_us) / 7 / US_PER_S), rel=1e-6, abs=1e-9)
    total = sum(bits(served, link, begin_us, arrivals_end) for link in used)
    assert measures.utilisation == pytest.approx(total / (capacity * (arrivals_end - begin_us) / US_PER_S), abs=1e-9)
    assert measures.planning.calls == len(found.seconds)
    assert measures.planning.p99_us_per_call == pytest.approx(1000)  # our watch ticks once a call
    assert measures.planning.mean_us_per_request == pytest.approx(1000 * len(found.seconds) / 60)


_Served = Sequence[tuple[Request, Plan]]


def weighted_delay(served: _Served) -> float:
    weighted = sum((request.volume_bytes or 0) * (plan.finish_us - request.not_before_us) for request, plan in served)
    return weighted / sum(request.volume_bytes or 0 for request, _ in served) / US_PER_S


def reprogrammed(plan: Plan) -> list[int]:
    """Indices of segments that do not just go on as the one before."""
    return [
        i
        for i, segment in enumerate(plan.segments)
        if i == 0 or (segment.begin_us, *segment[2:]) != (plan.segments[i - 1].end_us, *plan.segments[i - 1][2:])
    ]


def bits(served: _Served, link: str, begin: float, end: float) -> float:
    rows = [segment for _, plan in served for segment in plan.segments if link in segment.path]
    return sum(max(0.0, min(row.end_us, end) - max(row.begin_us, begin)) * row.rate_bps for row in rows) / US_PER_S


def peak(served: _Served, link: str) -> int:
    rows = [segment for _, plan in served for segment in plan.segments if link in segment.path]
    return max(sum(row.rate_bps for row in rows if row.begin_us <= at.begin_us < row.end_us) for at in rows)


def test_packet_switching_is_measured_like_the_others() -> None:
    network = NETWORKS[0]
    specification = Specification.from_document(BUSY)
    workload = draw(specification, network)
    outcome = of_packets(workload, network, 0, quietly())
    measures = measure(outcome, workload, frame(workload, [outcome], network, 0, 50))
    assert measures.acceptance_ratio == 1
    assert measures.mean_rows is None
    assert measures.congestion_factor == pytest.approx(1)
    # What it carries over all of the time is what was asked for.
    carried = np.mean(measures.utilisation_over_time) * 4 * MEGA * measures.makespan_s / 8
    assert carried == pytest.approx(measures.asked_bytes, rel=1e-3)
    late = sum(
        each.request.deadline_us is not None and finish is not None and finish > each.request.deadline_us
        for each, finish in zip(workload.arrivals, outcome.finishes_us, strict=True)
    )
    assert (measures.deadlines.late, measures.deadlines.missed) == (late, late)


@pytest.mark.parametrize("name", ["vbls", "fbls"])
def test_one_by_one_is_what_the_planner_says(name: str) -> None:
    """Without forgetting, counted anew: each request on what those before it left."""
    network, planner = NETWORKS[1], PLANNERS[name]
    workload = draw(Specification.from_document(BUSY | {"requests": 700}), network)
    found = serve(planner, workload, network, 1, 0, quietly())
    calendars = {link_id: Calendar(link.capacity()) for link_id, link in network.links.items()}
    for each, answer in zip(workload.arrivals, found.answers, strict=True):
        expected = planner.plan(each.request, network, calendars, fewest_rows=True)
        assert answer == expected
        if isinstance(expected, Plan):
            for begin, end, rate, path in expected.segments:
                for link in path:
                    calendars[link].book(begin, end, rate)


def test_rows_that_go_on_are_one_and_times_have_their_percentile() -> None:
    network = NETWORKS[0]
    workload = draw(
        Specification.from_document({"trace": [{"arrival_s": 0, "volume_bytes": 1000}] * 2, "nodes": ["A", "B"]}), network
    )
    plan = Plan((Segment(0, 500, 2 * MEGA, ("L",)), Segment(500, 3500, 2 * MEGA, ("L",)), Segment(3500, 5000, 1 * MEGA, ("L",))))
    outcome = Outcome("handmade", "list", [5000, None], [plan], carried_by([plan]), ["infeasible"], [0.001] * 98 + [0.5, 0.7])
    measures = measure(outcome, workload, frame(workload, [outcome], network, 0, 2))
    assert (measures.mean_rows, measures.most_rows, measures.acceptance_ratio, measures.refusals) == (2, 2, 0.5, {"infeasible": 1})
    assert measures.planning.p99_us_per_call == pytest.approx(500_000)
    assert measures.planning.mean_us_per_call == pytest.approx((98 * 0.001 + 1.2) / 100 * 1e6)
    # All came at once, so what is used counts to the end: 2 Mb/s for 3.5 ms and 1 Mb/s for 1.5 ms of 5 ms at 4 Mb/s.
    assert measures.utilisation == pytest.approx((7 + 1.5) / 20)
    assert measures.utilisation_over_time == pytest.approx((0.5, (2 + 1.5) / 10))


class Recorder(Vifi):
    name = "recorder"

    def __init__(self) -> None:
        self.batches: list[list[Request]] = []

    def plan_together(self, requests: Any, network: Any, calendars: Any) -> Any:
        self.batches.append(list(requests))
        return super().plan_together(requests, network, calendars)


def test_batches() -> None:
    """Whoever arrived by a multiple of the batch is planned then, and begins no earlier; some have missed their deadline by waiting."""
    trace = [
        {"arrival_s": 0, "volume_bytes": 1000},
        {"arrival_s": 0.5, "volume_bytes": 1000, "deadline_s": 0.9},
        {"arrival_s": 1, "volume_bytes": 1000, "not_before_s": 3.25},
        {"arrival_s": 1.000001, "volume_bytes": 1000, "deadline_s": 9},
        {"arrival_s": 7, "volume_bytes": 1000},
    ]
    recorder = Recorder()
    network = NETWORKS[0]
    specification = Specification.from_document({"trace": trace, "batch_s": 1, "nodes": ["A", "B"]})
    workload = draw(specification, network)
    found = serve(recorder, workload, network, specification.batch_us, 0, quietly())
    assert [[request.id for request in batch] for batch in recorder.batches] == [["0"], ["2"], ["3"], ["4"]]
    assert [batch[0].not_before_us for batch in recorder.batches] == [0, 3_250_000, 2_000_000, 7_000_000]
    assert [type(answer) for answer in found.answers] == [Plan, Refusal, Plan, Plan, Plan]
    outcome = of_planner("recorder", found)
    measures = measure(outcome, workload, frame(workload, [outcome], network, 0, 1))
    # The wait for the batch counts: 4 Mb/s carry 1000 bytes in 2 ms.
    assert measures.normalized_delay_s == pytest.approx((4 * 0.002 + 0.999999) / 4, abs=1e-9)
    assert (measures.deadlines.met, measures.deadlines.missed, measures.deadlines.late) == (1, 1, 0)


class Greedy(Vifi):
    """Plans that do not fit: what `verify` is for."""

    def plan(self, request: Any, network: Any, calendars: Any, fewest_rows: bool = False) -> Any:
        return super().plan(
            request, network, {name: Calendar(link.capacity()) for name, link in network.links.items()}, fewest_rows
        )

    def plan_together(self, requests: Any, network: Any, calendars: Any) -> Any:
        return [self.plan(request, network, calendars) for request in requests]


def test_plans_that_do_not_fit_are_found_out() -> None:
    workload = draw(Specification.from_document(BUSY), NETWORKS[0])
    with pytest.raises(PlanRejected):
        serve(Greedy(), workload, NETWORKS[0], 1_000_000, 0, quietly())


DOCUMENT = BUSY | {"planners": ["vbls", "fbls", "ps"], "points": 5}


def test_the_same_again() -> None:
    assert quick(DOCUMENT, NETWORKS[1]) == quick(DOCUMENT, NETWORKS[1])
    alone = quick(DOCUMENT | {"planners": ["fbls"]}, NETWORKS[0])["planners"][0]
    beside = quick(DOCUMENT, NETWORKS[0])["planners"][1]
    assert {name: alone[name] for name in ("normalized_delay_s", "admitted")} == {
        name: beside[name] for name in ("normalized_delay_s", "admitted")
    }


def test_objectives_of_optimal_side_by_side() -> None:
    names = ["vifi", "optimal", "optimal:admitted", "optimal:volume"]
    measures = quick(BUSY | {"planners": names, "requests": 12, "batch_s": 0.5}, NETWORKS[1])["planners"]
    assert [each["planner"] for each in measures] == names
    assert {each["kind"] for each in measures} == {"joint"}
    assert all(each["admitted"] > 0 for each in measures)


def test_the_document_is_json() -> None:
    import orjson

    result = quick(DOCUMENT, NETWORKS[0])
    again = orjson.loads(orjson.dumps(result))
    assert [each["planner"] for each in again["planners"]] == ["vbls", "fbls", "ps"]
    assert Specification.from_document(again["specification"]) == Specification.from_document(DOCUMENT)
    assert again["workload"]["requests"] == 60


def test_progress_goes_up_to_one() -> None:
    heard: list[tuple[float, str]] = []
    specification = Specification.from_document(DOCUMENT)
    run(specification, NETWORKS[1], lambda share, text: heard.append((share, text)), lambda: False, lambda: 0.0)
    shares = [share for share, _ in heard]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert list(dict.fromkeys(text for _, text in heard)) == [
        "drawing requests",
        "finding paths",
        "vbls",
        "fbls",
        "ps",
        "measuring",
        "done",
    ]


@pytest.mark.parametrize("after", [0, 1, 3, 6])
def test_cancelled(after: int) -> None:
    asked = count()
    with pytest.raises(Cancelled):
        run(
            Specification.from_document(DOCUMENT),
            NETWORKS[0],
            lambda share, text: None,
            lambda: next(asked) >= after,
            lambda: 0.0,
        )


def test_a_specification_that_does_not_fit_the_network() -> None:
    with pytest.raises(SpecificationError) as caught:
        quick(DOCUMENT | {"nodes": ["A", "nowhere"]}, NETWORKS[0])
    assert [problem.field for problem in caught.value.problems] == ["nodes[1]"]


def test_nobody_is_admitted() -> None:
    """Deadlines that the slots of the link cannot meet: every figure is still a number or null."""
    network = Network([Link("L", "A", "B", MEGA, slot_us=10**9)])
    document = {
        "load": 0.01,
        "requests": 5,
        "nodes": ["A", "B"],
        "sizes": {"distribution": "fixed", "mean_bytes": 1000},
        "deadlines": {"least_factor": 1, "most_factor": 1},
        "planners": ["vbls", "fbls"],
    }
    for measures in quick(document, network)["planners"]:
        assert (measures["admitted"], measures["normalized_delay_s"], measures["mean_rows"], measures["makespan_s"]) == (
            0,
            None,
            None,
            0,
        )
        assert measures["deadlines"] == {"requests": 5, "met": 0, "missed": 5, "late": 0}


@cases(25)
@given(
    st.integers(0, 2**32),
    st.sampled_from(NETWORKS),
    st.floats(0.1, 3),
    st.sampled_from(["pareto", "exponential", "fixed"]),
    st.booleans(),
)
def test_all_planners_on_anything(seed: int, network: Network, load: float, name: str, split: bool) -> None:
    """Each plan is verified as it is booked; here the sum of them is looked at from outside."""
    sizes = {"distribution": name} | ({"least_bytes": 100, "most_bytes": 10**6} if name == "pareto" else {"mean_bytes": 100_000})
    document = BUSY | {"seed": seed, "load": load, "sizes": sizes, "requests": 15, "options": {"split": split}}
    specification = Specification.from_document(document)
    workload: Workload = draw(specification, network)
    for planner in PLANNING:
        found = serve(planner, workload, network, specification.batch_us, 0, quietly())
        never_over([answer for answer in found.answers if isinstance(answer, Plan)], network)
