# SPDX-License-Identifier: Apache-2.0
"""Small networks with parallel links, zero metrics and ties, and all of their simple paths."""

from collections.abc import Iterator

from hypothesis import strategies as st

from broker.core.network import Link

NODES = "ABCDE"


@st.composite
def link_lists(draw: st.DrawFn) -> list[Link]:
    """Parallel links, zero metrics and ties are the rule here."""
    ends = st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)).filter(lambda pair: pair[0] != pair[1])
    pairs = draw(st.lists(st.tuples(ends, st.sampled_from([None, 0, 1, 1, 2, 3])), max_size=12))
    ids = draw(st.permutations(range(len(pairs))))
    return [Link(f"L{ids[i]:02}", a, b, 10, metric=metric) for i, ((a, b), metric) in enumerate(pairs)]


def simple_paths(links: list[Link], source: str, target: str, seen: tuple[str, ...] = ()) -> Iterator[tuple[Link, ...]]:
    if source == target:
        yield ()
        return
    for link in links:
        if link.source == source and link.target not in (*seen, source):
            for rest in simple_paths(links, link.target, target, (*seen, source)):
                yield (link, *rest)


def key(path: tuple[Link, ...]) -> tuple[int, int, list[str]]:
    return sum(1 if link.metric is None else link.metric for link in path), len(path), [link.id for link in path]


nodes = st.sampled_from(NODES)


some_ids = st.frozensets(st.sampled_from([f"L{i:02}" for i in range(12)]), max_size=4)


@st.composite
def dense_lists(draw: st.DrawFn) -> list[Link]:
    """Most pairs of nodes are linked: many ways round, and many that would lead in circles."""
    metrics = draw(st.lists(st.sampled_from([None, 0, 1, 1, 2, 3, -1]), min_size=20, max_size=20))  # -1: no link
    pairs = [(a, b) for a in NODES for b in NODES if a != b]
    found = [(*pair, metric) for pair, metric in zip(pairs, metrics, strict=True) if metric != -1]
    return [Link(f"L{i:02}", a, b, 10, metric=metric) for i, (a, b, metric) in enumerate(draw(st.permutations(found)))]


def all_paths(links: list[Link], source: str, target: str) -> list[tuple[str, ...]]:
    found = sorted((path for path in simple_paths(links, source, target) if path), key=key)
    return [tuple(link.id for link in path) for path in found]
