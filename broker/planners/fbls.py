# SPDX-License-Identifier: Apache-2.0
"""FBLS, fixed-bandwidth list scheduling: the earliest start at which Rmax is free for the whole F / Rmax.

Veeraraghavan et al. 2004, section 3.3. Without `rate_max_bps` the rate is the most that the path can carry from `not_before` on.
"""

from itertools import pairwise

from broker.core import scans
from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.plan import Plan, Refusal, Segment
from broker.core.profile import profile_between, profiles
from broker.core.request import Request
from broker.core.units import FOREVER_US, MICROBITS_PER_BYTE, US_PER_S, duration_for, format_time, round_down, round_up, volume_of
from broker.planners.signature import Calendars, Task, task


class Fbls:
    name = "fbls"
    books = True

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:  # noqa: ARG002  it has one row
        wanted = _task(request, network, calendars)
        if isinstance(wanted, Refusal):
            return wanted
        volume = wanted.bits * US_PER_S // MICROBITS_PER_BYTE
        duration = round_up(duration_for(volume, wanted.rate_max), wanted.slot)
        for profile in profiles(wanted.path, calendars, request.not_before_us, wanted.deadline_us):
            status, begin = scans.fixed_bandwidth(
                profile.times,
                profile.free,
                profile.n,
                request.not_before_us,
                wanted.deadline_us,
                profile.limit_us,
                min(duration, FOREVER_US),  # an exabyte at 1 bit/s outgrows 64 bits, and no deadline lies so far ahead
                wanted.rate_max,
                wanted.slot,
            )
            if status == scans.FOUND:
                return Plan((Segment(int(begin), int(begin) + duration, wanted.rate_max, wanted.path),))
            if status != scans.OUT_OF_PROFILE:
                break
        until = f" by the deadline {format_time(request.deadline_us)}" if request.deadline_us is not None else ""
        return Refusal(
            "infeasible",
            f"{wanted.rate_max} bit/s is nowhere free for {duration / US_PER_S:.6f} s on end{until}",
            "deadline" if request.deadline_us is not None else "rate_max_bps",
        )

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        wanted = _task(request, network, calendars)
        if isinstance(wanted, Refusal):
            return 0
        start, end = request.not_before_us, wanted.deadline_us
        profile = profile_between(wanted.path, calendars, start, end)
        run = scans.longest_run(profile.times, profile.free, profile.n, start, end, wanted.rate_max, wanted.slot)
        most = wanted.bits * US_PER_S // MICROBITS_PER_BYTE
        return min(most, volume_of(wanted.rate_max, int(run)))


def _task(request: Request, network: Network, calendars: Calendars) -> Task | Refusal:
    """As of all planners, with `rate_max` as the one rate that is booked throughout."""
    wanted = task(request, network)
    if isinstance(wanted, Refusal):
        return wanted
    path = "/".join(wanted.path)
    if request.rate_max_bps is None:
        rate = min(wanted.rate_max, *(_highest(calendars[link_id], request.not_before_us) for link_id in wanted.path))
        rate = round_down(rate, wanted.channel)
        if rate < max(wanted.rate_min, 1):
            detail = f"path {path} carries at most {rate} bit/s from not_before on"
            return Refusal("infeasible", detail, "rate_min_bps" if request.rate_min_bps else "not_before")
        return wanted._replace(rate_max=rate)
    if wanted.rate_max < round_down(request.rate_max_bps, wanted.channel):
        detail = f"fbls books rate_max_bps throughout; path {path} never carries more than {wanted.rate_max} bit/s"
        return Refusal("infeasible", detail, "rate_max_bps")
    return wanted


def _highest(calendar: Calendar, begin_us: int) -> int:
    """Largest capacity of a link at or after `begin_us`, bookings aside."""
    steps = calendar.capacity
    return max([steps[-1][1], *(rate for (_, rate), (end, _) in pairwise(steps) if end > begin_us)])
