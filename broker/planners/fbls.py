# SPDX-License-Identifier: Apache-2.0
"""FBLS, fixed-bandwidth list scheduling: the earliest start at which Rmax is free for the whole F / Rmax.

Veeraraghavan et al. 2004, section 3.3; of several paths the one that finishes first. Without `rate_max_bps` the rate is the most
that a path can carry from `not_before` on. A request of class 2 also gets one constant rate: it starts at the earliest instant from
which `rate_min_bps` (if not given: the rate of a volume) is free for the whole holding time, and takes the highest rate up to Rmax
that is free throughout.
"""

from bisect import bisect_left
from dataclasses import replace
from itertools import pairwise

from broker.core import rectangles
from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.profile import profile_between
from broker.core.request import Request
from broker.core.segments import Rows
from broker.core.units import MAX_TIME_US, MICROBITS_PER_BYTE, US_PER_S, duration_for, format_time, round_down, round_up, volume_of
from broker.planners import along
from broker.planners.refusals import nowhere_held
from broker.planners.signature import MAX_STRETCHES, Calendars, Task, Traits, candidates


class Fbls:
    """Fixed-bandwidth list scheduling."""

    name = "fbls"
    traits = Traits(eager=True, fixed_rate=True)

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:  # noqa: ARG002  it has one row
        """Of all candidate paths, the constant rate that ends first."""
        tasks = fixed_tasks(request, network, calendars)
        if isinstance(tasks, Refusal):
            return tasks
        begin = request.not_before_us

        def attempt(task: Task, deadline: int) -> Rows | None:
            return along.fit_constant(task, calendars, begin, deadline, _least(task))

        best = along.best_of(tasks, begin, MAX_TIME_US if request.deadline_us is None else request.deadline_us, attempt)
        if best is None:
            return _nowhere(request, tasks[0])
        task, rows = best
        if task.duration_us:
            start, end, _ = rows[0]
            lowest = min(calendars[link_id].lowest(start, end) for link_id in task.path)
            rows = [(start, end, min(round_down(lowest, task.channel), task.rate_max))]
        return along.plan_of(task, rows)

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        """The largest volume in bytes that the constant rate carries on any candidate path by the deadline."""
        tasks = fixed_tasks(request, network, calendars)
        if request.volume_bytes is None or isinstance(tasks, Refusal):
            return 0
        return max(min(request.volume_bytes, _longest_run(task, request.not_before_us, calendars)) for task in tasks)

    def min_rate(self, request: Request, network: Network, calendars: Calendars) -> int | None:
        """The smallest `rate_max_bps` at which the otherwise unchanged request is accepted; it may be higher or lower than requested.

        None also if it lies beyond `MAX_STRETCHES` rates of links.
        """
        first = max(request.rate_min_bps or 1, 1)
        at = bisect_left(network.rates, first)
        for last in network.rates[at : at + MAX_STRETCHES]:
            # Between two rates of links the candidates are the same.
            tasks = candidates(replace(request, rate_max_bps=last), network, first)
            found = [
                rate
                for task in ([] if isinstance(tasks, Refusal) else tasks)
                if (rate := _min_rate_on(task, request.not_before_us, first, calendars)) is not None and rate <= last
            ]
            if found:
                return min(found)
            first = last + 1
        return None


def fixed_tasks(request: Request, network: Network, calendars: Calendars) -> list[Task] | Refusal:
    """The candidates as for all planners, with `rate_max` as the one rate that is booked throughout."""
    asked = request.rate_max_bps
    if asked is None or (request.duration_us is not None and request.rate_min_bps is not None):
        tasks = candidates(request, network)
        return tasks if isinstance(tasks, Refusal) or asked is not None else _at_most(request, tasks, calendars)
    tasks = candidates(request, network, asked)
    if isinstance(tasks, Refusal):
        # Rates are whole channels: a link that never carries all of `asked` may still carry the whole channels that fit into it.
        tasks = candidates(request, network)
    if isinstance(tasks, Refusal):
        return tasks
    full = [task for task in tasks if task.rate_max == round_down(asked, task.channel)]
    if full:
        return full
    most = max(task.rate_max for task in tasks)
    detail = f"fbls books rate_max_bps throughout; path {'/'.join(tasks[0].path)} never carries more than {tasks[0].rate_max} bit/s"
    if len(tasks) > 1:
        detail = f"fbls books rate_max_bps throughout; none of {len(tasks)} paths ever carries more than {most} bit/s"
    return Refusal("infeasible", detail, "rate_max_bps")


def _at_most(request: Request, tasks: list[Task], calendars: Calendars) -> list[Task] | Refusal:
    """For requests without Rmax: the maximum rate that each path carries from `not_before` on."""
    rates = [
        round_down(min(_highest(calendars[link_id], request.not_before_us) for link_id in task.path), task.channel)
        for task in tasks
    ]
    found = [
        task._replace(rate_max=min(rate, task.rate_max))
        for task, rate in zip(tasks, rates, strict=True)
        if rate >= max(task.rate_min, 1)
    ]
    if found:
        return found
    detail = f"path {'/'.join(tasks[0].path)} carries at most {rates[0]} bit/s from not_before on"
    return Refusal("infeasible", detail, "rate_min_bps" if request.rate_min_bps else "not_before")


def _highest(calendar: Calendar, begin_us: int) -> int:
    """The largest capacity of a link at or after `begin_us`, regardless of bookings."""
    steps = calendar.capacity
    return max([steps[-1][1], *(rate for (_, rate), (end, _) in pairwise(steps) if end > begin_us)])


def _least(task: Task) -> int:
    """The rate that must be free."""
    return along.min_rate(task) if task.duration_us and task.rate_min else task.rate_max


def _longest_run(task: Task, begin_us: int, calendars: Calendars) -> int:
    """Bytes that the constant rate carries in the longest interval in which it is free."""
    profile = profile_between(task.path, calendars, begin_us, task.deadline_us)
    run = rectangles.longest_run(profile.times, profile.free, profile.n, begin_us, task.deadline_us, task.rate_max, task.slot)
    return volume_of(task.rate_max, int(run))


def _min_rate_on(task: Task, begin_us: int, first_bps: int, calendars: Calendars) -> int | None:
    """The least sufficient Rmax from `first_bps` on for one path; the booked rate is Rmax in whole channels."""
    begin, end = round_up(begin_us, task.slot), round_down(task.deadline_us, task.slot)
    if begin >= end:
        return None
    least = max(round_down(first_bps, task.channel), round_up(task.rate_min, task.channel), task.channel)
    rate = rectangles.min_height(along.read_rates(task, calendars, begin, end, 0), task.bits, least, task.channel)
    return None if rate < 0 else max(int(rate), first_bps)


def _nowhere(request: Request, task: Task) -> Refusal:
    if request.volume_bytes is None and request.rate_min_bps:
        return nowhere_held(request)
    duration = task.duration_us or round_up(duration_for(task.bits * US_PER_S // MICROBITS_PER_BYTE, task.rate_max), task.slot)
    until = f" by the deadline {format_time(request.deadline_us)}" if request.deadline_us is not None else ""
    return Refusal(
        "infeasible",
        f"{task.rate_max} bit/s is nowhere free for {duration / US_PER_S:.6f} s on end{until}",
        "deadline" if request.deadline_us is not None else "rate_max_bps",
    )
