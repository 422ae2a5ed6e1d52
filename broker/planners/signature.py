# SPDX-License-Identifier: Apache-2.0
"""The common interface of all planners, and the candidate paths, rates and time limits that they share."""

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
Spent = Callable[[], bool]  # has a search used up its budget? The caller that reads the clock provides this

_BITS_PER_BYTE = MICROBITS_PER_BYTE // US_PER_S
# How many rates of links a counter-offer search passes, beginning with the nearest to the request: most networks have few.
MAX_STRETCHES = 64
_MAX_RETURNS = 16  # links that return one after the other within a request's window; each adds candidates


def never() -> bool:
    """For a search without a budget."""
    return False


class OutOfBudget(Exception):
    """A search has used up its budget."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of a planner that its callers must know besides its plans (ADR 0030). GET /v1/planners shows all of them.

    - `books`: its plans can be booked; otherwise it only predicts and compares.
    - `joint`: it takes the requests of a batch together, whatever their order (`JointPlanner`).
    - `eager`: its goal is an early finish, so waiting transfers are replanned whenever capacity is freed.
    - `late`: its goal is a late start, so a plan never moves earlier, not even behind a predecessor that has ended.
    - `fixed_rate`: it makes or tries plans of one constant rate, and avoids links that temporarily carry less.
    - `takes_turns`: its transfers of one batch follow one another, so that where two meet a start signal chains them.
    - `time_limit`: its search may take any time, so it gets a limit (`TimeLimited`) and runs where no caller waits.
    """

    books: bool = True
    joint: bool = False
    eager: bool = False
    late: bool = False
    fixed_rate: bool = False
    takes_turns: bool = False
    time_limit: bool = False


class Planner(Protocol):
    """A list planner: it takes one request after the other, each on the capacity that the earlier ones left.

    `plan` returns a Plan that `verify` accepts, or a Refusal; `largest_volume` returns how much would fit by the deadline.

    With `fewest_rows`, adjacent rows with one rate are merged, because no reprogramming is needed there. Otherwise rows are as in
    the papers.
    """

    name: str
    traits: Traits

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:
        """A plan that `core.plan.verify` accepts, or a refusal. `fewest_rows`: merge rows where that is possible."""

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        """Bytes (at most the requested volume) that this planner could carry by `request.deadline_us`, which must be set."""
        ...


class JointPlanner(Planner, Protocol):
    """A planner that takes requests together, whatever their order; its `plan` is `plan_together` of a single request."""

    def plan_together(self, requests: Sequence[Request], network: Network, calendars: Calendars) -> Sequence[Plan | Refusal]:
        """One answer per request, in the order of `requests`. All plans fit side by side: booked in that order, each passes `verify`."""
        ...


class TimeLimited(Planner, Protocol):
    """A planner whose search may take any time."""

    def within(self, time_limit_s: float, spent: Spent) -> Planner:
        """The same planner with at most `time_limit_s` for its search, which ends early when `spent` returns True; 0: without a search."""
        ...


def is_joint(planner: Planner) -> TypeGuard[JointPlanner]:
    """True if the planner takes requests together."""
    return planner.traits.joint


def is_time_limited(planner: Planner) -> TypeGuard[TimeLimited]:
    """True if the planner needs a time limit for its search."""
    return planner.traits.time_limit


class Task(NamedTuple):
    """A request on one path, reduced to the integers that the scans take."""

    path: tuple[str, ...]
    bits: int  # 0 for class 2
    rate_max: int  # whole channels
    rate_min: int  # 0: none requested
    channel: int
    slot: int
    deadline_us: int
    duration_us: int = 0  # class 2: the holding time in whole slots


def candidates(request: Request, network: Network, min_bps: int = 1) -> list[Task] | Refusal:
    """The paths that a planner may choose from, the shortest first, or a refusal. Accepts both classes of requests.

    `min_bps` is the rate below which the planner cannot use a path (`rate_min_bps` counts in any case): links that carry less
    throughout the request's window are avoided. Links that carry less only temporarily are avoided in additional candidates:
    otherwise a link that returns next week would hide the longer path that is free today.
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
    """The next lower rate at which links come or go: candidates are the same for all rates above it, up to `min_bps`. 0: down to 1."""
    index = bisect_left(network.rates, min_bps)
    return max(network.rates[index - 1], 0) if index else 0


def task(request: Request, network: Network) -> Task | Refusal:
    """The shortest candidate of a volume request, for planners that use one path."""
    if request.volume_bytes is None:
        return Refusal("unsupported", "this planner takes volumes, not durations", "duration_s")
    found = candidates(request, network)
    return found if isinstance(found, Refusal) else found[0]


def candidate_routes(request: Request, network: Network, min_bps: int) -> Sequence[Route]:
    """The paths of `candidates` if the request names none. The desk locks their links when it books."""
    options, begin = request.options, request.not_before_us
    down = network.below(min_bps, begin, begin + 1)
    if not down:
        return network.routes(request.source, request.destination, options.paths)
    end = MAX_TIME_US if request.deadline_us is None else request.deadline_us
    returns = {link_id: network.returns_us(link_id, min_bps, begin) for link_id in down}
    instants = sorted({instant for instant in returns.values() if instant < end})[: _MAX_RETURNS - 1]
    routes: dict[Route, None] = {}
    # The whole window first: its paths are the shortest. Then the windows up to each return, the latest first.
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
    """The refusal without a path: there is none at all, none can ever carry the rate, or none can in this window."""
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
