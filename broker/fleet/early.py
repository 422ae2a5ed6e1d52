# SPDX-License-Identifier: Apache-2.0
"""The earliest start of a successor if its predecessor ends early: computed beforehand, so that a signal need not ask the broker."""

from collections.abc import Mapping

import numpy as np

from broker.core.calendar import Calendar
from broker.store.transfers import Transfer


def early_from(successor: Transfer, predecessor: Transfer, calendars: Mapping[str, Calendar], now_us: int) -> int | None:
    """The instant from which on there is room for the whole of its plan whenever it begins; None where there is no earlier one.

    `calendars`: what is free on each of its links from `now_us` to its finish. Its own booking counts as free, and so does its
    predecessor's, which ends with that one. It may begin at any time from then on, so the room is for its highest rate all the while.
    An admission later on may take room that the predecessor's links do not keep; then the next hand-over says so.
    """
    ahead = [s for s in successor.segments if s.begin_us >= successor.plan_from_us and s.begin_us > now_us]
    if not ahead:
        return None
    begin, finish = ahead[0].begin_us, max(segment.end_us for segment in ahead)
    earliest = successor.spec.not_before_us
    for link_id in {link_id for segment in ahead for link_id in segment.path}:
        if link_id not in calendars:
            return None
        needed = max(segment.rate_bps for segment in ahead if link_id in segment.path)
        free = calendars[link_id].copy()
        for segment in (*successor.segments, *predecessor.segments):
            if segment.end_us > now_us and link_id in segment.path:
                free.release(segment.begin_us, segment.end_us, segment.rate_bps)
        earliest = max(earliest, _room_from(free, needed, finish))
    return earliest if earliest < begin else None


def _room_from(calendar: Calendar, needed_bps: int, until_us: int) -> int:
    """Since when there has been so much room, without a break, up to `until_us`; `until_us` where there is none at its end."""
    times, free = calendar.times[: calendar.n], calendar.free[: calendar.n]
    short = np.flatnonzero((free < needed_bps) & (times < until_us))
    if not short.size:
        return int(times[0])
    last = int(short[-1])
    return until_us if last + 1 == calendar.n else min(int(times[last + 1]), until_us)
