# SPDX-License-Identifier: Apache-2.0
"""gamma(t) of a whole path: the minimum over its links, cut to the stretch of time that a scan needs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from broker.core import scans
from broker.core.calendar import Calendar
from broker.core.scans import Int64Array
from broker.core.units import FOREVER_US

_FIRST_CUT = 512
_NEXT_CUT = 8


class Profile(NamedTuple):
    """Steps of free capacity, trusted on [the `begin` asked for, limit_us)."""

    times: Int64Array
    free: Int64Array
    n: int
    limit_us: int


def profiles(path: Sequence[str], calendars: Mapping[str, Calendar], begin_us: int, until_us: int) -> Iterator[Profile]:
    """Ever longer profiles of a path from `begin_us` on, the last of which reaches `until_us`.

    One link is its own profile and costs nothing. For several, the first cut has some hundred steps a link and each further one is
    eight times as long, so a scan that starts anew with each costs little more than one over the right length.
    """
    if len(path) == 1:
        calendar = calendars[path[0]]
        yield Profile(calendar.times, calendar.free, calendar.n, FOREVER_US)
        return
    chosen = [calendars[link_id] for link_id in path]
    steps = _FIRST_CUT
    while True:
        limit = min(_time_after(calendar, begin_us, steps) for calendar in chosen)
        limit = FOREVER_US if limit >= until_us else limit
        yield _minimum(chosen, begin_us, limit if limit < FOREVER_US else until_us)._replace(limit_us=limit)
        if limit >= FOREVER_US:
            return
        steps *= _NEXT_CUT


def profile_between(path: Sequence[str], calendars: Mapping[str, Calendar], begin_us: int, end_us: int) -> Profile:
    """The whole profile on [begin, end)."""
    if len(path) == 1:
        calendar = calendars[path[0]]
        return Profile(calendar.times, calendar.free, calendar.n, FOREVER_US)
    return _minimum([calendars[link_id] for link_id in path], begin_us, end_us)


def _time_after(calendar: Calendar, begin_us: int, steps: int) -> int:
    index = scans.index_at(calendar.times, calendar.n, begin_us) + steps
    return int(calendar.times[index]) if index < calendar.n else FOREVER_US


def _minimum(calendars: Sequence[Calendar], begin_us: int, end_us: int) -> Profile:
    first = calendars[0]
    times, free, n = first.times, first.free, first.n
    for calendar in calendars[1:]:
        size = _span(times, n, begin_us, end_us) + _span(calendar.times, calendar.n, begin_us, end_us) + 1
        out_times, out_free = np.empty(size, np.int64), np.empty(size, np.int64)
        n = scans.minimum(times, free, n, calendar.times, calendar.free, calendar.n, begin_us, end_us, out_times, out_free)
        times, free = out_times, out_free
    return Profile(times, free, n, FOREVER_US)


def _span(times: Int64Array, n: int, begin_us: int, end_us: int) -> int:
    return int(scans.index_at(times, n, end_us) - scans.index_at(times, n, begin_us)) + 1
