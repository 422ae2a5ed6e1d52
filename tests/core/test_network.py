# SPDX-License-Identifier: Apache-2.0
"""Shortest paths against the list of all simple paths."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.calendar import DISTANT_PAST_US
from broker.core.capacity import Window
from broker.core.network import Link, Network, is_connected
from broker.core.units import MAX_RATE_BPS, MAX_SLOT_US
from tests.core.graphs import NODES, key, link_lists, simple_paths
from tests.core.grid import cases


@cases(300)
@given(link_lists(), st.sampled_from(NODES), st.sampled_from(NODES), st.randoms(use_true_random=False))
def test_route_is_the_least_of_all_paths_in_any_order_of_links(links: list[Link], source: str, target: str, random: Random) -> None:
    paths = [path for path in simple_paths(links, source, target) if path]
    expected = tuple(link.id for link in min(paths, key=key)) if paths else None
    for _ in range(2):
        network = Network(links)
        route = network.route(source, target)
        assert (route and route.path) == expected
        assert network.route(source, target) is route, "the answer is kept"
        random.shuffle(links)


@cases(150)
@given(
    link_lists(),
    st.lists(st.sampled_from([f"L{i:02}" for i in range(12)]), max_size=5),
    st.sampled_from(NODES),
    st.sampled_from(NODES),
)
def test_is_connected_knows_exactly_the_simple_paths(links: list[Link], ids: list[str], source: str, target: str) -> None:
    known = {tuple(link.id for link in path) for path in simple_paths(links, source, target) if path}
    by_id = {link.id: link for link in links}
    assert is_connected(tuple(ids), by_id, source, target) == (tuple(ids) in known)
    assert all(is_connected(path, by_id, source, target) for path in known)


@pytest.mark.parametrize(
    ("path", "connected"),
    [
        (("ab",), True),
        (("ab", "ba", "ab"), False),  # over the same node again
        (("ac", "ca", "ab"), False),  # back at the source
        (("ab", "bc", "cb"), False),  # back at the destination
        (("ac", "cb"), True),
        (("ac",), False),
        ((), False),
    ],
)
def test_a_connected_path_visits_no_node_twice(path: tuple[str, ...], connected: bool) -> None:
    links = {name: Link(name, name[0].upper(), name[1].upper(), 1) for name in ("ab", "ba", "ac", "ca", "bc", "cb")}
    assert is_connected(path, links, "A", "B") == connected


def test_route_says_what_the_links_together_ask() -> None:
    network = Network(
        [
            Link("a", "A", "B", 1_000, mtu_bytes=1_500, channel_bps=4, slot_us=6),
            Link("b", "B", "C", 800, available=((0, 500), (10, 700)), channel_bps=6, slot_us=10),
            Link("c", "C", "D", 900, windows=(Window(0, 10, 0),)),
        ]
    )
    route = network.route("A", "D")
    assert route is not None
    assert route == (("a", "b", "c"), 800, 12, 30)
    assert network.nodes == frozenset("ABCD")
    assert network.links["a"].capacity() == [(DISTANT_PAST_US, 949)]
    assert network.links["b"].capacity() == [(DISTANT_PAST_US, 800), (0, 500), (10, 700)]
    assert network.links["c"].capacity() == [(DISTANT_PAST_US, 900), (0, 0), (10, 900)]


def test_links_are_directed_and_unknown_nodes_have_no_path() -> None:
    network = Network([Link("a", "A", "B", 1)])
    assert network.route("B", "A") is network.route("A", "Z") is network.route("Z", "A") is network.route("A", "A") is None


def test_an_id_names_one_link() -> None:
    with pytest.raises(ValueError, match="'a' appears twice"):
        Network([Link("a", "A", "B", 1), Link("a", "B", "A", 1)])


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("target", {"target": "A"}),
        ("capacity_bps", {"capacity_bps": 0}),
        ("capacity_bps", {"capacity_bps": MAX_RATE_BPS + 1}),
        ("mtu_bytes", {"mtu_bytes": 100}),
        ("mtu_bytes", {"mtu_bytes": 65_536}),
        ("channel_bps", {"channel_bps": 0}),
        ("slot_us", {"slot_us": 0}),
        ("slot_us", {"slot_us": MAX_SLOT_US + 1}),
        ("metric", {"metric": -1}),
        ("available[1].bps", {"available": ((0, 5), (1, 11))}),
        ("available[0].bps", {"available": ((0, -1),)}),
        ("available[1].from", {"available": ((1, 5), (1, 6))}),
    ],
)
def test_problems_of_a_link_name_the_field(field: str, changes: dict[str, object]) -> None:
    fields: dict[str, object] = {"id": "a", "source": "A", "target": "B", "capacity_bps": 10}
    assert list(Link(**fields).problems()) == []  # type: ignore[arg-type]
    problems = list(Link(**(fields | changes)).problems())  # type: ignore[arg-type]
    assert field in [problem.field for problem in problems]
    assert all(problem.detail for problem in problems)
