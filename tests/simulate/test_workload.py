# SPDX-License-Identifier: Apache-2.0
"""Workloads: what was asked for is what is drawn."""

from typing import Any

import pytest

from broker.core.network import Link, Network
from broker.core.units import US_PER_S
from broker.simulate import Specification, SpecificationError
from broker.simulate.workload import Workload, draw

GIGA = 10**9
ONE = Network([Link("L", "A", "B", 100 * GIGA)])
# A triangle with a narrow side; everything can reach everything.
TRIANGLE = Network(
    [
        Link(f"{a}{b}", a, b, rate * GIGA)
        for a, b, rate in [("A", "B", 10), ("B", "A", 10), ("B", "C", 40), ("C", "B", 40), ("C", "A", 100), ("A", "C", 100)]
    ]
)


def drawn(network: Network, **document: Any) -> Workload:
    return draw(Specification.from_document(document), network)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("network", [ONE, TRIANGLE])
def test_load_is_what_arrives_on_the_busiest_link(seed: int, network: Network) -> None:
    sizes = {"distribution": "exponential", "mean_bytes": GIGA}
    workload = drawn(network, load=0.7, requests=40_000, seed=seed, sizes=sizes)
    span = workload.arrivals[-1].arrival_us / US_PER_S
    loads = dict.fromkeys(network.links, 0.0)
    for _, request, _ in workload.arrivals:
        route = network.route(request.source, request.destination)
        assert route is not None
        for link in route.path:
            loads[link] += (request.volume_bytes or 0) * 8 / network.links[link].capacity_bps / span
    assert max(loads.values()) == pytest.approx(0.7, rel=0.05)
    assert workload.offered_load == 0.7


def test_arrivals_per_second() -> None:
    workload = drawn(ONE, arrivals_per_s=50, requests=20_000, sizes={"distribution": "fixed", "mean_bytes": GIGA})
    assert workload.arrivals[-1].arrival_us / US_PER_S == pytest.approx(400, rel=0.03)
    assert workload.offered_load == pytest.approx(50 * 8 / 100)


def test_a_matrix_has_its_weights() -> None:
    pairs = [{"source": "A", "destination": "B", "weight": 3}, {"source": "C", "destination": "A", "weight": 1}]
    arrivals = drawn(TRIANGLE, load=0.5, requests=20_000, matrix=pairs).arrivals
    assert {(request.source, request.destination) for _, request, _ in arrivals} == {("A", "B"), ("C", "A")}
    assert sum(request.source == "A" for _, request, _ in arrivals) / 20_000 == pytest.approx(0.75, abs=0.02)


def test_nodes_send_to_each_other_alike() -> None:
    arrivals = drawn(TRIANGLE, load=0.5, requests=30_000).arrivals
    for source in "ABC":
        for destination in set("ABC") - {source}:
            share = sum((each.request.source, each.request.destination) == (source, destination) for each in arrivals) / 30_000
            assert share == pytest.approx(1 / 6, abs=0.015)
    some = drawn(TRIANGLE, load=0.5, nodes=["C", "A"]).arrivals
    assert {each.request.source for each in some} == {"A", "C"}


def test_deadlines_leads_and_rates() -> None:
    workload = drawn(
        TRIANGLE,
        load=0.5,
        requests=10_000,
        rates=[{"rate_max_bps": GIGA}, {"weight": 1}],
        deadlines={"share": 0.4, "least_factor": 2, "most_factor": 5},
        leads={"share": 0.3, "least_seconds": 10, "most_seconds": 20},
        begin="2026-01-01T00:00:00Z",
    )
    with_deadline = with_lead = 0
    for arrival_us, request, ideal_us in workload.arrivals:
        route = TRIANGLE.route(request.source, request.destination)
        assert route is not None
        rate = min(request.rate_max_bps or route.ceiling_bps, route.ceiling_bps)
        assert ideal_us == pytest.approx((request.volume_bytes or 0) * 8 * US_PER_S / rate, abs=1)
        lead_s = (request.not_before_us - arrival_us) / US_PER_S
        assert lead_s == 0 or 10 <= lead_s <= 20
        with_lead += lead_s > 0
        if request.deadline_us is not None:
            with_deadline += 1
            assert 2 - 1e-3 <= (request.deadline_us - request.not_before_us) / ideal_us <= 5 + 1e-3
    assert with_deadline / 10_000 == pytest.approx(0.4, abs=0.03)
    assert with_lead / 10_000 == pytest.approx(0.3, abs=0.03)
    assert workload.arrivals[0].arrival_us > 1_767_225_600 * US_PER_S


def test_one_thing_changed_leaves_the_rest() -> None:
    plain = drawn(ONE, load=0.5, requests=200, nodes=["A", "B"])
    urgent = drawn(ONE, load=0.5, requests=200, nodes=["A", "B"], deadlines={"share": 1.0})
    busier = drawn(ONE, load=1.0, requests=200, nodes=["A", "B"])
    volumes = [each.request.volume_bytes for each in plain.arrivals]
    assert (
        volumes
        == [each.request.volume_bytes for each in urgent.arrivals]
        == [each.request.volume_bytes for each in busier.arrivals]
    )
    assert [each.arrival_us for each in plain.arrivals] == pytest.approx([2 * each.arrival_us for each in busier.arrivals], abs=2)
    assert volumes != [each.request.volume_bytes for each in drawn(ONE, load=0.5, requests=200, seed=2).arrivals]


def test_a_trace_is_taken_as_it_is() -> None:
    trace = [
        {
            "arrival_s": 9,
            "volume_bytes": 5,
            "source": "B",
            "destination": "C",
            "rate_max_bps": 7,
            "not_before_s": 11,
            "deadline_s": 12.5,
        },
        {"arrival_s": 4.000001, "volume_bytes": 10**9},
    ]
    workload = drawn(TRIANGLE, trace=trace, matrix=[{"source": "A", "destination": "C"}], rates=[{"rate_max_bps": 99}])
    first, second = workload.arrivals
    assert (first.arrival_us, first.request.source, first.request.destination, first.request.rate_max_bps) == (
        4_000_001,
        "A",
        "C",
        99,
    )
    assert (second.arrival_us, second.request.not_before_us, second.request.deadline_us) == (9_000_000, 11_000_000, 12_500_000)
    assert (second.request.source, second.request.volume_bytes, second.request.rate_max_bps) == ("B", 5, 7)
    assert workload.offered_load == pytest.approx(8e9 / 100e9 / 4.999999)
    assert drawn(TRIANGLE, trace=trace[:1], requests=1).offered_load is None


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"load": 0.5, "matrix": [{"source": "B", "destination": "A"}]}, "matrix[0].destination"),
        ({"trace": [{"arrival_s": 0, "volume_bytes": 1, "source": "B", "destination": "A"}]}, "trace[0].destination"),
        ({"load": 0.001, "requests": 200_000, "sizes": {"distribution": "fixed", "mean_bytes": 10**18}}, "load"),
        ({"trace": [{"arrival_s": 3e11, "volume_bytes": 1}]}, "begin"),
        (
            {
                "arrivals_per_s": 1,
                "sizes": {"distribution": "fixed", "mean_bytes": 10**18},
                "requests": 1,
                "deadlines": {"least_factor": 9e5},
            },
            "begin",
        ),
    ],
)
def test_what_cannot_be(document: dict[str, Any], field: str) -> None:
    one_way = Network([Link("L", "A", "B", 10**6)])
    with pytest.raises(SpecificationError) as caught:
        drawn(one_way, **document)
    assert [problem.field for problem in caught.value.problems] == [field]
