# SPDX-License-Identifier: Apache-2.0
"""Spaghetti: one constant rate, the lowest that suffices, from `not_before` to the deadline.

Soudan, Guillier, Primet 2007 (RR-6205, sections 1 and 3, after Chen and Primet): volume over window, which is optimal in congestion
when all requests share one window. If that rate is not free up to the deadline, the planner takes the lowest higher rate that is
free from `not_before` until the volume is complete; `rate_min_bps` and whole channels raise the rate too, and the transfer then
ends earlier. Of several paths it takes the one on which the most used link keeps the largest share free.
"""

from dataclasses import replace
from fractions import Fraction

from broker.core import rectangles
from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.profile import profile_between
from broker.core.request import Request
from broker.core.units import FOREVER_US, MICROBITS_PER_BYTE, US_PER_S, format_time, round_down, round_up, volume_of
from broker.planners import along
from broker.planners.refusals import too_late, without_deadline, without_volume
from broker.planners.signature import MAX_STRETCHES, Calendars, Task, Traits, candidates, next_lower_rate

_Row = tuple[int, int, int]


class Spaghetti:
    """One low rate over the whole window."""

    name = "spaghetti"
    traits = Traits(fixed_rate=True)

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:  # noqa: ARG002  it has one row
        """Of all candidate paths, the plan with the even rate until the deadline, on the path with the smallest booked share."""
        if request.volume_bytes is None:
            return without_volume(self.name, "spreads a volume over its window")
        if request.deadline_us is None:
            return without_deadline(self.name, "spreads a volume over the time until its deadline")
        if request.deadline_us <= request.not_before_us:
            return too_late(request)
        tasks = candidates(request, network, even_rate(request))
        if isinstance(tasks, Refusal):
            return tasks
        found = [(task, row) for task in tasks if (row := _row(task, request.not_before_us, calendars)) is not None]
        if not found:
            window = f"between {format_time(request.not_before_us)} and the deadline {format_time(request.deadline_us)}"
            detail = f"no single rate from not_before on carries {request.volume_bytes} bytes {window}"
            return Refusal("infeasible", detail, "deadline")
        task, row = found[0]
        if len(found) > 1:
            task, row = min(found, key=lambda each: _largest_share(each[0], each[1], network, calendars))
        return along.plan_of(task, [row])

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        """The largest volume in bytes that an even rate carries by the deadline."""
        if request.volume_bytes is None or request.deadline_us is None:
            return 0
        volume, window = request.volume_bytes, request.deadline_us - request.not_before_us
        for _ in range(MAX_STRETCHES):
            if volume <= 0 or window <= 0:
                break
            # Smaller volumes need a lower rate and may have other candidates: each set of candidates decides only about its own
            # volumes.
            asked = replace(request, volume_bytes=volume)
            lower = next_lower_rate(network, max(even_rate(asked), request.rate_min_bps or 1))
            smallest = 0 if lower < (request.rate_min_bps or 1) else volume_of(lower, window) + 1
            most = _max_within(asked, network, calendars)
            if most >= smallest:
                return most
            volume = smallest - 1
        return 0


def even_rate(request: Request) -> int:
    """Volume over window in bit/s, rounded up: links that carry less are of no use."""
    assert request.volume_bytes is not None
    assert request.deadline_us is not None
    return -(-request.volume_bytes * MICROBITS_PER_BYTE // (request.deadline_us - request.not_before_us))


def _max_within(request: Request, network: Network, calendars: Calendars) -> int:
    """Bytes, at most the requested ones, that one rate carries over the candidates of exactly this volume."""
    tasks = candidates(request, network, even_rate(request))
    most = 0
    for task in [] if isinstance(tasks, Refusal) else tasks:
        begin, end = round_up(request.not_before_us, task.slot), round_down(task.deadline_us, task.slot)
        if begin < end:
            profile = profile_between(task.path, calendars, begin, end)
            bits = rectangles.max_constant(
                profile.times, profile.free, profile.n, begin, end, task.rate_max, task.rate_min, task.channel, task.slot, task.bits
            )
            most = max(most, bits * US_PER_S // MICROBITS_PER_BYTE)
    return most


def _row(task: Task, not_before_us: int, calendars: Calendars) -> _Row | None:
    begin, end = round_up(not_before_us, task.slot), round_down(task.deadline_us, task.slot)
    if begin >= end:
        return None
    profile = profile_between(task.path, calendars, begin, end)
    latest = rectangles.longest_constant(
        profile.times, profile.free, profile.n, begin, end, task.bits, task.rate_max, task.rate_min, task.channel, task.slot
    )
    if latest == begin:
        return None
    rate = round_up(max(-(-task.bits * US_PER_S // (latest - begin)), task.rate_min), task.channel)
    return begin, begin + round_up(-(-task.bits * US_PER_S // rate), task.slot), rate


def _largest_share(task: Task, row: _Row, network: Network, calendars: Calendars) -> Fraction:
    """The largest share of a link's capacity that would be booked at an instant of the row."""
    begin, end, rate = row
    shares = []
    for link_id in task.path:
        calendar, link = calendars[link_id], network.links[link_id]
        steps = calendar.capacity
        ends = [at for at, _ in steps[1:]]
        booked = max(
            capacity - calendar.lowest(max(start, begin), min(stop, end))
            for (start, capacity), stop in zip(steps, [*ends, FOREVER_US], strict=True)
            if start < end and stop > begin
        )
        shares.append(Fraction(booked + rate, link.payload_bps(link.capacity_bps)))
    return max(shares)
