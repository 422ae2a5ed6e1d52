# SPDX-License-Identifier: Apache-2.0
"""VBLS, varying-bandwidth list scheduling: the earliest finish, taking whatever is free up to Rmax at every instant.

Veeraraghavan et al. 2004, section 3.2; over several links gamma is the minimum of theirs, and of several paths the one that
finishes first is taken. A request of class 2 (section 5) starts at the earliest instant from which at least Rmin is free for the
whole holding time, and takes the free capacity up to Rmax during it. `core.reprogramming` handles limits on reprogramming (section
3.4); `split` uses several paths side by side.
"""

from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.core.segments import Rows
from broker.core.units import MAX_TIME_US, MICROBITS_PER_BYTE, US_PER_S
from broker.planners import along, split
from broker.planners.refusals import nowhere_held, too_late
from broker.planners.signature import Calendars, Task, Traits, candidates


class Vbls:
    """Varying-bandwidth list scheduling."""

    name = "vbls"
    traits = Traits(eager=True)

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:
        """Of all candidate paths, the plan that finishes first."""
        tasks = candidates(request, network)
        found = None if isinstance(tasks, Refusal) else _find_earliest(request, tasks, calendars, fewest_rows)
        if request.options.split:
            found = split.find_earlier(request, network, calendars, found)
        if found is not None:
            return found
        if isinstance(tasks, Refusal):
            return tasks
        return nowhere_held(request) if request.volume_bytes is None else too_late(request)

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        """The largest volume in bytes that any candidate path carries by the deadline."""
        if request.volume_bytes is None:
            return 0
        tasks = candidates(request, network)
        most = 0
        for task in [] if isinstance(tasks, Refusal) else tasks:
            limits = along.limits_of(request.options, task.slot)
            most = max(most, along.max_bits(task, calendars, request.not_before_us, task.deadline_us, limits))
        if request.options.split:
            most = max(most, split.max_bits(request, network, calendars))
        return most * US_PER_S // MICROBITS_PER_BYTE


def _find_earliest(request: Request, tasks: list[Task], calendars: Calendars, fewest_rows: bool) -> Plan | None:
    options, begin = request.options, request.not_before_us
    deadline = MAX_TIME_US if request.deadline_us is None else request.deadline_us
    unlimited = options.most_segments is None and options.shortest_segment_us is None
    if len(tasks) == 1 and unlimited and request.volume_bytes is not None:
        # As below, but most admissions on a line of links take this branch, and they are counted in microseconds.
        found = along.fit_varying(tasks[0], calendars, begin, deadline, fewest_rows)
        return None if found is None else along.plan_of(tasks[0], found)

    def attempt(task: Task, by_us: int) -> Rows | None:
        if task.duration_us:
            return along.fit_constant(task, calendars, begin, by_us, along.min_rate(task))
        if unlimited:
            return along.fit_varying(task, calendars, begin, by_us, fewest_rows)
        limits = along.limits_of(options, task.slot)
        assert limits is not None
        return along.fit_limited(task, calendars, begin, by_us, limits)

    hopeless = along.Bottlenecks(request, calendars) if request.volume_bytes is not None else None
    best = along.best_of(tasks, begin, deadline, attempt, hopeless)
    if best is None:
        return None
    task, rows = best
    if task.duration_us:
        rows = along.fit_held(task, calendars, rows[0][0], along.limits_of(options, task.slot))
    return along.plan_of(task, rows)
