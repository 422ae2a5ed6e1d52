# SPDX-License-Identifier: Apache-2.0
"""PS, packet switching: nothing is planned. Each file arrives at Rmax into an infinite first-in first-out queue that is served at link rate.

Veeraraghavan et al. 2004, section 3.3. Packets are so small against files (1500 bytes against 500 MB) that a fluid takes their place, and
the fluid is solved exactly: with A(t) what has arrived and S(t) what the link could have served, the queue holds
W(t) = X(t) - min(0, min X up to t) where X = A - S, and the last bit of a file, which arrives at its end e, leaves when S has grown by W(e).

Over several links a file leaves each one between its first and its last bit as if at a constant rate; that is an approximation, exact on
one link. Links may feed each other in circles, so all are solved in turns until nothing moves any more.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from broker.core.calendar import Step
from broker.core.scans import Int64Array
from broker.core.units import US_PER_S
from broker.simulate.distributions import Float64Array

_MOST_ROUNDS = 200
_SETTLED_S = 1e-6
_SHORTEST_S = 1e-6  # files arrive and leave over at least the grain of our clock, so that rates are finite


class Service(NamedTuple):
    """A link's capacity: `bps[i]` from `begin_s[i]` on, the last one for ever."""

    begin_s: Float64Array
    bps: Float64Array


class Passage(NamedTuple):
    """When the first and the last bit of each file leave the link; infinite where the link never serves them."""

    first_s: Float64Array
    last_s: Float64Array


class Output(NamedTuple):
    """What leaves the link: `bps[i]` from `begin_s[i]` on."""

    begin_s: Float64Array
    bps: Float64Array


class File(NamedTuple):
    """`rate_bps`: at which it arrives at the first link of its path."""

    path: tuple[str, ...]
    begin_s: float
    bits: float
    rate_bps: float


def service(steps: Sequence[Step], origin_us: int) -> Service:
    """capacity(t) of a link, on a clock that begins at `origin_us`; no file arrives earlier."""
    later = [(max(begin - origin_us, 0) / US_PER_S, rate) for begin, rate in steps]
    kept = [step for i, step in enumerate(later) if i + 1 == len(later) or later[i + 1][0] > step[0]]
    return Service(np.array([begin for begin, _ in kept], np.float64), np.array([rate for _, rate in kept], np.float64))


def delays_s(arrivals_us: Int64Array, bits: Int64Array, rate_bps: Int64Array, capacity_bps: int) -> Float64Array:
    """Time from arrival to the last bit of each file on one link, in seconds."""
    begin = (arrivals_us - arrivals_us[0]) / US_PER_S
    link = Service(np.zeros(1), np.full(1, float(capacity_bps)))
    last = _Queue(begin, begin + bits / rate_bps, bits.astype(np.float64), link).passage().last_s
    return np.asarray(last - begin, np.float64)


class _Queue:
    """Files that arrive at a link, each at a constant rate between `begin` and `end`."""

    def __init__(self, begin_s: Float64Array, end_s: Float64Array, bits: Float64Array, link: Service) -> None:
        self._begin, self._end, self._link = begin_s, end_s, link
        count = len(begin_s)
        rates = bits / (end_s - begin_s)
        instants = np.concatenate((begin_s, end_s, link.begin_s[1:]))
        order = np.argsort(instants, kind="stable")
        self._at = instants[order]
        changes = np.concatenate((rates, -rates, np.zeros(len(link.begin_s) - 1)))
        # After an instant: what comes in per second, and what could go out.
        self._inflow = np.maximum(np.cumsum(changes[order]), 0.0)
        self._capacity = link.bps[np.maximum(np.searchsorted(link.begin_s, self._at, side="right") - 1, 0)]
        steps = (self._inflow - self._capacity)[:-1] * np.diff(self._at)
        ahead = np.concatenate(([0.0], np.cumsum(steps)))
        self._held = ahead - np.minimum(np.minimum.accumulate(ahead), 0.0)  # bits in the queue
        held = np.empty(len(instants))
        held[order] = self._held
        self._held_at_begin, self._held_at_end = held[:count], held[count : 2 * count]

    def passage(self) -> Passage:
        return Passage(self._served(self._begin, self._held_at_begin), self._served(self._end, self._held_at_end))

    def output(self) -> Output:
        """The queue as it empties: the full capacity as long as something waits, and what comes in afterwards."""
        busy = (self._held > 0) | (self._inflow > self._capacity)
        now = np.where(busy, self._capacity, self._inflow)
        shrinking = (self._held > 0) & (self._inflow < self._capacity)
        empty = self._at + np.divide(self._held, self._capacity - self._inflow, out=np.full(len(now), np.inf), where=shrinking)
        following = np.append(self._at[1:], np.inf)
        emptied = shrinking & (empty < following)
        begin = np.concatenate((self._at, empty[emptied]))
        rates = np.concatenate((now, self._inflow[emptied]))
        order = np.argsort(begin, kind="stable")
        return Output(begin[order], rates[order])

    def _served(self, at_s: Float64Array, held_bits: Float64Array) -> Float64Array:
        """The instant at which the link has served `held_bits` more than at `at_s`."""
        begin, bps = self._link
        could = np.concatenate(([0.0], np.cumsum(bps[:-1] * np.diff(begin))))  # S at the beginning of each step
        step = np.maximum(np.searchsorted(begin, at_s, side="right") - 1, 0)
        wanted = could[step] + bps[step] * (at_s - begin[step]) + held_bits
        last = np.maximum(np.searchsorted(could, wanted, side="left") - 1, step)
        missing = wanted - could[last]
        with np.errstate(divide="ignore", invalid="ignore"):
            done = begin[last] + np.where(missing > 0, missing / bps[last], 0.0)
        return np.asarray(np.where(held_bits > 0, np.maximum(done, at_s), at_s))


def through_network(files: Sequence[File], links: Mapping[str, Service]) -> tuple[Float64Array, dict[str, Output]]:
    """When the last bit of each file arrives, and what each link that is used carries."""
    begin = [np.full(len(file.path) + 1, file.begin_s) for file in files]
    end = [np.full(len(file.path) + 1, file.begin_s + max(file.bits / file.rate_bps, _SHORTEST_S)) for file in files]
    users: dict[str, list[tuple[int, int]]] = defaultdict(list)  # link -> (file, hop)
    for i, file in enumerate(files):
        for hop, link_id in enumerate(file.path):
            users[link_id].append((i, hop))
    outputs: dict[str, Output] = {}
    for _ in range(_MOST_ROUNDS):
        moved = 0.0
        for link_id, those in users.items():
            queue = _Queue(
                np.array([begin[i][hop] for i, hop in those]),
                np.array([end[i][hop] for i, hop in those]),
                np.array([files[i].bits for i, _ in those]),
                links[link_id],
            )
            outputs[link_id] = queue.output()
            firsts, lasts = queue.passage()
            lasts = np.maximum(lasts, firsts + _SHORTEST_S)
            for (i, hop), first, last in zip(those, firsts.tolist(), lasts.tolist(), strict=True):
                moved = max(moved, abs(last - end[i][hop + 1]), abs(first - begin[i][hop + 1]))
                begin[i][hop + 1], end[i][hop + 1] = first, last
        if moved < _SETTLED_S:
            break
    return np.array([each[-1] for each in end]), outputs
