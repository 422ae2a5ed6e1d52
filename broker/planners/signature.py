# SPDX-License-Identifier: Apache-2.0
"""The one signature of all planners, and what they share: which path, which rates, until when."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.core.units import MAX_SLOT_US, MAX_TIME_US, MICROBITS_PER_BYTE, US_PER_S, round_down

Calendars = Mapping[str, Calendar]


class Planner(Protocol):
    """A list planner: one request after the other, each on what those before it left.

    `plan` answers a Plan that `verify` accepts, or a Refusal; `largest_volume` says how much would fit by the deadline.

    With `fewest_rows`, rows that touch at one rate are one: nobody has to be re-programmed there. Without, they are as the papers print them.
    """

    name: str
    books: bool  # False: it predicts and compares, and what it answers is never booked

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal: ...

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        """Bytes (at most what is asked) that this planner could carry by `request.deadline_us`, which must be set."""
        ...


@runtime_checkable
class JointPlanner(Planner, Protocol):
    """A planner that takes requests together, whatever their order; its `plan` is `plan_together` of one."""

    def plan_together(self, requests: Sequence[Request], network: Network, calendars: Calendars) -> Sequence[Plan | Refusal]:
        """One answer per request, in their order. All plans fit side by side: booked in that order, `verify` accepts each."""
        ...


class Task(NamedTuple):
    """A request brought down to the integers that the scans take."""

    path: tuple[str, ...]
    bits: int
    rate_max: int
    rate_min: int
    channel: int
    slot: int
    deadline_us: int


def task(request: Request, network: Network) -> Task | Refusal:
    """Path and limits of a volume request, or why no planner of a single path can take it."""
    if request.volume_bytes is None:
        return Refusal("unsupported", "this planner takes volumes, not durations", "duration_s")
    if request.source not in network.nodes:
        return Refusal("no_path", f"no link of the network touches {request.source!r}", "source")
    if request.destination not in network.nodes:
        return Refusal("no_path", f"no link of the network touches {request.destination!r}", "destination")
    route = network.route(request.source, request.destination)
    if route is None:
        return Refusal("no_path", f"no path leads from {request.source!r} to {request.destination!r}", "destination")
    path, ceiling, channel, slot = route
    if slot > MAX_SLOT_US:
        return Refusal("infeasible", f"the slots of path {'/'.join(path)} coincide only every {slot / US_PER_S:.6f} s")
    rate_max = ceiling if request.rate_max_bps is None else min(request.rate_max_bps, ceiling)
    rate_max = round_down(rate_max, channel)
    rate_min = request.rate_min_bps or 0
    if rate_max <= 0 or rate_min > rate_max:
        field = "rate_min_bps" if rate_min > ceiling else "rate_max_bps"
        return Refusal(
            "infeasible",
            f"no rate fits: at least {max(rate_min, channel)} bit/s is asked (channel {channel}), "
            f"at most {min(request.rate_max_bps or ceiling, ceiling)} bit/s is possible on path {'/'.join(path)}",
            field,
        )
    deadline = MAX_TIME_US if request.deadline_us is None else request.deadline_us
    bits = request.volume_bytes * (MICROBITS_PER_BYTE // US_PER_S)
    return Task(path, bits, rate_max, rate_min, channel, slot, deadline)
