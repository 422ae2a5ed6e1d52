# SPDX-License-Identifier: Apache-2.0
"""The k shortest paths against the sorted list of all paths, and what is kept over changes against networks made from nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core import network as network_module
from broker.core import paths as paths_module
from broker.core.calendar import DISTANT_PAST_US
from broker.core.capacity import Window
from broker.core.network import Link, Network
from broker.core.paths import Edge, Paths
from broker.core.units import FOREVER_US
from tests.core.graphs import NODES, all_paths, dense_lists, link_lists, nodes, some_ids
from tests.core.grid import cases


@cases(300)
@given(link_lists() | dense_lists(), nodes, nodes, st.integers(1, 12), some_ids)
def test_paths_are_the_head_of_the_sorted_list_of_all_paths(
    links: list[Link], source: str, target: str, k: int, without: frozenset[str]
) -> None:
    expected = all_paths([link for link in links if link.id not in without], source, target)
    paths = Paths(Edge(link.id, link.source, link.target, 1 if link.metric is None else link.metric) for link in links)
    assert list(paths.shortest(source, target, k, without)) == expected[:k]
    assert list(paths.shortest(source, target, 2 * k, without)) == expected[: 2 * k]
    assert paths.shortest(source, target, k, without) is paths.shortest(source, target, k, without), "the answer is kept"


CHANGES = st.one_of(
    st.tuples(st.just("metric"), st.integers(0, 11), st.sampled_from([None, 0, 1, 2, 5, 9])),
    st.tuples(st.just("remove"), st.integers(0, 11), st.none()),
    st.tuples(st.just("add"), st.integers(0, 11), st.tuples(nodes, nodes, st.sampled_from([0, 1, 3, 9]))),
    st.tuples(st.just("capacity"), st.integers(0, 11), st.integers(1, 20)),
    st.tuples(st.just("window"), st.integers(0, 11), st.integers(0, 9)),
)
QUESTIONS = st.lists(st.tuples(nodes, nodes, st.integers(1, 5), st.just(frozenset()) | some_ids), max_size=8)


@cases(300)
@given(link_lists(), st.lists(st.tuples(st.lists(CHANGES, max_size=3), QUESTIONS), min_size=1, max_size=6))
def test_what_is_kept_over_changes_is_what_a_fresh_network_finds(links: list[Link], history: list[Any]) -> None:
    present = {link.id: link for link in links}
    network = Network(present.values())
    asked = set()
    for changes, questions in history:
        for what, number, value in changes:
            change(present, what, f"L{number:02}", value)
        network = Network(present.values(), previous=network)
        fresh = Network(present.values())
        asked.update(questions)
        for question in asked:
            assert network.routes(*question) == fresh.routes(*question)


def change(present: dict[str, Link], what: str, link_id: str, value: Any) -> None:
    if what == "add":
        source, target, metric = value
        if source != target:
            present[link_id] = Link(link_id, source, target, 10, metric=metric)
    elif link_id in present:
        old = present.pop(link_id)
        fields = {name: getattr(old, name) for name in old.__slots__}
        if what == "metric":
            present[link_id] = Link(**fields | {"metric": value})
        elif what == "capacity":
            present[link_id] = Link(**fields | {"capacity_bps": value})
        elif what == "window":
            present[link_id] = Link(**fields | {"windows": (Window(0, 10, value),)})


def ring(size: int, **more: Any) -> dict[str, Link]:
    """N0 -> N1 -> ... and back, metric 10 each."""
    links = {}
    for i in range(size):
        a, b = f"N{i}", f"N{(i + 1) % size}"
        links[f"{a}{b}"] = Link(f"{a}{b}", a, b, 100, metric=10, **more)
        links[f"{b}{a}"] = Link(f"{b}{a}", b, a, 100, metric=10, **more)
    return links


def kept(links: dict[str, Link], before: Network) -> tuple[Network, list[str]]:
    """The network of `links` after `before`, and between which nodes it searches when asked for all pairs of the ring again."""
    network = Network(links.values(), previous=before)
    searched = []
    find = network._paths._find

    def noted(question: Any) -> Any:
        searched.append(question.source + question.target)
        return find(question)

    network._paths._find = noted  # type: ignore[method-assign]
    for a in before.nodes:
        for b in before.nodes:
            network.routes(a, b, 1)
    return network, sorted(searched)


def test_changes_find_anew_only_what_they_can_affect() -> None:
    links = ring(6)
    network = Network(links.values())
    for a in network.nodes:
        for b in network.nodes:
            network.routes(a, b, 1)
    network, searched = kept({**links, "N0N1": Link("N0N1", "N0", "N1", 7, metric=10)}, network)
    assert searched == [], "capacity changes no path"
    assert network.routes("N0", "N1", 1)[0].ceiling_bps == 7, "but what paths carry"
    del links["N3N4"]
    network, searched = kept(links, network)
    # Only the pairs whose path led over N3N4; of two ways round that are equally long, the smaller ids lead past it.
    assert searched == ["N2N4", "N3N4", "N3N5"]
    far = Link("far", "N0", "N2", 100, metric=500)
    network, searched = kept({**links, "far": far}, network)
    assert searched == [], "no shortest path is as long as that"
    near = Link("near", "N0", "N2", 100, metric=1)
    network, searched = kept({**links, "near": near}, network)
    assert "N0N2" in searched
    assert "N2N1" not in searched
    assert network.routes("N0", "N2", 1)[0].path == ("near",)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((paths_module, "_MAX_ANSWERS"), (paths_module, "_MAX_TARGETS"), (network_module, "_MAX_ROUTES")):
        monkeypatch.setattr(module, name, 4)
    network = Network(ring(6).values())
    fresh = Network(ring(6).values())
    for _ in range(2):
        for a in sorted(network.nodes):
            for b in sorted(network.nodes):
                assert network.routes(a, b, 2) == fresh.routes(a, b, 2)
                assert len(network._paths._answers) <= 4
                assert len(network._paths._distances) <= 4
                assert len(network._routes) <= 4


# --- links that carry too little -------------------------------------------------------------------------------------------------

STEPS = st.lists(st.integers(0, 3), min_size=1, max_size=6)


@cases(200)
@given(st.lists(st.tuples(STEPS, st.none() | st.tuples(st.integers(0, 5), st.integers(1, 6), st.integers(0, 2))), max_size=5),
       st.integers(1, 4), st.integers(-2, 8), st.integers(1, 8))  # fmt: skip
def test_below_names_the_links_that_never_carry_so_much(shapes: list[Any], least: int, begin: int, length: int) -> None:
    links, expected = [], set()
    for i, (steps, window) in enumerate(shapes):
        windows = () if window is None else (Window(window[0], window[0] + window[1], window[2]),)
        links.append(Link(f"L{i}", "A", "B", 3, available=tuple(enumerate(steps)), windows=windows))
        levels = [3 if t < 0 else steps[min(t, len(steps) - 1)] for t in range(begin, begin + length)]
        if window is not None:
            inside = range(window[0], window[0] + window[1])
            levels = [
                min(level, window[2]) if t in inside else level
                for t, level in zip(range(begin, begin + length), levels, strict=True)
            ]
        if all(level < least for level in levels):
            expected.add(f"L{i}")
    assert Network(links).below(least, begin, begin + length) == expected


def test_below_looks_as_far_as_for_ever() -> None:
    down = Link("down", "A", "B", 10, windows=(Window(DISTANT_PAST_US, FOREVER_US, 0),))
    later = Link("later", "A", "B", 10, windows=(Window(0, 50, 0),))
    network = Network([down, later, Link("up", "A", "B", 10)])
    assert network.below(1, 0, FOREVER_US) == {"down"}
    assert network.below(1, 10, 50) == {"down", "later"}
    assert network.below(1, 10, 51) == {"down"}
    assert network.below(11, 0, FOREVER_US) == {"down", "later", "up"}
    assert Network([Link("up", "A", "B", 10)]).below(10, 0, 1) == frozenset()


# --- the way back ------------------------------------------------------------------------------------------------------------------


@cases(200)
@given(link_lists())
def test_reverse_pairs_links_one_to_one(links: list[Link]) -> None:
    network = Network(links)
    by_id = network.links
    for link in links:
        back = network.reverse(link.id)
        if back is not None:
            assert (by_id[back].source, by_id[back].target) == (link.target, link.source)
            assert network.reverse(back) == link.id
    for a in NODES:
        for b in NODES:
            forward = sum((link.source, link.target) == (a, b) for link in links)
            backward = sum((link.source, link.target) == (b, a) for link in links)
            paired = sum((link.source, link.target) == (a, b) and network.reverse(link.id) is not None for link in links)
            assert paired == min(forward, backward)


def test_parallel_links_pair_by_name_then_in_order_of_id() -> None:
    names = [("L1", "A", "B"), ("L10", "A", "B"), ("L1~back", "B", "A"), ("L10~back", "B", "A"), ("h~up", "A", "B"), ("h~down", "B", "A"),
             ("c", "A", "B"), ("d", "A", "B"), ("x", "B", "A"), ("y", "B", "A"), ("z", "B", "A"), ("only", "B", "C")]  # fmt: skip
    network = Network(Link(*name, 1) for name in names)
    assert network.reverse("L1") == "L1~back"
    assert network.reverse("L10~back") == "L10"
    assert network.reverse("h~down") == "h~up"
    assert [network.reverse(name) for name in "cdxyz"] == ["x", "y", "c", "d", None]
    assert network.reverse("only") is network.reverse("nothing") is None


def test_the_way_back_of_a_path() -> None:
    network = Network([*ring(3).values(), Link("one-way", "N2", "N9", 1)])
    assert network.reverse_path(("N0N1", "N1N2")) == ("N2N1", "N1N0")
    assert network.reverse_path(("N0N1", "N1N2", "one-way")) is None
