# SPDX-License-Identifier: Apache-2.0
"""Requests as they arrive, drawn from a specification. Every quantity has a random stream of its own, derived from the seed.

So the n-th request has the same size whatever its deadline, and the same order of arrival at every load: what differs between two
simulations with one seed is what was changed.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from broker.core.network import Network, Route
from broker.core.request import FieldProblem, Request
from broker.core.scans import Int64Array
from broker.core.units import MAX_TIME_US, US_PER_S, duration_for
from broker.simulate.distributions import Float64Array
from broker.simulate.specification import Entry, Pair, Range, Specification, SpecificationError


class Stream(IntEnum):
    """The index of a stream never changes its meaning: results of old seeds stay what they were."""

    ARRIVALS = 0
    SIZES = 1
    RATES = 2
    PAIRS = 3
    DEADLINES = 4
    FACTORS = 5
    ADVANCE = 6
    LEADS = 7


class Arrival(NamedTuple):
    """A request and when it is made. `ideal_us`: how long it takes at its full rate on its shortest path, alone."""

    arrival_us: int
    request: Request
    ideal_us: int


@dataclass(frozen=True, slots=True)
class Workload:
    """In order of arrival. `offered_load`: what arrives on the busiest link, as a share of what it carries, if all take their shortest path.

    It is an expectation for Poisson arrivals, and a measurement between the first and the last arrival for a trace (None: all at once).
    """

    arrivals: tuple[Arrival, ...]
    offered_load: float | None


def uniform(seed: int, stream: Stream, count: int) -> Float64Array:
    """`count` numbers in [0, 1)."""
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(int(stream),))))
    return generator.random(count)


def poisson_arrivals(seed: int, count: int, per_s: float) -> Int64Array:
    """Instants in microseconds from 0 on, with exponential times between them."""
    between = -np.log1p(-uniform(seed, Stream.ARRIVALS, count)) / per_s
    return np.rint(np.cumsum(between) * US_PER_S).astype(np.int64)


def choose(uniforms: Float64Array, weights: Sequence[float]) -> Int64Array:
    """For each number the index of the weight under which it falls."""
    shares = np.cumsum(np.array(weights, np.float64))
    # Never an entry of weight 0, even where rounding makes the last share a little less than 1.
    last = int(np.flatnonzero(np.array(weights))[-1])
    return np.minimum(np.searchsorted(shares / shares[-1], uniforms, side="right"), last).astype(np.int64)


def draw(specification: Specification, network: Network) -> Workload:
    """Raises SpecificationError for pairs of nodes without a path, and for times beyond the year 9999."""
    spec, count, seed = specification, specification.requests, specification.seed
    pairs = _pairs(spec, network)
    routes = {(pair.source, pair.destination): _route(pair.source, pair.destination, network) for pair in pairs}
    entries = spec.trace[:count] or _poisson(spec, _busiest(pairs, routes, network))
    ends = choose(uniform(seed, Stream.PAIRS, count), [pair.weight for pair in pairs]) if pairs else np.zeros(count, np.int64)
    rates = choose(uniform(seed, Stream.RATES, count), [rate.weight for rate in spec.rates])
    factors = _drawn(spec.deadlines, seed, Stream.DEADLINES, Stream.FACTORS, count)
    leads = _drawn(spec.leads, seed, Stream.ADVANCE, Stream.LEADS, count)
    arrivals = []
    for i, entry in enumerate(entries):
        if entry.source is not None and entry.destination is not None:
            source, destination = entry.source, entry.destination
        else:
            source, destination = pairs[int(ends[i])].source, pairs[int(ends[i])].destination
        route = routes.get((source, destination)) or _route(source, destination, network)
        if route is None:
            raise SpecificationError([FieldProblem(f"trace[{i}].destination", f"no path leads from {source!r} to {destination!r}")])
        routes[source, destination] = route
        rate_max = entry.rate_max_bps or spec.rates[int(rates[i])].rate_max_bps
        rate = min(rate_max or route.ceiling_bps, route.ceiling_bps)
        ideal = duration_for(entry.volume_bytes, max(rate, 1))
        lead = 0 if np.isnan(leads[i]) else round(float(leads[i]) * US_PER_S)
        not_before = entry.arrival_us + lead if entry.not_before_us is None else entry.not_before_us
        deadline = entry.deadline_us
        if deadline is None and not np.isnan(factors[i]):
            deadline = not_before + max(round(ideal * float(factors[i])), 1)
        begin = spec.begin_us
        if begin + max(entry.arrival_us, not_before, deadline or 0) > MAX_TIME_US:
            raise SpecificationError(
                [FieldProblem("begin", "requests would lie beyond the year 9999; begin earlier, or let more arrive")]
            )
        request = Request(
            id=str(i),
            source=source,
            destination=destination,
            volume_bytes=entry.volume_bytes,
            not_before_us=begin + not_before,
            rate_max_bps=rate_max,
            deadline_us=None if deadline is None else begin + deadline,
            options=spec.options,
        )
        arrivals.append(Arrival(begin + entry.arrival_us, request, ideal))
    arrivals.sort(key=lambda arrival: arrival.arrival_us)  # stable: among equals the order of the trace
    return Workload(
        tuple(arrivals), _measured_load(arrivals, routes, network) if spec.trace else _expected_load(spec, pairs, routes, network)
    )


def _poisson(spec: Specification, seconds_per_byte: float) -> list[Entry]:
    per_s = spec.arrivals_per_s
    if per_s is None:
        assert spec.load is not None
        per_s = spec.load / (spec.sizes.mean_bytes * seconds_per_byte)
    last = spec.requests / per_s * US_PER_S
    if spec.begin_us + last > MAX_TIME_US / 2:
        raise SpecificationError(
            [FieldProblem("load", "so few arrive that the last ones would come after centuries; let more arrive")]
        )
    instants = poisson_arrivals(spec.seed, spec.requests, per_s)
    sizes = spec.sizes.at(uniform(spec.seed, Stream.SIZES, spec.requests))
    return [Entry(arrival, size) for arrival, size in zip(instants.tolist(), sizes.tolist(), strict=True)]


def _drawn(values: Range, seed: int, who: Stream, what: Stream, count: int) -> Float64Array:
    """Values of a range; NaN for those that have none."""
    between = values.least + uniform(seed, what, count) * (values.most - values.least)
    return np.where(uniform(seed, who, count) < values.share, between, np.nan)


def _route(source: str, destination: str, network: Network) -> Route | None:
    return network.route(source, destination)


def _pairs(spec: Specification, network: Network) -> tuple[Pair, ...]:
    """Who sends to whom: the matrix, or all nodes (those named, or those of the network) to each other where there is a path."""
    if spec.trace and all(entry.source is not None for entry in spec.trace[: spec.requests]):
        return ()
    if spec.pairs:
        for i, pair in enumerate(spec.pairs):
            if network.route(pair.source, pair.destination) is None:
                detail = f"no path leads from {pair.source!r} to {pair.destination!r}"
                raise SpecificationError([FieldProblem(f"matrix[{i}].destination", detail)])
        return spec.pairs
    nodes = sorted(set(spec.nodes)) or sorted(network.nodes)
    pairs = [Pair(a, b) for a in nodes for b in nodes if a != b and network.route(a, b) is not None]
    if not pairs:
        raise SpecificationError([FieldProblem("nodes", "no path leads from any of the nodes to another")])
    return tuple(pairs)


_Routes = dict[tuple[str, str], Route | None]


def _busiest(pairs: Sequence[Pair], routes: _Routes, network: Network) -> float:
    """Seconds for which an average byte occupies the link that is occupied longest."""
    total = sum(pair.weight for pair in pairs)
    seconds: dict[str, float] = defaultdict(float)
    for pair in pairs:
        route = routes[pair.source, pair.destination]
        assert route is not None
        for link_id in route.path:
            seconds[link_id] += pair.weight / total * 8 / _capacity(link_id, network)
    return max(seconds.values(), default=1.0)


def _capacity(link_id: str, network: Network) -> int:
    link = network.links[link_id]
    return max(link.payload_bps(link.capacity_bps), 1)


def _expected_load(spec: Specification, pairs: Sequence[Pair], routes: _Routes, network: Network) -> float:
    if spec.load is not None:
        return spec.load
    assert spec.arrivals_per_s is not None
    return spec.arrivals_per_s * spec.sizes.mean_bytes * _busiest(pairs, routes, network)


def _measured_load(arrivals: Sequence[Arrival], routes: _Routes, network: Network) -> float | None:
    span = (arrivals[-1].arrival_us - arrivals[0].arrival_us) / US_PER_S
    if span <= 0:
        return None
    seconds: dict[str, float] = defaultdict(float)
    for _, request, _ in arrivals:
        route = routes[request.source, request.destination]
        assert route is not None
        assert request.volume_bytes is not None
        for link_id in route.path:
            seconds[link_id] += request.volume_bytes * 8 / _capacity(link_id, network)
    return max(seconds.values()) / span
