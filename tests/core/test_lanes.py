# SPDX-License-Identifier: Apache-2.0
"""Candidate routes over parallel links: loop-free, shortest first, and as little alike as can be."""

from hypothesis import given
from hypothesis import strategies as st

from broker.core.network import Link, Network
from tests.core.graphs import all_paths, dense_lists, link_lists, nodes, some_ids
from tests.core.grid import cases


def length(by_id: dict[str, Link], path: tuple[str, ...]) -> tuple[int, int]:
    metrics = [by_id[i].metric for i in path]
    return sum(1 if metric is None else metric for metric in metrics), len(path)


@cases(300)
@given(link_lists() | dense_lists(), nodes, nodes, st.integers(1, 12), some_ids)
def test_routes_are_loop_free_paths_and_begin_with_a_shortest_one(
    links: list[Link], source: str, target: str, k: int, without: frozenset[str]
) -> None:
    network = Network(links)
    by_id = network.links
    expected = all_paths([link for link in links if link.id not in without], source, target)
    found = [route.path for route in network.routes(source, target, k, without)]
    assert len(set(found)) == len(found) <= k
    assert set(found) <= set(expected)
    assert bool(found) == bool(expected)
    assert network.routes(source, target, k, without) is network.routes(source, target, k, without), "the answer is kept"
    assert [route.path for route in network.routes(source, target, 2 * k, without)][:k] == found, (
        "a longer list begins with the shorter"
    )
    if found:
        assert length(by_id, found[0]) == length(by_id, expected[0])
    # Seen without telling parallel links of one metric apart, every way is found, the shorter ones first.
    ways = list(dict.fromkeys(tuple((by_id[i].source, by_id[i].target, length(by_id, (i,))[0]) for i in path) for path in expected))
    shown = list(dict.fromkeys(tuple((by_id[i].source, by_id[i].target, length(by_id, (i,))[0]) for i in path) for path in found))
    every = [route.path for route in network.routes(source, target, len(expected) + 1, without)]
    assert {tuple((by_id[i].source, by_id[i].target, length(by_id, (i,))[0]) for i in path) for path in every} == set(ways)
    assert [(sum(m for _, _, m in way), len(way)) for way in shown] == sorted(
        (sum(m for _, _, m in way), len(way)) for way in shown
    )


def chain(*widths: int) -> list[Link]:
    return [Link(f"{hop}{member}", f"N{hop}", f"N{hop + 1}", 10) for hop, width in enumerate(widths) for member in range(width)]


def test_lanes_share_nothing_where_they_need_not() -> None:
    network = Network(chain(3, 1, 2))
    paths = [route.path for route in network.routes("N0", "N3", 3)]
    assert paths == [("00", "10", "20"), ("01", "10", "21"), ("02", "10", "20")]


def test_mixtures_come_when_lanes_run_out() -> None:
    network = Network(chain(2, 2))
    assert [route.path for route in network.routes("N0", "N2", 9)] == [("00", "10"), ("01", "11"), ("00", "11"), ("01", "10")]


def test_a_longer_way_comes_before_mixtures() -> None:
    network = Network([*chain(2, 2), Link("way", "N0", "N2", 10, metric=9)])
    assert [route.path for route in network.routes("N0", "N2", 3)] == [("00", "10"), ("01", "11"), ("way",)]
    assert [route.path for route in network.routes("N0", "N2", 2, frozenset({"00", "01"}))] == [("way",)]
    assert [route.path for route in network.routes("N0", "N2", 2, frozenset({"00"}))] == [("01", "10"), ("01", "11")]
