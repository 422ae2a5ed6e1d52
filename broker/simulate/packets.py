# SPDX-License-Identifier: Apache-2.0
"""PS, packet switching: nothing is planned. Each file arrives at Rmax into an infinite first-in first-out queue that is served at link rate.

Veeraraghavan et al. 2004, section 3.3. Packets are so small against files (1500 bytes against 500 MB) that a fluid takes their place, and
the fluid is solved exactly: with A(t) what has arrived and S(t) what the link could have served, the queue holds
W(t) = X(t) - min(0, min X up to t) where X = A - S, and what arrives at t leaves at d(t), when S has grown by W(t).

Over several links the curve of what has arrived of a file, seen at d(t) instead of t, is what arrives of it at the next link. Links may feed
each other in circles, so each is solved anew until nothing comes to it differently (to a microsecond), at most a hundred times on average.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from broker.core.calendar import Step
from broker.core.scans import Int64Array
from broker.core.units import US_PER_S
from broker.simulate.distributions import Float64Array

_MAX_TURNS = 100  # times that a link is solved, on average
_SETTLED_S = 1e-6
_GRAIN_S = 1e-9  # changes of rate closer together than this are one
_SAME_SLOPE = 1e-9


class Service(NamedTuple):
    """A link's capacity: `bps[i]` from `begin_s[i]` on, the last one for ever. It begins before anything arrives."""

    begin_s: Float64Array
    bps: Float64Array

    def could(self, at_s: Float64Array) -> Float64Array:
        """S: bits that could have been served since the first `begin_s`."""
        step = np.maximum(np.searchsorted(self.begin_s, at_s, side="right") - 1, 0)
        return np.asarray(self._before()[step] + self.bps[step] * (at_s - self.begin_s[step]))

    def when(self, bits: Float64Array) -> Float64Array:
        """The first instant at which S is `bits`; infinite when it never is."""
        before = self._before()
        step = np.maximum(np.searchsorted(before, bits) - 1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            after = (bits - before[step]) / self.bps[step]
        return np.asarray(self.begin_s[step] + np.where(bits > before[step], after, 0.0))

    def _before(self) -> Float64Array:
        return np.concatenate(([0.0], np.cumsum(self.bps[:-1] * np.diff(self.begin_s))))


class Output(NamedTuple):
    """What leaves a link: `bps[i]` from `begin_s[i]` on."""

    begin_s: Float64Array
    bps: Float64Array


class Curve(NamedTuple):
    """What has come of a file: `bits[i]` by `at_s[i]`, at constant rates between."""

    at_s: Float64Array
    bits: Float64Array


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
    end = begin + bits / rate_bps
    queue = _Queue(np.concatenate((begin, end)), np.concatenate((rate_bps, -rate_bps)), _constant(float(capacity_bps)))
    return np.asarray(queue.leaves(end) - begin, np.float64)


def through_network(
    files: Sequence[File], links: Mapping[str, Service], turn: Callable[[], None] = lambda: None
) -> tuple[Float64Array, dict[str, Output]]:
    """When the last bit of each file arrives (infinite: some link never lets it through), and what each link that is used carries.

    `turn` is called before a link is solved.
    """
    curves: list[list[Curve | None]] = [[_at_source(file), *([None] * len(file.path))] for file in files]
    users: dict[str, list[tuple[int, int]]] = defaultdict(list)  # link -> (file, hop)
    for i, file in enumerate(files):
        for hop, link_id in enumerate(file.path):
            users[link_id].append((i, hop))
    finishes = np.full(len(files), inf)
    outputs: dict[str, Output] = {}
    waiting = deque(users)
    for _ in range(_MAX_TURNS * len(users)):
        if not waiting:
            break
        turn()
        link_id = waiting.popleft()
        # What an earlier link never lets through is not there behind it.
        there = [(i, hop, curve) for i, hop in users[link_id] if (curve := curves[i][hop]) is not None]
        if not there:
            outputs[link_id] = Output(np.zeros(1), np.zeros(1))
            continue
        queue = _of_curves([curve for _, _, curve in there], links[link_id])
        outputs[link_id] = queue.output()
        lasts = queue.leaves(np.array([curve.at_s[-1] for _, _, curve in there]))
        for (i, hop, curve), last in zip(there, lasts.tolist(), strict=True):
            if hop + 1 == len(files[i].path):
                finishes[i] = last
                continue
            after = queue.behind(curve) if last < inf else None
            if not _same(curves[i][hop + 1], after):
                following = files[i].path[hop + 1]
                if following not in waiting:
                    waiting.append(following)
                if after is None:
                    finishes[i] = inf
            curves[i][hop + 1] = after
    return finishes, outputs


class _Queue:
    """A link and the rates that come to it: at `instants` the sum of them changes by `changes`."""

    def __init__(self, instants_s: Float64Array, changes_bps: Float64Array, link: Service) -> None:
        self._link = link
        instants = np.concatenate((instants_s, link.begin_s[1:]))
        order = np.argsort(instants, kind="stable")
        at = instants[order]
        inflow = np.maximum(np.cumsum(np.concatenate((changes_bps, np.zeros(len(link.begin_s) - 1)))[order]), 0.0)
        capacity = link.bps[np.maximum(np.searchsorted(link.begin_s, at, side="right") - 1, 0)]
        ahead = np.concatenate(([0.0], np.cumsum((inflow - capacity)[:-1] * np.diff(at))))
        held = ahead - np.minimum(np.minimum.accumulate(ahead), 0.0)
        # Between two instants the queue may run empty: that is an instant of its own.
        draining = (held > 0) & (inflow < capacity)
        empty = at + np.divide(held, capacity - inflow, out=np.full(len(at), inf), where=draining)
        runs_empty = draining & (empty < np.append(at[1:], inf))
        order = np.argsort(np.concatenate((at, empty[runs_empty])), kind="stable")
        self._at: Float64Array = np.concatenate((at, empty[runs_empty]))[order]
        self._held = np.concatenate((held, np.zeros(runs_empty.sum())))[order]  # bits in the queue
        self._inflow = np.concatenate((inflow, inflow[runs_empty]))[order]
        self._capacity = np.concatenate((capacity, capacity[runs_empty]))[order]

    def leaves(self, at_s: Float64Array) -> Float64Array:
        """d(t): when what arrives at each of the instants leaves."""
        held = np.interp(at_s, self._at, self._held)
        done = self._link.when(self._link.could(at_s) + held)
        return np.asarray(np.where(held > 0, np.maximum(done, at_s), at_s))

    def output(self) -> Output:
        """The full capacity as long as something waits, and what comes in otherwise."""
        busy = (self._held > 0) | (self._inflow > self._capacity)
        return Output(self._at, np.where(busy, self._capacity, self._inflow))

    def behind(self, curve: Curve) -> Curve:
        """A curve of what has come, as one of what has left."""
        first, last = np.searchsorted(self._at, (curve.at_s[0], curve.at_s[-1]))
        if not self._held[first : last + 1].any():
            return curve  # nothing ever waits
        instants = np.union1d(self._at[first : last + 1], curve.at_s)
        instants = instants[(instants >= curve.at_s[0]) & (instants <= curve.at_s[-1])]
        bits = np.interp(instants, curve.at_s, curve.bits)
        ahead = self._link.could(instants) + np.interp(instants, self._at, self._held)
        left = self.leaves(instants)
        # A change of the link's capacity shows in all that leaves then, the end of a pause too.
        within = self._link.begin_s[(self._link.begin_s > left[0]) & (self._link.begin_s < left[-1])]
        at = np.concatenate((left, within))
        moved = np.concatenate((bits, np.interp(self._link.could(within), ahead, bits)))
        order = np.lexsort((moved, at))
        return _simplified(Curve(at[order], np.maximum.accumulate(moved[order])))


def _constant(bps: float) -> Service:
    return Service(np.zeros(1), np.full(1, bps))


def _at_source(file: File) -> Curve:
    return Curve(np.array([file.begin_s, file.begin_s + max(file.bits / file.rate_bps, _GRAIN_S)]), np.array([0.0, file.bits]))


def _of_curves(curves: Sequence[Curve], link: Service) -> _Queue:
    at = np.concatenate([curve.at_s for curve in curves])
    bits = np.concatenate([curve.bits for curve in curves])
    ends = np.cumsum([len(curve.at_s) for curve in curves]) - 1
    duration = np.diff(at, append=inf)
    duration[ends] = inf  # from one curve to the next nothing comes
    rates = np.diff(bits, append=0.0) / duration
    return _Queue(at, np.diff(rates, prepend=0.0), link)


def _simplified(curve: Curve) -> Curve:
    """Without points that are all but at one instant, and without those on a straight line."""
    last = len(curve.at_s) - 1
    kept = np.flatnonzero(np.append(True, np.diff(curve.at_s) > _GRAIN_S))
    if kept[-1] != last:  # it is the finish, so it stays, in place of what is too close before it
        too_close = len(kept) > 1 and curve.at_s[last] - curve.at_s[kept[-1]] <= _GRAIN_S
        kept = np.append(kept[:-1] if too_close else kept, last)
    at, bits = curve.at_s[kept], curve.bits[kept]
    if at[-1] - at[0] <= _GRAIN_S:
        return Curve(np.array([at[0], at[0] + _GRAIN_S]), np.array([0.0, bits[-1]]))
    bits[0] = 0.0
    slopes = np.diff(bits) / np.diff(at)
    bends = np.abs(np.diff(slopes)) > _SAME_SLOPE * slopes.max()
    bent = np.concatenate(([True], bends, [True]))
    return Curve(at[bent], bits[bent])


def _same(one: Curve | None, other: Curve | None) -> bool:
    if one is other:
        return True
    if one is None or other is None:
        return False
    if len(one.at_s) != len(other.at_s):
        return False
    return bool(
        np.allclose(one.at_s, other.at_s, rtol=0, atol=_SETTLED_S) and np.allclose(one.bits, other.bits, rtol=1e-6, atol=1.0)
    )
