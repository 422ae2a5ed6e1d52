# SPDX-License-Identifier: Apache-2.0
"""Parallel links: among paths of equal length, those that share the fewest links come first.

The k shortest paths of a network with parallel links are mostly the same path, with a different parallel link at a single hop; a
transfer that waits for one busy link would find no alternative among them. So parallel links of one metric count as one edge for
the search, and each path found fans out into lanes: the j-th lane takes the j-th parallel link at every hop (modulo their number
where there are fewer).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from broker.core.paths import Edge, Path


def bundles(edges: Iterable[Edge]) -> dict[str, tuple[str, ...]]:
    """Parallel edges of one metric, ordered by id, under the id of the first."""
    alike: dict[tuple[str, str, int], list[str]] = {}
    for edge in edges:
        alike.setdefault(edge[1:], []).append(edge.id)
    return {(members := tuple(sorted(ids)))[0]: members for ids in alike.values()}


def fan_out(paths: Sequence[Path], members: Mapping[str, Sequence[str]], k: int) -> tuple[Path, ...]:
    """At most `k` paths over single links: first the lanes of each path, then mixtures. A longer list begins with the shorter ones.

    `members` gives the usable links of each bundle, at least one.
    """
    return tuple(islice(dict.fromkeys(_lanes(paths, members)), k))


def _lanes(paths: Sequence[Path], members: Mapping[str, Sequence[str]]) -> Iterator[Path]:
    widest = max((len(members[bundle]) for path in paths for bundle in path), default=0)
    for shift in range(widest):
        for path in paths:
            hops = [members[bundle] for bundle in path]
            for lane in range(max(map(len, hops))):
                yield tuple(links[(lane + shift * hop) % len(links)] for hop, links in enumerate(hops))
