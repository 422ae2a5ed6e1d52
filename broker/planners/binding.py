# SPDX-License-Identifier: Apache-2.0
"""The link that prevents a request, and the interval in which it does."""

from dataclasses import dataclass

from broker.core import scans
from broker.core.network import Network
from broker.core.plan import Refusal
from broker.core.request import Request
from broker.core.units import MAX_TIME_US, MICROBITS_PER_BYTE, US_PER_S, round_down, round_up
from broker.planners.along import max_bits, read_rates
from broker.planners.signature import Calendars, Task, candidates

_MAX_BITS = 1 << 62


@dataclass(frozen=True, slots=True)
class Binding:
    """The link that leaves the least room for the request, and the interval in which the shortage is largest."""

    link: str
    begin_us: int
    end_us: int


def find_binding(request: Request, network: Network, calendars: Calendars) -> Binding | None:
    """On the best candidate path: the interval with the largest shortage, and the link that carries least in it; None without a path.

    The shortage is the difference between gamma and the rate that the request needs: its volume spread evenly over the window (or
    `rate_min_bps`, if that is more), or, where that rate is free throughout, its Rmax. Without a deadline the time after the last
    change decides.
    """
    tasks = _usable(request, network)
    if not tasks:
        return None
    task = tasks[0]
    if request.deadline_us is None:
        # Without a deadline the last step decides: look at the time after every link's last change.
        last = max(int(calendars[link_id].times[calendars[link_id].n - 1]) for link_id in task.path)
        begin = min(max(request.not_before_us, last), MAX_TIME_US - 1)
        end = min(begin + US_PER_S, MAX_TIME_US)
        return Binding(_narrowest(task, begin, end, task.rate_max, network, calendars), begin, end)
    begin, end = request.not_before_us, request.deadline_us
    if len(tasks) > 1 and task.bits:
        task = max(tasks, key=lambda each: max_bits(each, calendars, begin, end, None))
    first, last = round_up(begin, task.slot), round_down(end, task.slot)
    if first < last:
        free = read_rates(task, calendars, first, last, task.rate_min).tolist()
        for rate in (_needed(request, task), task.rate_max):
            interval = _shortest_of(free, rate)
            if interval is not None:
                begin, end = interval
                break
    return Binding(_narrowest(task, begin, end, task.rate_max, network, calendars), begin, end)


def _usable(request: Request, network: Network) -> list[Task]:
    tasks = candidates(request, network)
    if not isinstance(tasks, Refusal):
        return tasks
    # Every path is down or too small: the binding link can still be found on the shortest one.
    route = network.route(request.source, request.destination)
    if route is None or request.options.path is not None:
        return []
    deadline = MAX_TIME_US if request.deadline_us is None else request.deadline_us
    return [Task(route.path, 0, max(route.ceiling_bps, 1), 0, 1, 1, deadline)]


def _needed(request: Request, task: Task) -> int:
    least = max(task.rate_min, 1)
    if request.volume_bytes is None or request.deadline_us is None:
        return least
    window = request.deadline_us - request.not_before_us
    return min(max(-(-request.volume_bytes * MICROBITS_PER_BYTE // window), least), task.rate_max)


def _shortest_of(free: list[list[int]], rate_bps: int) -> tuple[int, int] | None:
    """The interval with the largest total shortage against `rate_bps` (Kadane's maximum sum); None if there is no shortage."""
    most = missing = 0
    found = None
    begin = free[0][0]
    for start, stop, rate in free:
        missing += (rate_bps - rate) * (stop - start)
        if missing > most:
            most, found = missing, (begin, stop)
        elif missing <= 0:
            missing, begin = 0, stop
    return found


def _narrowest(task: Task, begin_us: int, end_us: int, rate_max: int, network: Network, calendars: Calendars) -> str:
    """The link of the path that alone would carry least on [begin, end)."""

    def room(link_id: str) -> tuple[int, int]:
        calendar, link = calendars[link_id], network.links[link_id]
        bits = scans.volume_between(
            calendar.times, calendar.free, calendar.n, begin_us, end_us, rate_max, task.rate_min, link.channel_bps or 1, link.slot_us,
            _MAX_BITS,
        )  # fmt: skip
        return int(bits), calendar.lowest(begin_us, end_us)  # decides where none of them carries a whole bit

    return min(task.path, key=room)
