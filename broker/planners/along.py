# SPDX-License-Identifier: Apache-2.0
"""A request on one candidate path: rows (begin, end, rate) with the earliest finish, or None; and the choice of a candidate.

All functions plan forwards in time. A planner that plans backwards (`alap`) passes mirrored profiles and instants, and mirrors the
returned rows.
"""

from collections.abc import Callable, Sequence

import numpy as np

from broker.core import rectangles, scans
from broker.core.plan import Plan
from broker.core.profile import Profiles, profile_between, profiles
from broker.core.reprogramming import Limits, earliest_rows, fullest_rows, max_in_rows
from broker.core.request import Options, Request
from broker.core.scans import Int64Array
from broker.core.segments import Rows, Segment
from broker.core.units import FOREVER_US, MAX_RATE_BPS, US_PER_S, round_down, round_up
from broker.planners.signature import Calendars, Task

_FIRST_ROWS = 64
_MORE_ROWS = 8

Attempt = Callable[[Task, int], Rows | None]  # the rows with the earliest finish, at or before the instant
Hopeless = Callable[[Task, int], bool]


def best_of(
    tasks: Sequence[Task], begin_us: int, deadline_us: int, attempt: Attempt, hopeless: Hopeless | None = None
) -> tuple[Task, Rows] | None:
    """The task that finishes first and its rows, or None. Among equals the first wins: each must finish before the ones tried.

    `hopeless` can save an attempt: it returns True if a task cannot finish by an instant.
    """
    best = None
    for task in tasks:
        if best is not None and (_ideal_finish(task, begin_us) > deadline_us or (hopeless and hopeless(task, deadline_us))):
            continue
        rows = attempt(task, deadline_us)
        if rows is not None:
            best = task, rows
            deadline_us = rows[-1][1] - 1
    return best


def _ideal_finish(task: Task, begin_us: int) -> int:
    """The finish of the task if the whole path were free."""
    duration = task.duration_us or -(-task.bits * US_PER_S // task.rate_max)
    return round_up(begin_us, task.slot) + round_up(duration, task.slot)


class Bottlenecks:
    """Finds links that alone cannot carry a request's volume by an instant. Candidate paths share links, so this rejects many early."""

    def __init__(self, request: Request, calendars: Calendars) -> None:
        self._calendars = calendars
        self._begin_us = request.not_before_us
        self._rates = request.rate_max_bps or MAX_RATE_BPS, request.rate_min_bps or 1
        self._by_us: int | None = None
        self._carries: dict[str, bool] = {}

    def __call__(self, task: Task, by_us: int) -> bool:
        """True if a link of the task's path cannot carry its volume by `by_us`."""
        if by_us != self._by_us:
            self._by_us = by_us
            self._carries.clear()
        for link_id in task.path:
            carries = self._carries.get(link_id)
            if carries is None:
                calendar = self._calendars[link_id]
                # Ignores the channels and slots of the path, so that the result also holds for other paths over this link.
                bits = scans.volume_between(
                    calendar.times, calendar.free, calendar.n, self._begin_us, by_us, *self._rates, 1, 1, task.bits
                )
                carries = self._carries[link_id] = bits == task.bits
            if not carries:
                return True
        return False


def limits_of(options: Options, slot: int) -> Limits | None:
    """The requested limits on reprogramming, or None."""
    if options.most_segments is None and options.shortest_segment_us is None:
        return None
    return Limits(options.most_segments, round_up(options.shortest_segment_us or 0, slot))


def fit_varying(
    task: Task, calendars: Calendars, begin_us: int, deadline_us: int, fewest_rows: bool, source: Profiles = profiles
) -> Rows | None:
    """VBLS on one path."""
    path, bits, rate_max, rate_min, channel, slot, _, _ = task
    room = _FIRST_ROWS
    for times, free, n, limit in source(path, calendars, begin_us, deadline_us):
        while True:
            out = np.empty((room, 3), np.int64)
            status, count = scans.varying_bandwidth(
                times, free, n, begin_us, deadline_us, limit, bits, rate_max, rate_min, channel, slot, fewest_rows, out
            )
            if status != scans.OUT_OF_ROOM:
                break
            room *= _MORE_ROWS
        if status == scans.FOUND:
            rows: Rows = out[:count].tolist()
            return rows
        if status != scans.OUT_OF_PROFILE:
            break
    return None


def fit_limited(task: Task, calendars: Calendars, begin_us: int, deadline_us: int, limits: Limits) -> Rows | None:
    """VBLS on one path with a limited number of rows or a minimum row length (see `core.reprogramming`)."""
    free = fit_varying(task, calendars, begin_us, deadline_us, fewest_rows=True)
    if free is None or limits.kept_by(free):
        return free
    begin, deadline = round_up(begin_us, task.slot), round_down(deadline_us, task.slot)
    room = _FIRST_ROWS
    for profile in profiles(task.path, calendars, begin, deadline):
        end = min(deadline, round_down(profile.limit_us, task.slot))
        status = scans.OUT_OF_ROOM
        while status == scans.OUT_OF_ROOM and begin < end:
            rates = np.empty((room, 3), np.int64)
            status, count = scans.rates_between(
                profile.times, profile.free, profile.n, begin, end, task.rate_max, task.rate_min, task.channel, task.slot, rates
            )
            rows = earliest_rows(rates[:count], task.bits, limits, task.slot)
            if rows is not None:
                return rows
            room *= _MORE_ROWS
    return None


def fit_constant(
    task: Task, calendars: Calendars, begin_us: int, deadline_us: int, rate_bps: int, source: Profiles = profiles
) -> Rows | None:
    """FBLS on one path: one row at `rate_bps` (whole channels), for the holding time or until the volume is complete."""
    duration = task.duration_us or round_up(-(-task.bits * US_PER_S // rate_bps), task.slot)
    for times, free, n, limit in source(task.path, calendars, begin_us, deadline_us):
        status, begin = rectangles.fixed_bandwidth(
            times, free, n, begin_us, deadline_us, limit,
            min(duration, FOREVER_US),  # an exabyte at 1 bit/s exceeds 64 bits, and no deadline lies so far ahead
            rate_bps, task.slot,
        )  # fmt: skip
        if status == scans.FOUND:
            return [(begin, begin + duration, rate_bps)]
        if status != scans.OUT_OF_PROFILE:
            break
    return None


def min_rate(task: Task) -> int:
    """The minimum rate of a class 2 request, in whole channels."""
    return round_up(max(task.rate_min, 1), task.channel)


def fit_held(task: Task, calendars: Calendars, begin_us: int, limits: Limits | None) -> Rows:
    """Rows that hold a task of class 2 from `begin_us` on, as fast as limits allow; its minimum rate must be free throughout."""
    found = read_rates(task, calendars, begin_us, begin_us + task.duration_us, 0)
    free: Rows = found.tolist()
    return free if limits is None or limits.kept_by(free) else fullest_rows(found, limits)


def max_bits(task: Task, calendars: Calendars, begin_us: int, end_us: int, limits: Limits | None) -> int:
    """Whole bits, at most those of the task, that VBLS carries on [begin, end)."""
    profile = profile_between(task.path, calendars, begin_us, end_us)
    bits = scans.volume_between(
        profile.times, profile.free, profile.n, begin_us, end_us, task.rate_max, task.rate_min, task.channel, task.slot, task.bits
    )
    if limits is None or not bits:
        return int(bits)
    begin, end = round_up(begin_us, task.slot), round_down(end_us, task.slot)
    return max_in_rows(read_rates(task, calendars, begin, end, task.rate_min), task.bits, limits, task.slot)


def read_rates(task: Task, calendars: Calendars, begin_us: int, end_us: int, rate_min: int) -> Int64Array:
    """The bookable rates on [begin, end), both on slots: rows (begin, end, rate) without gaps."""
    profile = profile_between(task.path, calendars, begin_us, end_us)
    room = _FIRST_ROWS
    while True:
        out = np.empty((room, 3), np.int64)
        status, count = scans.rates_between(
            profile.times, profile.free, profile.n, begin_us, end_us, task.rate_max, rate_min, task.channel, task.slot, out
        )
        if status == scans.FOUND:
            return out[:count]
        room *= _MORE_ROWS


def plan_of(task: Task, rows: Rows) -> Plan:
    """The rows as a plan over the task's path."""
    path = task.path
    return Plan(tuple([Segment(begin, end, rate, path) for begin, end, rate in rows]))
