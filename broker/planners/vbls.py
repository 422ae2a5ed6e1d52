# SPDX-License-Identifier: Apache-2.0
"""VBLS, varying-bandwidth list scheduling: the earliest finish, taking whatever is free up to Rmax at every instant.

Veeraraghavan et al. 2004, section 3.2; over several links gamma is the minimum of theirs.
"""

import numpy as np

from broker.core import scans
from broker.core.network import Network
from broker.core.plan import Plan, Refusal, Segment
from broker.core.profile import profile_between, profiles
from broker.core.request import Request
from broker.core.units import MICROBITS_PER_BYTE, US_PER_S, format_time
from broker.planners.signature import Calendars, task

_FIRST_ROWS = 64


class Vbls:
    name = "vbls"
    books = True

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:
        wanted = task(request, network)
        if isinstance(wanted, Refusal):
            return wanted
        rows = _FIRST_ROWS
        for profile in profiles(wanted.path, calendars, request.not_before_us, wanted.deadline_us):
            while True:
                out = np.empty((rows, 3), np.int64)
                status, count = scans.varying_bandwidth(
                    profile.times,
                    profile.free,
                    profile.n,
                    request.not_before_us,
                    wanted.deadline_us,
                    profile.limit_us,
                    wanted.bits,
                    wanted.rate_max,
                    wanted.rate_min,
                    wanted.channel,
                    wanted.slot,
                    fewest_rows,
                    out,
                )
                if status != scans.OUT_OF_ROOM:
                    break
                rows *= 8
            if status == scans.FOUND:
                path = wanted.path
                return Plan(tuple([Segment(begin, end, rate, path) for begin, end, rate in out[:count].tolist()]))
            if status != scans.OUT_OF_PROFILE:
                break
        return _too_late(request)

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        wanted = task(request, network)
        if isinstance(wanted, Refusal):
            return 0
        start, end = request.not_before_us, wanted.deadline_us
        profile = profile_between(wanted.path, calendars, start, end)
        bits = scans.volume_between(
            profile.times,
            profile.free,
            profile.n,
            start,
            end,
            wanted.rate_max,
            wanted.rate_min,
            wanted.channel,
            wanted.slot,
            wanted.bits,
        )
        return int(bits) * US_PER_S // MICROBITS_PER_BYTE


def _too_late(request: Request) -> Refusal:
    if request.deadline_us is None:
        return Refusal("infeasible", "free capacity never suffices, however long one waits", "volume_bytes")
    return Refusal(
        "infeasible",
        f"{request.volume_bytes} bytes do not fit between {format_time(request.not_before_us)} "
        f"and the deadline {format_time(request.deadline_us)}",
        "deadline",
    )
