# SPDX-License-Identifier: Apache-2.0
"""A plan is a TRC vector: rows (begin, end, rate) over a path. `verify` checks any plan, whoever made it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import lcm
from typing import NamedTuple

from broker.core.calendar import Calendar
from broker.core.network import Link, is_connected
from broker.core.request import Request
from broker.core.units import MICROBITS_PER_BYTE


class Segment(NamedTuple):
    """One row of a TRC vector: `rate_bps` of payload on [begin, end) over the links of `path`."""

    begin_us: int
    end_us: int
    rate_bps: int
    path: tuple[str, ...]

    @property
    def microbits(self) -> int:
        return self.rate_bps * (self.end_us - self.begin_us)


def coalesced(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """The same rates in as few rows as possible: rows that touch, with equal rate and path, become one."""
    rows: list[Segment] = []
    begin = end = rate = 0
    path: tuple[str, ...] | None = None
    for segment in segments:
        if segment[0] == end and segment[2] == rate and segment[3] == path:
            end = segment[1]
            continue
        if path is not None:
            rows.append(Segment(begin, end, rate, path))
        begin, end, rate, path = segment
    if path is not None:
        rows.append(Segment(begin, end, rate, path))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a planner answers: segments in order of time, at least one."""

    segments: tuple[Segment, ...]

    @property
    def start_us(self) -> int:
        return self.segments[0].begin_us

    @property
    def finish_us(self) -> int:
        return max(segment.end_us for segment in self.segments)

    @property
    def volume_bytes(self) -> int:
        return sum(segment.microbits for segment in self.segments) // MICROBITS_PER_BYTE


class PlanRejected(Exception):
    """A plan broke a rule. It is a fault of the planner, never of the request."""


def verify(request: Request, plan: Plan, links: Mapping[str, Link], calendars: Mapping[str, Calendar]) -> None:
    """Raise PlanRejected unless `plan` does exactly what `request` asks and fits into the free capacity.

    Checks, written without the planners' code: order, times, path, rates and channels, slots, gamma, and the volume (neither less
    than asked nor more than the last slot's rounding) or the holding time. Segments follow one another, so each meets gamma alone.
    """
    for problem in _faults(request, plan, links, calendars):
        raise PlanRejected(f"request {request.id}: {problem}")


def _faults(request: Request, plan: Plan, links: Mapping[str, Link], calendars: Mapping[str, Calendar]) -> Iterator[str]:
    if not plan.segments:
        yield "no segments"
        return
    previous_end = request.not_before_us
    for segment in plan.segments:
        if segment.begin_us >= segment.end_us:
            yield f"empty segment [{segment.begin_us}, {segment.end_us})"
        if segment.begin_us < previous_end:
            yield f"segment begins at {segment.begin_us}, before {previous_end}"
        yield from _rate_faults(request, segment.rate_bps)
        if not is_connected(segment.path, links, request.source, request.destination):
            yield f"path {segment.path} does not lead from {request.source} to {request.destination}"
            return
        for link_id in segment.path:
            yield from _link_faults(segment, links[link_id], calendars[link_id])
        previous_end = segment.end_us
    if request.deadline_us is not None and previous_end > request.deadline_us:
        yield f"ends at {previous_end}, after the deadline {request.deadline_us}"
    yield from _sum_faults(request, plan, links)


def _rate_faults(request: Request, rate: int) -> Iterator[str]:
    if rate <= 0:
        yield f"rate {rate} is not positive"
    if request.rate_max_bps is not None and rate > request.rate_max_bps:
        yield f"rate {rate} above rate_max_bps {request.rate_max_bps}"
    if request.rate_min_bps is not None and rate < request.rate_min_bps:
        yield f"rate {rate} below rate_min_bps {request.rate_min_bps}"


def _link_faults(segment: Segment, link: Link, calendar: Calendar) -> Iterator[str]:
    begin, end, rate, _ = segment
    if link.channel_bps is not None and rate % link.channel_bps:
        yield f"rate {rate} is not a multiple of {link.channel_bps} (channel of {link.id})"
    if begin % link.slot_us or end % link.slot_us:
        yield f"[{begin}, {end}) is off the {link.slot_us} us slots of {link.id}"
    if calendar.lowest(begin, end) < rate:
        yield f"[{begin}, {end}) books {rate} bit/s on {link.id}, which is not free"


def _sum_faults(request: Request, plan: Plan, links: Mapping[str, Link]) -> Iterator[str]:
    """What only the segments together can do wrong: the volume, or the holding time of class 2 (section 5 of the VBLS paper)."""
    last = plan.segments[-1]
    grain = lcm(*(links[link_id].slot_us for link_id in last.path))
    if request.volume_bytes is not None:
        carried = sum(segment.microbits for segment in plan.segments)
        asked = request.volume_bytes * MICROBITS_PER_BYTE
        if carried < asked:
            yield f"carries {carried} microbits, {asked} are asked"
        if carried - last.rate_bps * grain >= asked:
            yield f"carries {carried} microbits where {asked} are asked: it would end a slot earlier"
    if request.duration_us is not None:
        if any(earlier.end_us != later.begin_us for earlier, later in pairwise(plan.segments)):
            yield "pauses within the holding time"
        if not 0 <= plan.finish_us - plan.start_us - request.duration_us < grain:
            yield f"holds for {plan.finish_us - plan.start_us} us, {request.duration_us} us are asked"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no plan. `code`: no_path | infeasible | unsupported (this planner does not take such requests)."""

    code: str
    detail: str
    field: str | None = None
