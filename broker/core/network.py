# SPDX-License-Identifier: Apache-2.0
"""The directed network: links, and the shortest paths by metric between two nodes."""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from math import lcm
from typing import NamedTuple

from broker.core.calendar import Step
from broker.core.capacity import Window, capacity_steps
from broker.core.goodput import MAX_MTU_BYTES, MIN_MTU_BYTES, payload_rate
from broker.core.request import FieldProblem
from broker.core.units import MAX_RATE_BPS, MAX_SLOT_US

DEFAULT_METRIC = 1


@dataclass(frozen=True, slots=True)
class Link:
    """One directed link. Rates in bit/s; booked rates are whole multiples of `channel_bps` (chi), boundaries of `slot_us`."""

    id: str
    source: str
    target: str
    capacity_bps: int
    mtu_bytes: int | None = None
    channel_bps: int | None = None
    slot_us: int = 1
    metric: int | None = None
    available: tuple[Step, ...] = ()
    windows: tuple[Window, ...] = ()

    def payload_bps(self, rate_bps: int) -> int:
        return payload_rate(rate_bps, self.mtu_bytes)

    def problems(self) -> Iterator[FieldProblem]:
        """Everything that is wrong with the link on its own."""
        if self.source == self.target:
            yield FieldProblem("target", f"source and target are both {self.source!r}")
        if not 0 < self.capacity_bps <= MAX_RATE_BPS:
            yield FieldProblem("capacity_bps", f"{self.capacity_bps} is not in 1..{MAX_RATE_BPS} (1 Pb/s)")
        if self.mtu_bytes is not None and not MIN_MTU_BYTES <= self.mtu_bytes <= MAX_MTU_BYTES:
            yield FieldProblem("mtu_bytes", f"{self.mtu_bytes} is not in {MIN_MTU_BYTES}..{MAX_MTU_BYTES}")
        if self.channel_bps is not None and not 0 < self.channel_bps <= MAX_RATE_BPS:
            yield FieldProblem("channel_bps", f"{self.channel_bps} is not in 1..{MAX_RATE_BPS}")
        if not 0 < self.slot_us <= MAX_SLOT_US:
            yield FieldProblem("slot_us", f"{self.slot_us} is not in 1..{MAX_SLOT_US} (a day)")
        if self.metric is not None and self.metric < 0:
            yield FieldProblem("metric", f"{self.metric} is below 0")
        for i, (begin, rate) in enumerate(self.available):
            if not 0 <= rate <= self.capacity_bps:
                yield FieldProblem(f"available[{i}].bps", f"{rate} is not in 0..{self.capacity_bps} (capacity_bps)")
            if i > 0 and begin <= self.available[i - 1][0]:
                yield FieldProblem(f"available[{i}].from", "steps must be in order of time, each instant once")

    def capacity(self) -> list[Step]:
        """capacity(t) in payload bit/s."""
        return capacity_steps(
            self.payload_bps(self.capacity_bps),
            [(begin, self.payload_bps(rate)) for begin, rate in self.available],
            [Window(w.begin_us, w.end_us, self.payload_bps(w.bps)) for w in self.windows],
        )


class Route(NamedTuple):
    """A path and what its links together ask of a plan.

    `ceiling_bps` is the most that the path can ever carry; rates are multiples of `channel_bps`, boundaries of `slot_us`.
    """

    path: tuple[str, ...]
    ceiling_bps: int
    channel_bps: int
    slot_us: int


class Network:
    """An immutable set of links. Paths are tuples of link ids."""

    def __init__(self, links: Iterable[Link]) -> None:
        self.links: dict[str, Link] = {}
        self._out: dict[str, list[Link]] = {}
        nodes: set[str] = set()
        for link in links:
            if link.id in self.links:
                raise ValueError(f"link id {link.id!r} appears twice")
            self.links[link.id] = link
            self._out.setdefault(link.source, []).append(link)
            nodes.update((link.source, link.target))
        self.nodes = frozenset(nodes)
        self._routes: dict[tuple[str, str, int], tuple[Route, ...]] = {}

    def route(self, source: str, target: str) -> Route | None:
        """The path with the least sum of metrics, then fewest hops, then the smallest ids; None when there is none.

        Unknown nodes and source == target have no path. The answer is kept: a Network never changes.
        """
        found = self.routes(source, target, 1)
        return found[0] if found else None

    def routes(self, source: str, target: str, k: int) -> tuple[Route, ...]:
        """At most `k` shortest loop-free paths by metric, hops and ids, the shortest first (Yen 1971). Parallel links make paths of their own."""
        key = (source, target, k)
        if key not in self._routes:
            self._routes[key] = tuple([self.along(path) for path in self._shortest_paths(source, target, k)])
        return self._routes[key]

    def along(self, path: tuple[str, ...]) -> Route:
        """The route over the links of `path`, which must exist."""
        links = [self.links[link_id] for link_id in path]
        return Route(
            path,
            min(max(rate for _, rate in link.capacity()) for link in links),
            lcm(*(link.channel_bps or 1 for link in links)),
            lcm(*(link.slot_us for link in links)),
        )

    def _shortest_paths(self, source: str, target: str, k: int) -> list[tuple[str, ...]]:
        first = self._shortest(source, target, frozenset(), frozenset())
        if first is None:
            return []
        found = [first]
        candidates: list[tuple[int, int, tuple[str, ...]]] = []
        known = {first[2]}
        while len(found) < k:
            _, _, path = found[-1]
            for i in range(len(path)):
                root, spur = path[:i], self.links[path[i]].source
                passed = frozenset(self.links[link_id].source for link_id in root)
                taken = frozenset(other[i] for _, _, other in found if other[:i] == root)
                rest = self._shortest(spur, target, taken, passed)
                if rest is not None and (whole := root + rest[2]) not in known:
                    known.add(whole)
                    cost = sum(_metric(self.links[link_id]) for link_id in whole)
                    heapq.heappush(candidates, (cost, len(whole), whole))
            if not candidates:
                break
            found.append(heapq.heappop(candidates))
        return [path for _, _, path in found]

    def _shortest(
        self, source: str, target: str, without_links: frozenset[str], without_nodes: frozenset[str]
    ) -> tuple[int, int, tuple[str, ...]] | None:
        """Dijkstra's algorithm: (sum of metrics, hops, path); the heap's key makes ties deterministic."""
        if source == target:
            return None
        order = count()
        heap: list[tuple[int, int, tuple[str, ...], int, str]] = [(0, 0, (), next(order), source)]
        settled = set(without_nodes)
        while heap:
            cost, hops, path, _, node = heapq.heappop(heap)
            if node == target:
                return cost, hops, path
            if node in settled:
                continue
            settled.add(node)
            for link in self._out.get(node, ()):
                if link.target not in settled and link.id not in without_links:
                    heapq.heappush(heap, (cost + _metric(link), hops + 1, (*path, link.id), next(order), link.target))
        return None


def _metric(link: Link) -> int:
    return DEFAULT_METRIC if link.metric is None else link.metric


def is_connected(path: tuple[str, ...], links: Mapping[str, Link], source: str, target: str) -> bool:
    """Does `path` lead from `source` to `target` over known links, without visiting a node twice?"""
    node, seen = source, {source}
    for link_id in path:
        link = links.get(link_id)
        if link is None or link.source != node or link.target in seen:
            return False
        node = link.target
        seen.add(node)
    return bool(path) and node == target
