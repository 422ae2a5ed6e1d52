# SPDX-License-Identifier: Apache-2.0
"""The directed network: links, and the shortest paths by metric between two nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import NamedTuple

import numpy as np

from broker.core.calendar import Step
from broker.core.capacity import Window, capacity_steps
from broker.core.goodput import MAX_MTU_BYTES, MIN_MTU_BYTES, payload_rate
from broker.core.lanes import bundles, fan_out
from broker.core.paths import Edge, Path, Paths
from broker.core.request import FieldProblem
from broker.core.reverse import reverse_path, reverses
from broker.core.scans import Int64Array
from broker.core.units import FOREVER_US, MAX_RATE_BPS, MAX_SLOT_US

DEFAULT_METRIC = 1

_MAX_ROUTES = 1 << 14  # route queries; the cache is cleared above that


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
        """The payload share of a rate on the wire, by the link's MTU."""
        return payload_rate(rate_bps, self.mtu_bytes)

    def problems(self) -> Iterator[FieldProblem]:
        """Everything that is wrong with the link alone."""
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
    """A path and the constraints of all its links on a plan.

    `ceiling_bps` is the most that the path can ever carry; rates are multiples of `channel_bps`, boundaries multiples of `slot_us`.
    """

    path: tuple[str, ...]
    ceiling_bps: int
    channel_bps: int
    slot_us: int


class Network:
    """An immutable set of links. Paths are tuples of link ids.

    `previous` is the network before some links changed: its paths that are still valid are reused (see `paths`), while everything
    that depends on capacities is computed anew.
    """

    def __init__(self, links: Iterable[Link], previous: "Network | None" = None) -> None:
        self.links: dict[str, Link] = {}
        nodes: set[str] = set()
        for link in links:
            if link.id in self.links:
                raise ValueError(f"link id {link.id!r} appears twice")
            self.links[link.id] = link
            nodes.update((link.source, link.target))
        self.nodes = frozenset(nodes)
        edges = [Edge(link.id, link.source, link.target, _metric(link)) for link in self.links.values()]
        self._bundles = bundles(edges)
        self._paths: Paths = Paths(
            (edge for edge in edges if edge.id in self._bundles), None if previous is None else previous._paths
        )
        self._routes: dict[tuple[str, str, int, frozenset[str]], tuple[Route, ...]] = {}
        # Arrays (begins, rates): a link may have 1e5 steps, and planners query them for every rate that they try.
        self._capacities = {link.id: _columns(link.capacity()) for link in self.links.values()}
        self._ceilings = {name: int(rates.max()) for name, (_, rates) in self._capacities.items()}
        # (the least that the link ever carries, its id), sorted: the first entry tells whether any link can be too small.
        self._lowest = sorted((int(rates.min()), name) for name, (_, rates) in self._capacities.items())

    def __reduce__(self) -> tuple[type["Network"], tuple[tuple[Link, ...]]]:
        """For other processes: only the links are pickled, and paths are computed again."""
        return Network, (tuple(self.links.values()),)

    def route(self, source: str, target: str) -> Route | None:
        """The path with the least sum of metrics, then fewest hops, then the smallest ids; None when there is none.

        Unknown nodes and source == target have no path. The answer is cached: a Network never changes.
        """
        found = self.routes(source, target, 1)
        return found[0] if found else None

    def routes(self, source: str, target: str, k: int, without: frozenset[str] = frozenset()) -> tuple[Route, ...]:
        """At most `k` shortest loop-free paths by metric and hops, the shortest first (Yen 1971), avoiding the links in `without`.

        Among parallel links with one metric, the first paths share the fewest links (see `lanes`); otherwise ids decide. A longer
        list begins with the shorter ones.
        """
        question = source, target, k, without
        routes = self._routes.get(question)
        if routes is None:
            if len(self._routes) >= _MAX_ROUTES:
                self._routes.clear()
            routes = self._routes[question] = tuple([self.along(path) for path in self._lanes(*question)])
        return routes

    def _lanes(self, source: str, target: str, k: int, without: frozenset[str]) -> tuple[Path, ...]:
        usable: Mapping[str, Sequence[str]] = self._bundles
        if without:
            usable = {name: [link_id for link_id in ids if link_id not in without] for name, ids in self._bundles.items()}
        gone = frozenset(name for name, ids in usable.items() if not ids) if without else without
        return fan_out(self._paths.shortest(source, target, k, gone), usable, k)

    def below(self, min_bps: int, begin_us: int, end_us: int) -> frozenset[str]:
        """Ids of the links that carry `min_bps` at no instant of the non-empty interval [begin, end): they are down, or too small.

        Returns immediately if no link ever carries less.
        """
        found = []
        for lowest, name in self._lowest:
            if lowest >= min_bps:
                break
            if self._max_within(name, begin_us, end_us) < min_bps:
                found.append(name)
        return frozenset(found)

    @cached_property
    def _reverses(self) -> Mapping[str, str]:
        return reverses(self.links.values())

    def reverse(self, link_id: str) -> str | None:
        """The link in the opposite direction between the same two nodes, or None (see `broker.core.reverse`)."""
        return self._reverses.get(link_id)

    def reverse_path(self, path: Path) -> Path | None:
        """The reverse of `path`, for the load that competes with its acknowledgements; None if a link has no reverse."""
        return reverse_path(path, self._reverses)

    @cached_property
    def rates(self) -> tuple[int, ...]:
        """Every rate (payload bit/s) that a link carries at some time, ascending: between two of them, `below` returns the same."""
        return tuple(np.unique(np.concatenate([rates for _, rates in self._capacities.values()])).tolist()) if self.links else ()

    def along(self, path: Path) -> Route:
        """The route over the links of `path`, which must exist."""
        links = [self.links[link_id] for link_id in path]
        return Route(
            path,
            min(self._ceilings[link_id] for link_id in path),
            lcm(*(link.channel_bps or 1 for link in links)),
            lcm(*(link.slot_us for link in links)),
        )

    def returns_us(self, link_id: str, min_bps: int, after_us: int) -> int:
        """The first instant after `after_us` at which a step begins in which the link carries `min_bps`; FOREVER_US if there is none."""
        begins, rates = self._capacities[link_id]
        first = int(np.searchsorted(begins, after_us, "right"))
        enough = rates[first:] >= min_bps
        return int(begins[first + int(enough.argmax())]) if enough.any() else FOREVER_US

    def max_from(self, link_id: str, begin_us: int) -> int:
        """The most that the link carries at `begin_us` or later."""
        return self._max_within(link_id, begin_us, FOREVER_US)

    def _max_within(self, link_id: str, begin_us: int, end_us: int) -> int:
        """The most that the link carries at an instant of [begin, end); 0 when the interval is empty."""
        begins, rates = self._capacities[link_id]
        first = max(int(np.searchsorted(begins, begin_us, "right")) - 1, 0)
        last = int(np.searchsorted(begins, end_us, "left"))
        return int(rates[first:last].max()) if begin_us < end_us and first < last else 0


def _columns(steps: Sequence[Step]) -> tuple[Int64Array, Int64Array]:
    begins, rates = np.array(steps, np.int64).T
    return begins.copy(), rates.copy()


def _metric(link: Link) -> int:
    return DEFAULT_METRIC if link.metric is None else link.metric


def is_connected(path: tuple[str, ...], links: Mapping[str, Link], source: str, target: str) -> bool:
    """True if `path` leads from `source` to `target` over known links, without visiting a node twice."""
    node, seen = source, {source}
    for link_id in path:
        link = links.get(link_id)
        if link is None or link.source != node or link.target in seen:
            return False
        node = link.target
        seen.add(node)
    return bool(path) and node == target
