# SPDX-License-Identifier: Apache-2.0
"""What to say beside "no": which link binds and when, and what could be had instead."""

from dataclasses import dataclass, replace

from broker.core import scans
from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.core.units import MAX_TIME_US, US_PER_S
from broker.planners.signature import Calendars, Planner, task


@dataclass(frozen=True, slots=True)
class Binding:
    """The link that leaves the least room for the request, and the interval asked for."""

    link: str
    begin_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class CounterOffer:
    """What the same planner would book now, one field changed at a time: None where nothing can be offered.

    `earliest_finish_us` is also the smallest deadline that would be met; `largest_volume_bytes` fits by the deadline asked for.
    `smallest_rate_max_bps` and `largest_rate_min_bps` are rates with which the rest of the request can be had as it is;
    `longest_duration_us` is how long a request of class 2 could hold at least `rate_min_bps` by its deadline.
    """

    earliest_finish_us: int | None
    largest_volume_bytes: int | None
    smallest_rate_max_bps: int | None = None
    largest_rate_min_bps: int | None = None
    longest_duration_us: int | None = None


def counter_offer(planner: Planner, request: Request, network: Network, calendars: Calendars) -> CounterOffer:
    without_deadline = planner.plan(replace(request, deadline_us=None), network, calendars)
    finish = without_deadline.finish_us if isinstance(without_deadline, Plan) else None
    volume = planner.largest_volume(request, network, calendars) if request.deadline_us is not None else None
    return CounterOffer(finish, volume or None)


def binding(request: Request, network: Network, calendars: Calendars) -> Binding | None:
    """The link of the path that would carry least on its own between not_before and the deadline (or for ever)."""
    wanted = task(request, network)
    if isinstance(wanted, Refusal):
        return None
    end = wanted.deadline_us
    if end >= MAX_TIME_US:
        # "For ever" is settled by the last step: look at the tail after every link's last change.
        last = max(int(calendars[link_id].times[calendars[link_id].n - 1]) for link_id in wanted.path)
        start = max(request.not_before_us, last)
        end = min(start + US_PER_S, MAX_TIME_US)
    else:
        start = request.not_before_us

    def room(link_id: str) -> int:
        calendar = calendars[link_id]
        link = network.links[link_id]
        return scans.volume_between(
            calendar.times, calendar.free, calendar.n, start, end,
            wanted.rate_max, wanted.rate_min, link.channel_bps or 1, link.slot_us, wanted.bits,
        )  # fmt: skip

    return Binding(min(wanted.path, key=room), start, end)
