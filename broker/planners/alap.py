# SPDX-License-Identifier: Apache-2.0
"""ALAP, as late as possible: VBLS backwards from the deadline, so that the near future stays free for urgent transfers.

Every instant is used as late as possible, so this plan starts latest of all plans that meet the deadline, and of several paths the
planner takes the one that starts latest. Rounding falls on the first row. A request of class 2 starts at the latest instant from
which at least Rmin is free for the whole holding time. Under limits on reprogramming the start is the latest from which VBLS under
the same limits meets the deadline.
"""

from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.profile import mirrored_profiles
from broker.core.reprogramming import Limits
from broker.core.request import Request
from broker.core.segments import Rows
from broker.core.units import MICROBITS_PER_BYTE, US_PER_S, round_up
from broker.planners import along
from broker.planners.refusals import nowhere_held, too_late, without_deadline
from broker.planners.signature import Calendars, Task, Traits, candidates


class Alap:
    """The latest plan that ends by the deadline."""

    name = "alap"
    traits = Traits(late=True)

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:
        """Of all candidate paths, the plan that begins last."""
        if request.deadline_us is None:
            return without_deadline(self.name, "plans backwards from the deadline")
        tasks = candidates(request, network)
        if isinstance(tasks, Refusal):
            return tasks
        if request.deadline_us <= request.not_before_us:
            return _late(request)
        # Mirrored time: from the deadline backwards to not_before.
        found = along.best_of(tasks, -request.deadline_us, -request.not_before_us, _Backwards(request, calendars, fewest_rows))
        if found is None:
            return _late(request)
        task, rows = found
        rows = _mirror(rows)
        if task.duration_us:
            rows = along.fit_held(task, calendars, rows[0][0], along.limits_of(request.options, task.slot))
        return along.plan_of(task, rows)

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        """The largest volume in bytes that any candidate path carries by the deadline."""
        tasks = candidates(request, network)
        if request.volume_bytes is None or isinstance(tasks, Refusal):
            return 0
        most = max(
            along.max_bits(task, calendars, request.not_before_us, task.deadline_us, along.limits_of(request.options, task.slot))
            for task in tasks
        )
        return most * US_PER_S // MICROBITS_PER_BYTE


class _Backwards:
    """An attempt on one path, in mirrored time."""

    def __init__(self, request: Request, calendars: Calendars, fewest_rows: bool) -> None:
        self._request = request
        self._calendars = calendars
        self._fewest_rows = fewest_rows

    def __call__(self, task: Task, last_us: int) -> Rows | None:
        first = -task.deadline_us
        if task.duration_us:
            return along.fit_constant(task, self._calendars, first, last_us, along.min_rate(task), mirrored_profiles)
        limits = along.limits_of(self._request.options, task.slot)
        fewest = self._fewest_rows or limits is not None
        rows = along.fit_varying(task, self._calendars, first, last_us, fewest, mirrored_profiles)
        if rows is None or limits is None or limits.kept_by(_mirror(rows)):
            return rows
        return self._limited(task, -last_us, -rows[-1][1], limits)

    def _limited(self, task: Task, earliest_us: int, latest_us: int, limits: Limits) -> Rows | None:
        """Bisection: if VBLS meets the deadline from some start, it also does from every earlier one."""
        low, high = round_up(earliest_us, task.slot) // task.slot, latest_us // task.slot
        best = along.fit_limited(task, self._calendars, low * task.slot, task.deadline_us, limits)
        while best is not None and low < high:
            middle = (low + high + 1) // 2
            later = along.fit_limited(task, self._calendars, middle * task.slot, task.deadline_us, limits)
            if later is None:
                high = middle - 1
            else:
                best, low = later, max(middle, later[0][0] // task.slot)
        return None if best is None else _mirror(best)


def _late(request: Request) -> Refusal:
    return nowhere_held(request) if request.volume_bytes is None else too_late(request)


def _mirror(rows: Rows) -> Rows:
    return [(-end, -begin, rate) for begin, end, rate in reversed(rows)]
