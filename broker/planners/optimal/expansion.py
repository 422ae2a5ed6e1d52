# SPDX-License-Identifier: Apache-2.0
"""Time expansion: requests, candidate paths and free capacity as flat arrays over O(r) intervals.

Bulk data transfer scheduling has an optimum that is a step function with O(r) intervals (RR-6205, section 1): between one
`not_before` or deadline and the next, and between changes of gamma(t), nothing changes, so a constant rate loses nothing. A *lane*
is a candidate path of one request; a *cell* is a lane in one interval of the request's window, and has one variable, its rate.

gamma(t) may have more changes than are affordable. Then the smallest are omitted: the free rate of an interval is its minimum for
plans (so that they fit), and its mean or its maximum for bounds (so that they hold).
"""

from collections.abc import Mapping, Sequence
from math import lcm
from typing import NamedTuple

import numpy as np

from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.request import Request
from broker.core.units import US_PER_S, round_down, round_up
from broker.planners.optimal.solver import Flags, Floats, Ints
from broker.planners.signature import Task

MAX_CELLS = 60_000  # GLOP solves as many within a second; windows alone may make more


class Lane(NamedTuple):
    """A candidate path of one request (its position in the batch), and its constraints on plans."""

    request: int
    task: Task
    links: Ints


class Expansion(NamedTuple):
    """Times in microseconds, rates in bit/s. Arrays over cells end in `_of`; `levels` are indexed [link, interval]."""

    requests: Sequence[Request]
    windows: Sequence[tuple[int, int]]  # aligned to slots; without a deadline a window ends at the horizon
    times: Ints  # boundaries, one more than there are intervals
    seconds: Floats
    links: tuple[str, ...]
    whole: Floats  # per link: the capacity that shares refer to
    free_low: Ints
    free_mean: Floats
    booked_high: Ints
    booked_low: Ints
    lanes: Sequence[Lane]
    lane_of: Ints
    interval_of: Ints
    request_of: Ints
    entry_cell: Ints  # each cell once per link of its path
    entry_link: Ints
    binding: Flags  # per link: False if another link is always tighter
    exact_windows: bool  # no window was cut more than the slots of its paths require, so bounds hold

    @property
    def cells(self) -> int:
        """The number of variables, one for each lane in each interval."""
        return len(self.lane_of)

    @property
    def volumes(self) -> Floats:
        """Bits of each request."""
        return np.array([(request.volume_bytes or 0) * 8.0 for request in self.requests])

    @property
    def may_split(self) -> Flags:
        """Per request: True if several paths may carry it at once."""
        return np.array([request.options.split for request in self.requests], bool)

    @property
    def rate_caps(self) -> Floats:
        """Rmax of each request, infinite if it has none."""
        return np.array([float(request.rate_max_bps or np.inf) for request in self.requests])


def expand(
    requests: Sequence[Request],
    candidates: Sequence[Sequence[Task]],
    horizon_us: int,
    network: Network,
    calendars: Mapping[str, Calendar],
    more_times: Sequence[int] = (),
) -> Expansion:
    """`candidates[i]`: the lanes that request i may take. Requests without a deadline may use the time up to `horizon_us`."""
    slots = {task.slot for tasks in candidates for task in tasks}
    windows, aligned = _windows(requests, horizon_us, slots)
    links = tuple(sorted({link_id for tasks in candidates for task in tasks for link_id in task.path}))
    number = {link_id: i for i, link_id in enumerate(links)}
    lanes = [
        Lane(i, task, np.array([number[link_id] for link_id in task.path], np.int64))
        for i, tasks in enumerate(candidates)
        for task in tasks
    ]
    times = _boundaries(windows, lanes, [calendars[link_id] for link_id in links], more_times)
    levels = _levels(times, [calendars[link_id] for link_id in links])
    spans = np.array([np.searchsorted(times, windows[lane.request]) for lane in lanes], np.int64).reshape(-1, 2)
    lane_of, interval_of = _cells(spans)
    entry_cell, entry_link = _entries(lanes, spans)
    # Cells in which a link of the path never has free capacity are dropped.
    closed = np.zeros(len(lane_of), bool)
    closed[entry_cell[levels.free_mean[entry_link, interval_of[entry_cell]] <= 0]] = True
    kept = np.cumsum(~closed) - 1
    still = ~closed[entry_cell]
    lane_of, interval_of = lane_of[~closed], interval_of[~closed]
    whole = np.array([network.links[link_id].payload_bps(network.links[link_id].capacity_bps) for link_id in links], np.float64)
    return Expansion(
        requests, windows, times, np.diff(times) / US_PER_S, links, whole, *levels, lanes, lane_of, interval_of,
        np.array([lane.request for lane in lanes], np.int64)[lane_of], kept[entry_cell[still]], entry_link[still],
        _binding(lanes, whole, levels), aligned,
    )  # fmt: skip


def _windows(requests: Sequence[Request], horizon_us: int, slots: set[int]) -> tuple[list[tuple[int, int]], bool]:
    """Windows cut to the slots that all paths share, if these are fine enough; otherwise unchanged, and rounding handles the slots."""
    windows = [(request.not_before_us, horizon_us if request.deadline_us is None else request.deadline_us) for request in requests]
    grain = lcm(*slots) if slots else 1
    if grain == 1 or any(end - begin < 8 * grain for begin, end in windows):
        return windows, True
    return [(round_up(begin, grain), round_down(end, grain)) for begin, end in windows], slots == {grain}


def _boundaries(
    windows: Sequence[tuple[int, int]], lanes: Sequence[Lane], calendars: Sequence[Calendar], more_times: Sequence[int]
) -> Ints:
    """The ends of all windows, and as many changes of gamma inside them as are affordable, the largest ones first."""
    edges = np.unique(np.array([instant for window in windows for instant in window] + list(more_times), np.int64))
    begins = np.array([windows[lane.request][0] for lane in lanes], np.int64)
    ends = np.array([windows[lane.request][1] for lane in lanes], np.int64)

    def cells(times: Ints) -> int:
        return int((np.searchsorted(times, ends) - np.searchsorted(times, begins)).sum())

    instants, sizes = [], []
    for calendar in calendars:
        times, free = calendar.times[: calendar.n], np.maximum(calendar.free[: calendar.n], 0)
        inside = slice(np.searchsorted(times, edges[0], "right"), np.searchsorted(times, edges[-1]))
        instants.append(times[inside])
        sizes.append(np.abs(np.diff(free, prepend=free[:1]))[inside])
    changes, inverse = np.unique(np.concatenate(instants), return_inverse=True) if instants else (edges[:0], edges[:0])
    if not len(changes):
        return edges
    everything = np.union1d(edges, changes)
    if cells(everything) <= MAX_CELLS:
        return everything
    weight = np.bincount(inverse, weights=np.concatenate(sizes))
    order = np.argsort(-weight, kind="stable")
    few, many = 0, len(order)
    while few + 1 < many:  # bisection for the largest affordable number of changes
        middle = (few + many) // 2
        affordable = cells(np.union1d(edges, changes[order[:middle]])) <= MAX_CELLS
        few, many = (middle, many) if affordable else (few, middle)
    return np.union1d(edges, changes[order[:few]])


class _Levels(NamedTuple):
    free_low: Ints
    free_mean: Floats
    booked_high: Ints
    booked_low: Ints


def _levels(times: Ints, calendars: Sequence[Calendar]) -> _Levels:
    """Free and booked capacity of each link in each interval; negative gamma counts as nothing free."""
    n = len(times) - 1
    low, mean = np.zeros((len(calendars), n), np.int64), np.zeros((len(calendars), n))
    high, least = np.zeros((len(calendars), n), np.int64), np.zeros((len(calendars), n), np.int64)
    for row, calendar in enumerate(calendars):
        if not n:
            break
        capacity_times, capacity = (np.array(column, np.int64) for column in zip(*calendar.capacity, strict=True))
        changes = np.concatenate((calendar.times[: calendar.n], capacity_times))
        cuts = np.unique(np.concatenate((times[:-1], changes[(changes > times[0]) & (changes < times[-1])])))
        free = calendar.free[: calendar.n][np.searchsorted(calendar.times[: calendar.n], cuts, "right") - 1]
        booked = capacity[np.searchsorted(capacity_times, cuts, "right") - 1] - free
        first = np.searchsorted(cuts, times[:-1])
        low[row] = np.maximum(np.minimum.reduceat(free, first), 0)
        lengths = np.diff(np.append(cuts, times[-1]))
        mean[row] = np.add.reduceat(np.maximum(free, 0) * lengths.astype(np.float64), first) / np.diff(times)
        high[row], least[row] = np.maximum.reduceat(booked, first), np.minimum.reduceat(booked, first)
    return _Levels(low, mean, np.maximum(high, 0), np.maximum(least, 0))


def _cells(spans: Ints) -> tuple[Ints, Ints]:
    lengths = spans[:, 1] - spans[:, 0]
    lane_of = np.repeat(np.arange(len(spans)), lengths)
    return lane_of, _running(lengths) + np.repeat(spans[:, 0], lengths)


def _entries(lanes: Sequence[Lane], spans: Ints) -> tuple[Ints, Ints]:
    """(cell, link) for every link of every cell's path."""
    lengths = spans[:, 1] - spans[:, 0]
    first = np.cumsum(lengths) - lengths
    hops = np.array([len(lane.links) for lane in lanes], np.int64)
    lane = np.repeat(np.arange(len(lanes)), hops)
    link = np.concatenate([lane.links for lane in lanes]) if lanes else np.empty(0, np.int64)
    times = lengths[lane]
    return np.repeat(first[lane], times) + _running(times), np.repeat(link, times)


def _running(lengths: Ints) -> Ints:
    """0, 1, ... restarting for each length: _running([2, 3]) is [0, 1, 0, 1, 2]."""
    total = int(lengths.sum())
    return np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _binding(lanes: Sequence[Lane], whole: Floats, levels: _Levels) -> Flags:
    """Per link: True if it can be the tightest. A link is not if all its lanes pass another link that never has more room.

    On a real network this removes more than a third of the links, and their rows in the program.
    """
    n = len(whole)
    on = np.zeros((n, len(lanes)), np.float32)
    for j, lane in enumerate(lanes):
        on[lane.links, j] = 1
    shared, size = on @ on.T, on.sum(axis=1)
    inside = (shared == size[:, None]) & (whole[:, None] >= whole[None, :])
    twins = inside & inside.T  # of equivalent links the first one stays
    inside &= ~twins | (np.arange(n)[:, None] > np.arange(n)[None, :])
    inner, outer = np.nonzero(inside)
    # The share booked beforehand must not be larger either, nor the free rate smaller.
    shares = levels.booked_high / whole[:, None]
    idle = bool((levels.free_low == whole[:, None]).all())
    good = np.ones(len(inner), bool)
    if not idle:
        for begin in range(0, len(inner), 256):
            a, b = inner[begin : begin + 256], outer[begin : begin + 256]
            good[begin : begin + 256] = ((levels.free_low[a] >= levels.free_low[b]) & (shares[a] <= shares[b])).all(axis=1)
    binding = np.ones(n, bool)
    binding[inner[good]] = False
    return binding


def restrict(expansion: Expansion, keep: Flags) -> Expansion:
    """The same expansion with only the cells that are kept."""
    position = np.cumsum(keep) - 1
    entries = keep[expansion.entry_cell]
    return expansion._replace(
        lane_of=expansion.lane_of[keep],
        interval_of=expansion.interval_of[keep],
        request_of=expansion.request_of[keep],
        entry_cell=position[expansion.entry_cell[entries]],
        entry_link=expansion.entry_link[entries],
    )


def usable(expansion: Expansion, below: float = np.inf) -> Expansion:
    """Only cells in which all links have free capacity throughout, and a share booked beforehand less than `below`."""
    shut = (expansion.free_low <= 0) | (expansion.booked_high >= below * expansion.whole[:, None] * (1 - 1e-12))
    keep = np.ones(expansion.cells, bool)
    keep[expansion.entry_cell[shut[expansion.entry_link, expansion.interval_of[expansion.entry_cell]]]] = False
    return expansion if keep.all() else restrict(expansion, keep)
