# SPDX-License-Identifier: Apache-2.0
"""Calendars to try plans on: links are copied when used, the rest is shared, and the caller's calendars stay unchanged."""

from collections.abc import Mapping
from copy import copy
from fractions import Fraction

import numpy as np

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan
from broker.core.scans import Int64Array as Ints


class Sheet(dict[str, Calendar]):
    """Calendars by link id; a link is copied on first access."""

    def __init__(self, calendars: Mapping[str, Calendar]) -> None:
        super().__init__()
        self._calendars = calendars

    def __missing__(self, link_id: str) -> Calendar:
        calendar = copy(self._calendars[link_id])
        calendar.times, calendar.free = calendar.times[: calendar.n].copy(), calendar.free[: calendar.n].copy()
        self[link_id] = calendar
        return calendar

    def book(self, plan: Plan, sign: int = 1) -> None:
        """Book (sign 1) or release (-1) a plan."""
        for begin, end, rate, path in plan.segments:
            for link_id in path:
                self[link_id].book(begin, end, sign * rate)

    def release(self, plan: Plan) -> None:
        """Release the bookings of a plan."""
        self.book(plan, -1)


def room_at(calendar: Calendar, instants: Ints, max_bps: int) -> Ints:
    """The rate that may be booked at each instant: at most the free rate, and total bookings stay at or below `max_bps`."""
    capacity_times, capacity = (np.array(column, np.int64) for column in zip(*calendar.capacity, strict=True))
    free = calendar.free[: calendar.n][np.searchsorted(calendar.times[: calendar.n], instants, "right") - 1]
    booked = capacity[np.searchsorted(capacity_times, instants, "right") - 1] - free
    room: Ints = np.minimum(free, max_bps - booked)
    return room


def max_booked_on(link: Link, share: Fraction) -> int:
    """The bit/s of `share` of a link's capacity."""
    return int(share * link.payload_bps(link.capacity_bps))


class Capped(Sheet):
    """Copies on [begin, end) with the free rate reduced to keep each link below `share` of its capacity; nothing is free elsewhere."""

    def __init__(self, calendars: Mapping[str, Calendar], network: Network, share: Fraction, begin_us: int, end_us: int) -> None:
        super().__init__(calendars)
        self._network, self._share, self._begin_us, self._end_us = network, share, begin_us, end_us

    def __missing__(self, link_id: str) -> Calendar:
        whole = self._calendars[link_id]
        changes = np.append(whole.times[: whole.n], np.array([begin for begin, _ in whole.capacity], np.int64))
        cuts = np.unique(np.append(changes[(changes > self._begin_us) & (changes < self._end_us)], self._begin_us))
        room = room_at(whole, cuts, max_booked_on(self._network.links[link_id], self._share))
        calendar = Calendar([(DISTANT_PAST_US, 0), *zip(cuts.tolist(), room.tolist(), strict=True), (self._end_us, 0)])
        self[link_id] = calendar
        return calendar
