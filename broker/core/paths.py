# SPDX-License-Identifier: Apache-2.0
"""The k shortest loop-free paths of a directed multigraph, cached until a change of the graph makes them wrong.

Yen (1971) with three savings that change no answer. Lawler (1972): each part of the remaining paths is searched once, so that no
path is found twice. The distances to the target, computed once, guide every search (A*) and bound the weights in a part. A part is
searched only when its bound is the smallest that remains; most parts are never searched.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

Path = tuple[str, ...]

# Metric and hops in one number, so that one comparison orders by the sum of metrics and then by hops.
_METRIC = 1 << 32

# Limits of the caches, in entries: about 30 MB with k = 4 and ten links per path. A full cache is cleared.
_MAX_ANSWERS = 1 << 14
_MAX_TARGETS = 256

# With more changed links than this, finding the cached answers that remain valid costs more than computing them again.
_MAX_ADDED = 16


class Edge(NamedTuple):
    """A directed link as path search sees it."""

    id: str
    source: str
    target: str
    metric: int


class _Part(NamedTuple):
    """All paths that begin with `root` and then leave `node` over a link that is not in `taken`."""

    root: Path
    weight: int
    node: str
    taken: frozenset[str]


class _Question(NamedTuple):
    source: str
    target: str
    k: int
    without: frozenset[str]


# For an added edge: the distances to its source, its weight, the distances from its target.
_Detour = tuple[Mapping[str, int], int, Mapping[str, int]]


class Paths:
    """The paths of one graph. `previous` is the graph before a change: its answers that are still valid are reused."""

    def __init__(self, edges: Iterable[Edge], previous: "Paths | None" = None) -> None:
        self._edges = {edge.id: edge for edge in edges}
        self._out: dict[str, list[tuple[str, int, str]]] = {}
        self._into: dict[str, list[tuple[str, int]]] = {}
        for edge in self._edges.values():
            weight = _weight(edge)
            self._out.setdefault(edge.source, []).append((edge.id, weight, edge.target))
            self._into.setdefault(edge.target, []).append((edge.source, weight))
        self._answers: dict[_Question, tuple[Path, ...]] = {}
        self._distances: dict[str, Mapping[str, int]] = {}
        if previous is not None:
            self._take_over(previous)

    def shortest(self, source: str, target: str, k: int, without: frozenset[str]) -> tuple[Path, ...]:
        """At most `k` loop-free paths that use no link of `without`, in order of metric, hops and ids."""
        if source == target:
            return ()
        question = _Question(source, target, k, without)
        answer = self._answers.get(question)
        if answer is None:
            if len(self._answers) >= _MAX_ANSWERS:
                self._answers.clear()
            answer = self._answers[question] = tuple(self._find(question))
        return answer

    def _find(self, question: _Question) -> list[Path]:
        source, target, k, without = question
        distances = self._distances_to(target)
        if source not in distances:
            return []
        found: list[Path] = []
        order = count()
        # (weight, path, tie-breaker, part); the empty path means "not searched yet, at least this weight" and sorts first.
        heap: list[tuple[int, Path, int, _Part]] = [(distances[source], (), next(order), _Part((), 0, source, without))]
        while heap and len(found) < k:
            _, path, _, part = heapq.heappop(heap)
            if not path:
                best = self._search(part, target, distances)
                if best is not None:
                    heapq.heappush(heap, (*best, next(order), part))
                continue
            found.append(path)
            if len(found) < k:
                for bound, rest in self._divide(path, part, without, distances):
                    heapq.heappush(heap, (bound, (), next(order), rest))
        return found

    def _divide(
        self, path: Path, part: _Part, without: frozenset[str], distances: Mapping[str, int]
    ) -> Iterable[tuple[int, _Part]]:
        """The rest of `part` without `path`, split by the link at which it leaves `path`, each with a lower bound on its weights."""
        passed = self._nodes(part.root)
        node, weight = part.node, part.weight
        for i in range(len(part.root), len(path)):
            taken = (part.taken if i == len(part.root) else without) | {path[i]}
            passed.add(node)
            bounds = [
                step + distances[target]
                for link_id, step, target in self._out[node]
                if link_id not in taken and target not in passed and target in distances
            ]
            if bounds:
                yield weight + min(bounds), _Part(path[:i], weight, node, taken)
            edge = self._edges[path[i]]
            node, weight = edge.target, weight + _weight(edge)

    def _search(self, part: _Part, target: str, distances: Mapping[str, int]) -> tuple[int, Path] | None:
        """The least path of `part`: A*. Its first path to a node is the least one, also by ids, since each hop has a positive weight."""
        settled = self._nodes(part.root)
        without = part.taken  # the links excluded at part.node, which is never entered again, and those that the question excludes
        heap: list[tuple[int, Path, int, str]] = [(part.weight + distances[part.node], part.root, part.weight, part.node)]
        while heap:
            _, path, weight, node = heapq.heappop(heap)
            if node == target:
                return weight, path
            if node in settled:
                continue
            settled.add(node)
            for link_id, step, entered in self._out.get(node, ()):
                if entered not in settled and link_id not in without and entered in distances:
                    reached = weight + step
                    heapq.heappush(heap, (reached + distances[entered], (*path, link_id), reached, entered))
        return None

    def _nodes(self, root: Path) -> set[str]:
        return {self._edges[link_id].source for link_id in root}

    def _distances_to(self, target: str) -> Mapping[str, int]:
        """The weight of the shortest path from every node that reaches `target`. Excluding links only makes paths longer."""
        if target not in self._distances:
            if len(self._distances) >= _MAX_TARGETS:
                self._distances.clear()
            self._distances[target] = _distances(target, self._into)
        return self._distances[target]

    def _take_over(self, previous: "Paths") -> None:
        """Reuse the answers from before a change that are still valid. A changed edge counts as removed and added.

        This is exact, because an answer is the head of the sorted list of all its paths. Removing edges removes paths from that
        list: a head without removed paths stays the head. Adding edges inserts paths over them: an answer with k paths stays the
        head if none of these can weigh as little as its last path; an answer with fewer than k paths is the whole list, and stays
        valid if there are none.
        """
        removed = frozenset(name for name, edge in previous._edges.items() if self._edges.get(name) != edge)
        added = [edge for name, edge in self._edges.items() if previous._edges.get(name) != edge]
        if not removed and not added:
            # The same graph: both objects share one cache, which either may fill.
            self._answers, self._distances = previous._answers, previous._distances
            return
        if len(added) > _MAX_ADDED:
            return
        detours = [(_distances(edge.source, self._into), _weight(edge), _distances(edge.target, self._onward())) for edge in added]
        for question, answer in list(previous._answers.items()):
            if all(removed.isdisjoint(path) for path in answer) and not self._may_gain(question, answer, detours):
                self._answers[question] = answer

    def _may_gain(self, question: _Question, answer: tuple[Path, ...], detours: Sequence[_Detour]) -> bool:
        """True if a path over one of the added edges could belong in `answer`."""
        full = len(answer) == question.k
        last = sum(_weight(self._edges[link_id]) for link_id in answer[-1]) if full else 0
        for towards, weight, onward in detours:
            before, after = towards.get(question.source), onward.get(question.target)
            if before is not None and after is not None and not (full and before + weight + after > last):
                return True
        return False

    def _onward(self) -> dict[str, list[tuple[str, int]]]:
        return {node: [(target, weight) for _, weight, target in links] for node, links in self._out.items()}


def _weight(edge: Edge) -> int:
    return edge.metric * _METRIC + 1


def _distances(node: str, neighbours: Mapping[str, list[tuple[str, int]]]) -> dict[str, int]:
    """Dijkstra's algorithm from one node to all."""
    settled: dict[str, int] = {}
    heap = [(0, node)]
    while heap:
        weight, node = heapq.heappop(heap)
        if node not in settled:
            settled[node] = weight
            for other, step in neighbours.get(node, ()):
                if other not in settled:
                    heapq.heappush(heap, (weight + step, other))
    return settled
