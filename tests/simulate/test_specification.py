# SPDX-License-Identifier: Apache-2.0
"""Documents in, specifications out: every mistake by its field, and nothing but SpecificationError whatever comes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.network import Link, Network
from broker.simulate import Specification, SpecificationError
from broker.simulate.distributions import Exponential, Fixed, Pareto
from broker.simulate.specification import MAX_NODES, MAX_PLANNERS, MAX_REQUESTS, as_document
from tests.core.grid import cases

FULL: dict[str, Any] = {
    "planners": ["vbls", "fbls", "ps"],
    "requests": 50,
    "seed": 7,
    "load": 0.8,
    "sizes": {"distribution": "pareto", "shape": 1.5, "least_bytes": 10, "most_bytes": 1000},
    "rates": [{"rate_max_bps": 10, "weight": 0.3}, {"weight": 0.7}],
    "deadlines": {"share": 0.5, "least_factor": 2, "most_factor": 4},
    "leads": {"least_seconds": 0, "most_seconds": 60},
    "matrix": [{"source": "A", "destination": "B", "weight": 2}],
    "batch_s": 2.5,
    "begin": "2026-01-01T00:00:00Z",
    "options": {"paths": 2, "split": True},
    "points": 10,
}


def mistakes(**changes: object) -> dict[str, str]:
    document = {name: value for name, value in (FULL | changes).items() if value is not ...}
    with pytest.raises(SpecificationError) as caught:
        Specification.from_document(document)
    return {problem.field: problem.detail for problem in caught.value.problems}


def test_everything_is_read() -> None:
    found = Specification.from_document(FULL)
    assert found.sizes == Pareto(1.5, 10, 1000)
    assert [(each.rate_max_bps, each.weight) for each in found.rates] == [(10, 0.3), (None, 0.7)]
    assert (found.deadlines.share, found.leads.share) == (0.5, 1.0)  # who gives bounds and no share means all
    assert (found.batch_us, found.begin_us, found.options.split) == (2_500_000, 1_767_225_600_000_000, True)


def test_written_out_and_read_again() -> None:
    found = Specification.from_document(FULL)
    assert Specification.from_document(as_document(found)) == found
    for sizes in (Exponential(5), Fixed(6)):
        document = FULL | {"sizes": {"distribution": type(sizes).__name__.lower(), "mean_bytes": sizes.mean_bytes}}
        again = Specification.from_document(as_document(Specification.from_document(document)))
        assert again.sizes == sizes


def test_null_is_absent() -> None:
    assert Specification.from_document({"load": 1, "seed": None, "sizes": None, "rates": None}) == Specification(load=1.0)


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"planners": ["vbls", "best"]}, "planners[1]", "'best' is unknown; there are: "),
        ({"planners": ["vbls", "vbls"]}, "planners[1]", "already"),
        ({"planners": []}, "planners", "empty list"),
        ({"planners": [1]}, "planners[0]", "must be text"),
        ({"planners": ["vbls"] * (MAX_PLANNERS + 1)}, "planners", "at most 20"),
        ({"requests": MAX_REQUESTS + 1}, "requests", "is not in 1..200000"),
        ({"requests": 2.5}, "requests", "whole number"),
        ({"requests": True}, "requests", "whole number"),
        ({"seed": -1}, "seed", "is not in 0.."),
        ({"load": float("nan")}, "load", "must be a number"),
        ({"load": "0.5"}, "load", "must be a number"),
        ({"load": ...}, "load", "is missing"),
        ({"arrivals_per_s": 3}, "arrivals_per_s", "one of the two"),
        ({"sizes": {"distribution": "normal"}}, "sizes.distribution", "'normal' is unknown"),
        ({"sizes": {"distribution": "fixed"}}, "sizes.mean_bytes", "is missing"),
        ({"sizes": {"least_bytes": 10, "most_bytes": 9}}, "sizes.most_bytes", "below least_bytes"),
        ({"sizes": []}, "sizes", "must be an object"),
        ({"rates": [{"rate_max_bps": 0}]}, "rates[0].rate_max_bps", "is not in 1.."),
        ({"rates": [{"weight": 0}]}, "rates", "all weights are 0"),
        ({"deadlines": {"least_factor": 5, "most_factor": 2}}, "deadlines.most_factor", "below least_factor"),
        ({"deadlines": {"share": 2}}, "deadlines.share", "is not in 0..1"),
        ({"leads": {"least": 1}}, "leads.least", "is unknown; there are: least_seconds"),
        ({"matrix": [{"source": "A", "destination": "A"}]}, "matrix[0].destination", "both 'A'"),
        ({"matrix": [{"source": "A"}]}, "matrix[0].destination", "is missing"),
        ({"nodes": ["A", "B"]}, "nodes", "one of the two"),
        ({"matrix": None, "nodes": ["A"]}, "nodes", "at least two"),
        ({"begin": "yesterday"}, "begin", "not an RFC 3339 time"),
        ({"begin": "9999-01-01T00:00:00Z"}, "begin", "years 1970 to 5000"),
        ({"options": {"paths": 17}}, "options.paths", "is not in 1..16"),
        ({"batch_s": 0}, "batch_s", "is not in"),
        ({"trace": [{"arrival_s": 0, "volume_bytes": 1}]}, "load", "arrivals of its own"),
        ({"load": ..., "requests": 2, "trace": [{"arrival_s": 0, "volume_bytes": 1}]}, "requests", "the trace has 1 requests"),
        ({"trace": [{"arrival_s": 5, "volume_bytes": 1, "deadline_s": 5}]}, "trace[0].deadline_s", "after arrival_s"),
        ({"trace": [{"arrival_s": 5, "volume_bytes": 1, "not_before_s": 4}]}, "trace[0].not_before_s", "before arrival_s"),
        ({"trace": [{"arrival_s": 5, "volume_bytes": 1, "source": "A"}]}, "trace[0].destination", "or neither"),
        ({"lode": 1}, "lode", "is unknown; there are: arrivals_per_s, "),
    ],
)
def test_mistakes_have_the_name_of_their_field(changes: dict[str, object], field: str, says: str) -> None:
    assert says in mistakes(**changes).get(field, ""), mistakes(**changes)


def test_all_mistakes_at_once() -> None:
    assert set(mistakes(seed=-1, points=0, batch_s="x", planners=["y"])) == {"seed", "points", "batch_s", "planners[0]"}


@pytest.mark.parametrize("document", [None, 3, [], "load"])
def test_no_object(document: object) -> None:
    with pytest.raises(SpecificationError, match="must be an object"):
        Specification.from_document(document)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@cases(300)
@given(st.dictionaries(st.sampled_from([*FULL, "trace", "nodes", "arrivals_per_s", "solver_time_limit_s"]), anything))
def test_any_document(document: dict[str, object]) -> None:
    try:
        found = Specification.from_document(document)
    except SpecificationError as error:
        assert error.problems
        assert all(problem.field and problem.detail for problem in error.problems)
    else:
        assert Specification.from_document(as_document(found)) == found or found.trace


def test_against_a_network() -> None:
    network = Network([Link("1", "A", "B", 10)])
    entry = {"arrival_s": 0, "volume_bytes": 1, "source": "A", "destination": "X"}
    by_matrix = Specification.from_document({"load": 1, "matrix": [{"source": "Q", "destination": "B"}]})
    assert [problem.field for problem in by_matrix.problems(network)] == ["matrix[0].source"]
    assert [p.field for p in Specification.from_document({"load": 1, "nodes": ["A", "Y"]}).problems(network)] == ["nodes[1]"]
    assert [p.field for p in Specification.from_document({"trace": [entry]}).problems(network)] == ["trace[0].destination"]
    assert [p.field for p in Specification(load=1).problems(Network([]))] == ["network"]
    many = Network([Link(str(i), "hub", f"N{i}", 10) for i in range(MAX_NODES)])
    assert [p.field for p in Specification(load=1).problems(many)] == ["nodes"]
    assert not list(Specification.from_document({"load": 1, "nodes": ["hub", "N1"]}).problems(many))
