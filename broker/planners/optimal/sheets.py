# SPDX-License-Identifier: Apache-2.0
"""Calendars to try plans on: copies of the links that are touched, with everything else shared and nothing of the caller's changed."""

from collections.abc import Iterable, Mapping
from copy import copy
from fractions import Fraction

import numpy as np

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Network
from broker.core.plan import Plan


class Sheet(dict[str, Calendar]):
    """Calendars by link id; a link is copied when it is first looked at."""

    def __init__(self, calendars: Mapping[str, Calendar]) -> None:
        super().__init__()
        self._calendars = calendars

    def __missing__(self, link_id: str) -> Calendar:
        calendar = copy(self._calendars[link_id])
        calendar.times, calendar.free = calendar.times[: calendar.n].copy(), calendar.free[: calendar.n].copy()
        self[link_id] = calendar
        return calendar

    def book(self, plan: Plan, sign: int = 1) -> None:
        for begin, end, rate, path in plan.segments:
            for link_id in path:
                self[link_id].book(begin, end, sign * rate)

    def release(self, plan: Plan) -> None:
        self.book(plan, -1)


def capped(
    sheet: Mapping[str, Calendar], links: Iterable[str], network: Network, share: Fraction, begin_us: int, end_us: int
) -> Sheet:
    """Copies of the links on [begin, end), in which no more is free than keeps each below `share` of its capacity; nothing elsewhere."""
    out = Sheet({})
    for link_id in links:
        calendar, link = sheet[link_id], network.links[link_id]
        most = int(share * link.payload_bps(link.capacity_bps))
        capacity_times, capacity = (np.array(column, np.int64) for column in zip(*calendar.capacity, strict=True))
        changes = np.concatenate((calendar.times[: calendar.n], capacity_times))
        cuts = np.unique(np.append(changes[(changes > begin_us) & (changes < end_us)], begin_us))
        free = calendar.free[: calendar.n][np.searchsorted(calendar.times[: calendar.n], cuts, "right") - 1]
        booked = capacity[np.searchsorted(capacity_times, cuts, "right") - 1] - free
        room = np.minimum(free, most - booked)
        out[link_id] = Calendar([(DISTANT_PAST_US, 0), *zip(cuts.tolist(), room.tolist(), strict=True), (end_us, 0)])
    return out
