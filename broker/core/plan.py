# SPDX-License-Identifier: Apache-2.0
"""A plan is a TRC vector: rows (begin, end, rate) over a path. `verify` checks a plan from any planner."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import lcm

from broker.core.calendar import Calendar
from broker.core.network import Link, is_connected
from broker.core.request import Request
from broker.core.segments import Rows, Segment, total_rates
from broker.core.units import MICROBITS_PER_BYTE


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer of a planner: at least one segment, ordered by begin. Overlapping segments take different paths (split transfer)."""

    segments: tuple[Segment, ...]

    @property
    def start_us(self) -> int:
        """Begin of the first segment."""
        return self.segments[0].begin_us

    @property
    def finish_us(self) -> int:
        """End of the last segment."""
        segments = self.segments
        return segments[0].end_us if len(segments) == 1 else max([segment.end_us for segment in segments])

    @property
    def volume_bytes(self) -> int:
        """The volume that the segments carry, in whole bytes."""
        return sum(segment.microbits for segment in self.segments) // MICROBITS_PER_BYTE


class PlanRejected(Exception):
    """A plan broke a rule. This is an error of the planner, never of the request."""


def verify(request: Request, plan: Plan, links: Mapping[str, Link], calendars: Mapping[str, Calendar]) -> None:
    """Raise PlanRejected unless `plan` does exactly what `request` asks and fits into the free capacity.

    The checks share no code with the planners: order, times, paths, rates and channels, slots, gamma, the volume (neither less than
    requested nor more than one slot's rounding) or the holding time, and the limits on reprogramming.
    """
    for problem in _faults(request, plan, links, calendars):
        raise PlanRejected(f"request {request.id}: {problem}")


def _faults(request: Request, plan: Plan, links: Mapping[str, Link], calendars: Mapping[str, Calendar]) -> Iterator[str]:
    if not plan.segments:
        yield "no segments"
        return
    earliest = request.not_before_us
    for segment in plan.segments:
        if segment.begin_us >= segment.end_us:
            yield f"empty segment [{segment.begin_us}, {segment.end_us})"
        if segment.begin_us < earliest:
            yield f"segment begins at {segment.begin_us}, before {earliest}"
        # Segments may overlap only if a split over several paths was requested; they are ordered by begin in any case.
        earliest = segment.begin_us if request.options.split else segment.end_us
        if segment.rate_bps <= 0:
            yield f"rate {segment.rate_bps} is not positive"
        if not is_connected(segment.path, links, request.source, request.destination):
            yield f"path {segment.path} does not lead from {request.source} to {request.destination}"
            return
        if request.options.path is not None and segment.path != request.options.path:
            yield f"path {segment.path} is not the one that was asked for"
        for link_id in segment.path:
            yield from _link_faults(segment, links[link_id], calendars[link_id])
    if request.deadline_us is not None and plan.finish_us > request.deadline_us:
        yield f"ends at {plan.finish_us}, after the deadline {request.deadline_us}"
    rows = total_rates(plan.segments)
    for _, _, rate in rows:
        yield from _rate_faults(request, rate)
    if request.options.split:
        yield from _split_faults(plan, calendars)
    yield from _sum_faults(request, plan, rows, links)
    yield from _programming_faults(request, rows)


def _rate_faults(request: Request, rate: int) -> Iterator[str]:
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


def _split_faults(plan: Plan, calendars: Mapping[str, Calendar]) -> Iterator[str]:
    """Faults of the summed rates of parallel segments on a shared link."""
    shared: dict[str, list[Segment]] = defaultdict(list)
    for segment in plan.segments:
        for link_id in segment.path:
            shared[link_id].append(segment)
    for link_id, segments in shared.items():
        for begin, end, rate in total_rates(segments):
            if calendars[link_id].lowest(begin, end) < rate:
                yield f"[{begin}, {end}) books {rate} bit/s on {link_id} over several paths, which is not free"


def _sum_faults(request: Request, plan: Plan, rows: Rows, links: Mapping[str, Link]) -> Iterator[str]:
    """Faults that only the sum of the segments shows: the volume, or the holding time of class 2 (section 5 of the VBLS paper)."""
    grain = max([lcm(*[links[link_id].slot_us for link_id in segment.path]) for segment in plan.segments])
    if request.volume_bytes is not None:
        carried = sum([segment.microbits for segment in plan.segments])
        asked = request.volume_bytes * MICROBITS_PER_BYTE
        if carried < asked:
            yield f"carries {carried} microbits, {asked} are asked"
        # Planners that plan forwards round in the last slot; planners that plan backwards (as late as possible) in the first one.
        if carried - max(rows[0][2], rows[-1][2]) * grain >= asked:
            yield f"carries {carried} microbits where {asked} are asked: it would end a slot earlier"
    if request.duration_us is not None:
        if any(earlier[1] != later[0] for earlier, later in pairwise(rows)):
            yield "pauses within the holding time"
        if not 0 <= plan.finish_us - plan.start_us - request.duration_us < grain:
            yield f"holds for {plan.finish_us - plan.start_us} us, {request.duration_us} us are asked"


def _programming_faults(request: Request, rows: Rows) -> Iterator[str]:
    options = request.options
    if options.shortest_segment_us is None and options.most_segments is None:
        return
    # Adjacent rows with one rate count as one, because the sender is not reprogrammed between them.
    programmed: list[tuple[int, int]] = []
    rate_before = 0
    for begin, end, rate in rows:
        if programmed and programmed[-1][1] == begin and rate == rate_before:
            programmed[-1] = (programmed[-1][0], end)
        else:
            programmed.append((begin, end))
        rate_before = rate
    if options.most_segments is not None and len(programmed) > options.most_segments:
        yield f"has {len(programmed)} segments, at most {options.most_segments} are asked"
    for begin, end in programmed[:-1]:
        if options.shortest_segment_us is not None and end - begin < options.shortest_segment_us:
            yield f"segment [{begin}, {end}) is shorter than {options.shortest_segment_us} us"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no plan. `code`: no_path | infeasible | unsupported (this planner does not accept such requests)."""

    code: str
    detail: str
    field: str | None = None
