# SPDX-License-Identifier: Apache-2.0
"""FBLS, fixed-bandwidth list scheduling: the earliest start at which Rmax is free for the whole F / Rmax.

Veeraraghavan et al. 2004, section 3.3. Without `rate_max_bps` the rate is the most that the path can ever carry.
"""

from broker.core import scans
from broker.core.network import Network
from broker.core.plan import Plan, Refusal, Segment
from broker.core.profile import profile_between, profiles
from broker.core.request import Request
from broker.core.units import MICROBITS_PER_BYTE, US_PER_S, duration_for, format_time, round_up, volume_of
from broker.planners.signature import Calendars, task


class Fbls:
    name = "fbls"

    def plan(self, request: Request, network: Network, calendars: Calendars) -> Plan | Refusal:
        wanted = task(request, network)
        if isinstance(wanted, Refusal):
            return wanted
        if request.rate_max_bps is not None and wanted.rate_max < request.rate_max_bps // wanted.channel * wanted.channel:
            return Refusal(
                "infeasible",
                f"fbls books rate_max_bps throughout; path {'/'.join(wanted.path)} never carries more than {wanted.rate_max} bit/s",
                "rate_max_bps",
            )
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
                min(duration, wanted.deadline_us),
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
        wanted = task(request, network)
        if isinstance(wanted, Refusal):
            return 0
        start, end = request.not_before_us, wanted.deadline_us
        profile = profile_between(wanted.path, calendars, start, end)
        run = scans.longest_run(profile.times, profile.free, profile.n, start, end, wanted.rate_max, wanted.slot)
        most = wanted.bits * US_PER_S // MICROBITS_PER_BYTE
        return min(most, volume_of(wanted.rate_max, int(run)))
