# SPDX-License-Identifier: Apache-2.0
"""gamma(t) of a whole path: the minimum over its links, cut to the interval that a scan needs; also with time reversed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from broker.core import scans
from broker.core.calendar import Calendar
from broker.core.scans import Int64Array
from broker.core.units import FOREVER_US

_FIRST_CUT = 256
_NEXT_CUT = 8


class Profile(NamedTuple):
    """Steps of free capacity, valid on [the requested `begin`, limit_us)."""

    times: Int64Array
    free: Int64Array
    n: int
    limit_us: int


# Successively longer profiles from a begin on; the last one reaches the end that was requested.
Profiles = Callable[[Sequence[str], Mapping[str, Calendar], int, int], Iterator[Profile]]


def profiles(path: Sequence[str], calendars: Mapping[str, Calendar], begin_us: int, until_us: int) -> Iterator[Profile]:
    """Successively longer profiles of a path from `begin_us` on; the last one reaches `until_us`.

    A single link is its own profile and costs nothing. For several links, the first cut has some hundred steps per link and each
    further one is eight times as long, so a scan that restarts with each costs little more than one scan over the right length.
    """
    if len(path) == 1:
        calendar = calendars[path[0]]
        yield Profile(calendar.times, calendar.free, calendar.n, FOREVER_US)
        return
    chosen = [calendars[link_id] for link_id in path]
    steps = _FIRST_CUT
    while True:
        limit, size = _limit(chosen, begin_us, steps)
        if limit >= until_us:
            yield _minimum(chosen, begin_us, until_us, size)
            return
        yield _minimum(chosen, begin_us, limit, size)._replace(limit_us=limit)
        steps *= _NEXT_CUT


def mirrored_profiles(path: Sequence[str], calendars: Mapping[str, Calendar], begin_us: int, until_us: int) -> Iterator[Profile]:
    """Profiles of gamma(-t), from -begin_us backwards to -until_us: on these, a forward scan plans backwards in time.

    An interval that ends at an instant begins at its mirror image, and rows [b, e) stand for [-e, -b).
    """
    chosen = [calendars[link_id] for link_id in path]
    steps = _FIRST_CUT
    while True:
        earliest = max(_time_before(calendar, -begin_us, steps) for calendar in chosen)
        limit = max(earliest, -until_us)
        forward = profile_between(path, calendars, limit, -begin_us)
        room = int(scans.index_at(forward.times, forward.n, -begin_us) - scans.index_at(forward.times, forward.n, limit)) + 2
        times, free = np.empty(room, np.int64), np.empty(room, np.int64)
        n = scans.mirror(forward.times, forward.free, forward.n, limit, -begin_us, times, free)
        if earliest <= -until_us:
            yield Profile(times, free, n, FOREVER_US)
            return
        yield Profile(times, free, n, -limit)
        steps *= _NEXT_CUT


def profile_between(path: Sequence[str], calendars: Mapping[str, Calendar], begin_us: int, end_us: int) -> Profile:
    """The whole profile on [begin, end)."""
    if len(path) == 1:
        calendar = calendars[path[0]]
        return Profile(calendar.times, calendar.free, calendar.n, FOREVER_US)
    chosen = [calendars[link_id] for link_id in path]
    size = sum(scans.index_at(calendar.times, calendar.n, end_us) for calendar in chosen)
    size -= sum(scans.index_at(calendar.times, calendar.n, begin_us) for calendar in chosen)
    return _minimum(chosen, begin_us, end_us, max(int(size), 0) + len(chosen))


def profiles_of_groups(
    groups: Sequence[Sequence[str]], calendars: Mapping[str, Calendar], begin_us: int, until_us: int
) -> Iterator[tuple[list[Profile], int]]:
    """As `profiles`, for several sets of links at the same time. Yields their profiles and the instant up to which these are valid."""
    chosen = [[calendars[link_id] for link_id in group] for group in groups]
    every = [calendar for group in chosen for calendar in group]
    steps = _FIRST_CUT
    while True:
        limit, size = _limit(every, begin_us, steps)
        end = min(limit, until_us)
        yield (
            [_cut(group[0], begin_us, end) if len(group) == 1 else _minimum(group, begin_us, end, size) for group in chosen],
            limit,
        )
        if limit >= until_us:
            return
        steps *= _NEXT_CUT


def _cut(calendar: Calendar, begin_us: int, end_us: int) -> Profile:
    first = scans.index_at(calendar.times, calendar.n, begin_us)
    last = scans.index_at(calendar.times, calendar.n, end_us) + 1
    return Profile(calendar.times[first:last], calendar.free[first:last], last - first, FOREVER_US)


def _limit(calendars: Sequence[Calendar], begin_us: int, steps: int) -> tuple[int, int]:
    """(instant up to which no calendar has more than `steps` steps, upper bound on their total number of steps up to then)."""
    limit, size = FOREVER_US, 0
    for calendar in calendars:
        end, count = scans.time_after(calendar.times, calendar.n, begin_us, steps)
        limit = min(limit, end)
        size += count
    return limit, size


def _time_before(calendar: Calendar, end_us: int, steps: int) -> int:
    """The begin of the step that is `steps` before the one that holds just before `end_us`; the distant past if there is none."""
    index = scans.index_at(calendar.times, calendar.n, end_us - 1) - steps
    return int(calendar.times[index]) if index > 0 else -FOREVER_US


def _minimum(calendars: Sequence[Calendar], begin_us: int, end_us: int, size: int) -> Profile:
    """`size`: the total number of steps of all calendars on [begin, end), or more."""
    first = calendars[0]
    times, free, n = first.times, first.free, first.n
    for calendar in calendars[1:]:
        out_times, out_free = np.empty(size, np.int64), np.empty(size, np.int64)
        n = scans.minimum(times, free, n, calendar.times, calendar.free, calendar.n, begin_us, end_us, out_times, out_free)
        times, free = out_times, out_free
    return Profile(times, free, n, FOREVER_US)
