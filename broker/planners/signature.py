# SPDX-License-Identifier: Apache-2.0
"""The one signature of all planners, and what they share: which paths, which rates, until when."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeGuard

from broker.core.calendar import Calendar
from broker.core.network import Network, Route, is_connected
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.core.units import MAX_SLOT_US, MAX_TIME_US, MICROBITS_PER_BYTE, US_PER_S, format_time, round_down, round_up

Calendars = Mapping[str, Calendar]
Spent = Callable[[], bool]  # has a search used up what it may cost? Whoever reads a clock says so

_BITS_PER_BYTE = MICROBITS_PER_BYTE // US_PER_S
# How many rates of links are walked past when an offer is looked for, beginning with the nearest to what was asked: most networks have few.
MAX_STRETCHES = 64
_MAX_RETURNS = 16  # links that come back one after the other within a request's window, of which each makes further candidates


def never() -> bool:
    """Of a search without bounds."""
    return False


class OutOfBudget(Exception):
    """A search has used up what it may cost."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What others have to know of a planner beside its plans (ADR 0030). All of it shows in GET /v1/planners.

    - `books`: its plans can be booked; without, it predicts and compares.
    - `joint`: it takes the requests of a batch together, whatever their order (`JointPlanner`).
    - `eager`: an early finish is asked of it, so what waits is planned anew whenever something comes free.
    - `late`: lateness is asked of it, so a plan never moves earlier, not even behind a predecessor that has ended.
    - `fixed_rate`: it makes or tries plans of one rate throughout, and goes around links that carry less for a while.
    - `takes_turns`: those of one batch follow one another, so that where two meet a start signal chains them.
    - `time_limit`: its search may take any time, so it is given a limit (`TimeLimited`) and runs where nobody waits.
    """

    books: bool = True
    joint: bool = False
    eager: bool = False
    late: bool = False
    fixed_rate: bool = False
    takes_turns: bool = False
    time_limit: bool = False


class Planner(Protocol):
    """A list planner: one request after the other, each on what those before it left.

    `plan` answers a Plan that `verify` accepts, or a Refusal; `largest_volume` says how much would fit by the deadline.

    With `fewest_rows`, rows that touch at one rate are one: nobody has to be re-programmed there. Without, they are as the papers print them.
    """

    name: str
    traits: Traits

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:
        """A plan that `core.plan.verify` accepts, or why there is none. `fewest_rows`: join rows where that is possible."""

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        """Bytes (at most what is asked) that this planner could carry by `request.deadline_us`, which must be set."""
        ...


class JointPlanner(Planner, Protocol):
    """A planner that takes requests together, whatever their order; its `plan` is `plan_together` of one."""

    def plan_together(self, requests: Sequence[Request], network: Network, calendars: Calendars) -> Sequence[Plan | Refusal]:
        """One answer per request, in their order. All plans fit side by side: booked in that order, `verify` accepts each."""
        ...


class TimeLimited(Planner, Protocol):
    """A planner whose search may take any time."""

    def within(self, time_limit_s: float, spent: Spent) -> Planner:
        """The same planner with at most so much time for its search, which ends early once `spent` says so; 0: without a search."""
        ...


def is_joint(planner: Planner) -> TypeGuard[JointPlanner]:
    """Does it take requests together?"""
    return planner.traits.joint


def is_time_limited(planner: Planner) -> TypeGuard[TimeLimited]:
    """Does it have to be told how long it may search?"""
    return planner.traits.time_limit


class Task(NamedTuple):
    """A request on one path, brought down to the integers that the scans take."""

    path: tuple[str, ...]
    bits: int  # 0 for class 2
    rate_max: int  # whole channels
    rate_min: int  # 0: none was asked for
    channel: int
    slot: int
    deadline_us: int
    duration_us: int = 0  # class 2: the holding time in whole slots


def candidates(request: Request, network: Network, min_bps: int = 1) -> list[Task] | Refusal:
    """The paths that a planner may choose from, the shortest first, or why there is none. Takes both classes of requests.

    `min_bps` is the rate below which the planner cannot use a path (`rate_min_bps` counts anyway): links that carry less throughout
    the request's window are gone around. So are those that carry less for the time being, in further candidates: otherwise a link that
    comes back next week would hide the longer path that is free today.
    """
    refusal = _unknown_ends(request, network)
    if refusal is not None:
        return refusal
    options = request.options
    if options.path is not None:
        refusal = _broken_path(options.path, request, network)
        if refusal is not None:
            return refusal
        routes: Sequence[Route] = (network.along(options.path),)
    else:
        least = max(min_bps, request.rate_min_bps or 1)
        routes = candidate_routes(request, network, least)
        if not routes:
            return _nothing_carries(request, network, least)
    found: list[Task] = []
    refusal = None
    for route in routes:
        each = _task(request, route)
        if isinstance(each, Task):
            found.append(each)
        else:
            refusal = refusal or each
    return found if found or refusal is None else refusal


def next_lower_rate(network: Network, min_bps: int) -> int:
    """The candidates for `min_bps` are those for every rate down to one above this: between them no link comes or goes. 0: down to 1."""
    index = bisect_left(network.rates, min_bps)
    return max(network.rates[index - 1], 0) if index else 0


def task(request: Request, network: Network) -> Task | Refusal:
    """The shortest candidate of a volume request, for planners that look at one path."""
    if request.volume_bytes is None:
        return Refusal("unsupported", "this planner takes volumes, not durations", "duration_s")
    found = candidates(request, network)
    return found if isinstance(found, Refusal) else found[0]


def candidate_routes(request: Request, network: Network, min_bps: int) -> Sequence[Route]:
    """The paths of `candidates` when none was asked for. Whoever books locks their links."""
    options, begin = request.options, request.not_before_us
    down = network.below(min_bps, begin, begin + 1)
    if not down:
        return network.routes(request.source, request.destination, options.paths)
    end = MAX_TIME_US if request.deadline_us is None else request.deadline_us
    returns = {link_id: network.returns_us(link_id, min_bps, begin) for link_id in down}
    instants = sorted({instant for instant in returns.values() if instant < end})[: _MAX_RETURNS - 1]
    routes: dict[Route, None] = {}
    # The whole window first: its paths are the shortest. Then the window up to each return, the latest first.
    for instant in [end, *reversed(instants)]:
        without = frozenset(link_id for link_id, back in returns.items() if back >= instant)
        routes.update(dict.fromkeys(network.routes(request.source, request.destination, options.paths, without)))
    return list(routes)


def _task(request: Request, route: Route) -> Task | Refusal:
    path, ceiling, channel, slot = route
    if slot > MAX_SLOT_US:
        return Refusal("infeasible", f"the slots of path {'/'.join(path)} coincide only every {slot / US_PER_S:.6f} s")
    asked = request.rate_max_bps
    rate_max = ceiling if asked is None or asked > ceiling else asked
    if channel != 1:
        rate_max = round_down(rate_max, channel)
    rate_min = request.rate_min_bps or 0
    if rate_max <= 0 or rate_min > rate_max:
        field = "rate_min_bps" if rate_min > ceiling else "rate_max_bps"
        return Refusal(
            "infeasible",
            f"no rate fits: at least {max(rate_min, channel)} bit/s is asked (channel {channel}), "
            f"at most {min(asked or ceiling, ceiling)} bit/s is possible on path {'/'.join(path)}",
            field,
        )
    deadline = MAX_TIME_US if request.deadline_us is None else request.deadline_us
    if request.volume_bytes is not None:
        return Task(path, request.volume_bytes * _BITS_PER_BYTE, rate_max, rate_min, channel, slot, deadline)
    assert request.duration_us is not None
    return Task(path, 0, rate_max, rate_min, channel, slot, deadline, round_up(request.duration_us, slot))


def _unknown_ends(request: Request, network: Network) -> Refusal | None:
    if request.source not in network.nodes:
        return Refusal("no_path", f"no link of the network touches {request.source!r}", "source")
    if request.destination not in network.nodes:
        return Refusal("no_path", f"no link of the network touches {request.destination!r}", "destination")
    return None


def _broken_path(path: tuple[str, ...], request: Request, network: Network) -> Refusal | None:
    unknown = [link_id for link_id in path if link_id not in network.links]
    if unknown:
        return Refusal("no_path", f"there is no link {unknown[0]!r}; leave path out to let the planner choose", "path")
    if not is_connected(path, network.links, request.source, request.destination):
        detail = f"{'/'.join(path)} does not lead from {request.source!r} to {request.destination!r} without a loop"
        return Refusal("no_path", f"{detail}; leave path out to let the planner choose", "path")
    return None


def _nothing_carries(request: Request, network: Network, min_bps: int) -> Refusal:
    """No path is left: there is none at all, none can ever carry the rate, or none does in this window."""
    route = network.route(request.source, request.destination)
    if route is None:
        return Refusal("no_path", f"no path leads from {request.source!r} to {request.destination!r}", "destination")
    never = _task(request, route)
    if isinstance(never, Refusal):
        return never
    until = "" if request.deadline_us is None else f" and the deadline {format_time(request.deadline_us)}"
    detail = f"no path from {request.source!r} to {request.destination!r} carries {min_bps} bit/s"
    field = "rate_min_bps" if request.rate_min_bps else "not_before" if request.deadline_us is None else "deadline"
    return Refusal("infeasible", f"{detail} at any time after {format_time(request.not_before_us)}{until}", field)
