# SPDX-License-Identifier: Apache-2.0
"""From a solver's rates to integer plans that `verify` accepts.

Rates are rounded up to whole bit/s (or channels) where the links allow it, and down elsewhere; missing volume is refilled from the
capacity that remains free in the window, and each plan is cut at the first slot in which its volume is complete. A request with
constraints that a linear program does not cover (a minimum rate, limits on reprogramming, slots coarser than the intervals) keeps
its rounded plan if that happens to be valid; otherwise a list planner plans it beside the others.

Several paths at once: a request that allows it (`split`) uses them as in the program's solution. Other requests were restricted to
one path in each interval (`paths`) before their rates came here, so they may change paths over time but never use two at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.plan import Plan, PlanRejected, Refusal, verify
from broker.core.request import Request
from broker.core.segments import Segment, coalesce, total_rates
from broker.core.units import MAX_RATE_BPS, MICROBITS_PER_BYTE, round_down, round_up
from broker.planners.optimal.expansion import Expansion, Lane
from broker.planners.optimal.lists import alone
from broker.planners.optimal.sheets import Capped, Sheet, max_booked_on, room_at
from broker.planners.optimal.solver import Floats, Ints

_DUST = 1e-7  # a part of a volume too small for its own row
_NOISE = 1e-6  # possible float error as part of a channel; an unneeded bit/s costs nothing, a channel does
_FALLBACKS = ("spaghetti", "vbls", "alap", "fbls")
_RELAXED = (Fraction(1), Fraction(101, 100), Fraction(105, 100), Fraction(5, 4), Fraction(2))


def project(expansion: Expansion, rates: Floats) -> Floats:
    """Nothing negative, no tiny parts, and each request's volume carried exactly (within float precision)."""
    seconds = expansion.seconds[expansion.interval_of]
    volumes = expansion.volumes
    rates = np.where(rates * seconds > _DUST * volumes[expansion.request_of], rates, 0.0)
    carried = np.bincount(expansion.request_of, weights=rates * seconds, minlength=len(volumes))
    scale: Floats = np.divide(volumes, carried, out=np.zeros_like(carried), where=carried > 0)
    return rates * scale[expansion.request_of]


def within_limits(expansion: Expansion, rates: Floats) -> Floats:
    """The same rates, scaled down cell by cell until no link exceeds its free capacity and no request Rmax."""
    load = np.zeros(expansion.free_low.shape)
    np.add.at(load, (expansion.entry_link, expansion.interval_of[expansion.entry_cell]), rates[expansion.entry_cell])
    fit = np.minimum(np.divide(expansion.free_low, load, out=np.ones_like(load), where=load > 0), 1.0)
    factor = np.ones(expansion.cells)
    np.minimum.at(factor, expansion.entry_cell, fit[expansion.entry_link, expansion.interval_of[expansion.entry_cell]])
    n = len(expansion.seconds)
    pair = expansion.request_of * n + expansion.interval_of
    total = np.bincount(pair, weights=rates)[pair] if len(pair) else rates
    caps = expansion.rate_caps[expansion.request_of]
    return rates * np.minimum(factor, np.divide(caps, total, out=np.ones_like(rates), where=total > caps))


def integer_plans(
    expansion: Expansion, rates: Floats, network: Network, calendars: Mapping[str, Calendar], share: Fraction
) -> list[Plan | Refusal]:
    """A plan for each request of the expansion, or a refusal. Repairs stay below `share` as long as possible."""
    rounding = _Rounding(expansion, network, Sheet(calendars), share)
    rounding.take(_segments(expansion, _whole_rates(expansion, within_limits(expansion, rates))))
    rounding.refill()
    rounding.check()
    rounding.place_the_rest()
    return [rounding.answers[i] for i in range(len(expansion.requests))]


class _Rounding:
    """The plans of one batch during rounding. Every row in `rows` or in `answers` is booked on the sheet."""

    def __init__(self, expansion: Expansion, network: Network, sheet: Sheet, share: Fraction) -> None:
        self.expansion, self.network, self.sheet, self.share = expansion, network, sheet, share
        self.lanes: dict[int, list[Lane]] = defaultdict(list)
        for lane in expansion.lanes:
            self.lanes[lane.request].append(lane)
        self.answers: dict[int, Plan | Refusal] = {}
        self.rows: dict[int, list[Segment]] = {}  # of requests whose volume is not complete yet

    def take(self, rows: Mapping[int, list[Segment]]) -> None:
        """Make plans of all rows that carry enough volume, cut where it is complete; the others wait for the capacity left over."""
        for own in rows.values():
            self.sheet.book(Plan(tuple(own)))
        for i, request in enumerate(self.expansion.requests):
            own = rows.get(i, [])
            kept = cut(own, request, self.lanes[i])
            if kept is None:
                self.rows[i] = own
            else:
                self._assign(i, own, kept)

    def refill(self) -> None:
        """Complete volumes from the free capacity in the window: below the common share, and above it only if necessary."""
        for i in self._by_deadline(self.rows):
            request, own, lanes = self.expansion.requests[i], self.rows[i], self.lanes[i]
            for share in (self.share, Fraction(1)):
                limits = {
                    link_id: max_booked_on(self.network.links[link_id], share) for lane in lanes for link_id in lane.task.path
                }
                kept = cut(_refilled(request, own, lanes, self.expansion.windows[i], self.sheet, limits), request, lanes)
                if kept is not None:
                    self._assign(i, own, kept)
                    del self.rows[i]
                    break
            else:
                _rebook(self.sheet, own, ())
                self.rows[i] = []

    def check(self) -> None:
        """Of requests with constraints that the program does not cover, keep the plans that happen to be valid."""
        for i, answer in list(self.answers.items()):
            if isinstance(answer, Plan) and _asks_for_more(self.expansion.requests[i], self.lanes[i]):
                self.sheet.release(answer)
                if _is_right(self.expansion.requests[i], answer, self.network, self.sheet):
                    self.sheet.book(answer)
                else:
                    self.rows[i] = []

    def place_the_rest(self) -> None:
        """Plan the remaining requests with a list planner beside all others, below the common share or slightly above it."""
        begin, end = int(self.expansion.times[0]), int(self.expansion.times[-1])
        for i in self._by_deadline(self.rows):
            request = self.expansion.requests[i]
            for relaxed in _RELAXED:
                share = min(self.share * relaxed, Fraction(1))
                room = Capped(self.sheet, self.network, share, begin, end)
                answer = alone(request, self.network, room, _FALLBACKS)
                if isinstance(answer, Plan):
                    break
            else:
                answer = alone(request, self.network, self.sheet, _FALLBACKS)
            self.answers[i] = answer
            if isinstance(answer, Plan):
                self.sheet.book(answer)

    def _by_deadline(self, indices: Iterable[int]) -> list[int]:
        return sorted(indices, key=lambda i: (self.expansion.windows[i][1], i))

    def _assign(self, i: int, own: Sequence[Segment], kept: tuple[Segment, ...]) -> None:
        _rebook(self.sheet, own, kept)
        self.answers[i] = Plan(kept)


def fewer_rows(
    requests: Sequence[Request], answers: Sequence[Plan | Refusal], network: Network, calendars: Mapping[str, Calendar],
    share: Fraction, begin_us: int, end_us: int,
) -> list[Plan | Refusal]:  # fmt: skip
    """The same requests served below the same share, with simpler plans where possible, so that agents are reprogrammed less often."""
    sheet = Sheet(calendars)
    for answer in answers:
        if isinstance(answer, Plan):
            sheet.book(answer)
    room = Capped(sheet, network, share, begin_us, end_us)
    out = list(answers)
    for i, answer in enumerate(answers):
        request = requests[i]
        if isinstance(answer, Refusal) or len(answer.segments) == 1 or request.deadline_us is None or request.volume_bytes is None:
            continue
        room.release(answer)
        simpler = alone(request, network, room, ("spaghetti", "vbls"))
        if isinstance(simpler, Plan) and len(simpler.segments) < len(answer.segments):
            out[i] = simpler
        room.book(out[i])  # type: ignore[arg-type]  # a plan was there, and another one is
    return out


def cut(segments: Sequence[Segment], request: Request, lanes: Sequence[Lane]) -> tuple[Segment, ...] | None:
    """The segments up to the first slot in which the volume is complete; None if it never is."""
    if not segments or request.volume_bytes is None:
        return None
    slot = lcm(*(lane.task.slot for lane in lanes))
    missing = request.volume_bytes * MICROBITS_PER_BYTE
    for begin, end, rate in total_rates(segments):
        if rate * (end - begin) < missing:
            missing -= rate * (end - begin)
            continue
        finish = min(round_up(begin - (-missing // rate), slot), end)
        return coalesce([s._replace(end_us=min(s.end_us, finish)) for s in segments if s.begin_us < finish])
    return None


def _whole_rates(expansion: Expansion, rates: Floats) -> Ints:
    """Rates in whole channels: rounded up, then lowered in the largest cells of links and intervals that this overfills."""
    channel = np.array([lane.task.channel for lane in expansion.lanes], np.int64)[expansion.lane_of]
    ceiling = np.array([lane.task.rate_max for lane in expansion.lanes], np.int64)[expansion.lane_of]
    whole: Ints = np.minimum(np.ceil(rates / channel - _NOISE * (channel > 1)).astype(np.int64) * channel, ceiling)
    interval = expansion.interval_of[expansion.entry_cell]
    load = np.zeros(expansion.free_low.shape, np.int64)
    np.add.at(load, (expansion.entry_link, interval), whole[expansion.entry_cell])
    for link, at in np.argwhere(load > expansion.free_low).tolist():
        cells = expansion.entry_cell[(expansion.entry_link == link) & (interval == at)]
        _lower(whole, cells, channel, int(whole[cells].sum()) - int(expansion.free_low[link, at]))
    n = len(expansion.seconds)
    pair = expansion.request_of * n + expansion.interval_of
    caps = expansion.rate_caps
    total = np.zeros(len(caps) * n, np.int64)
    np.add.at(total, pair, whole)
    for over in np.flatnonzero(total > np.repeat(caps, n)).tolist():
        _lower(whole, np.flatnonzero(pair == over), channel, int(total[over]) - int(caps[over // n]))
    return whole


def _lower(whole: Ints, cells: Ints, channel: Ints, excess: int) -> None:
    """Take `excess` bit/s from these cells: first one channel each in turn, then the rest from the largest."""
    cells = cells[whole[cells] > 0]
    for cell in cells[np.argsort(-whole[cells], kind="stable")].tolist():
        if excess <= 0:
            return
        step = int(channel[cell])
        whole[cell] -= step
        excess -= step
    for cell in cells[np.argsort(-whole[cells], kind="stable")].tolist():
        if excess <= 0:
            return
        step = min(round_up(excess, int(channel[cell])), int(whole[cell]))
        whole[cell] -= step
        excess -= step


def _segments(expansion: Expansion, whole: Ints) -> dict[int, list[Segment]]:
    """Rows of each request ordered by begin, with ends on the slots of their path."""
    used = np.flatnonzero(whole > 0)
    order = used[np.lexsort((expansion.lane_of[used], expansion.interval_of[used], expansion.request_of[used]))]
    begins, ends = expansion.times[expansion.interval_of[order]], expansion.times[expansion.interval_of[order] + 1]
    found: dict[int, list[Segment]] = defaultdict(list)
    for lane_index, begin, end, rate in zip(
        expansion.lane_of[order].tolist(), begins.tolist(), ends.tolist(), whole[order].tolist(), strict=True
    ):
        lane = expansion.lanes[lane_index]
        slot = lane.task.slot
        if slot > 1:
            begin, end = round_up(begin, slot), round_down(end, slot)  # noqa: PLW2901  the same row on its slots
        if begin < end:
            found[lane.request].append(Segment(begin, end, rate, lane.task.path))
    return {i: list(coalesce(rows)) for i, rows in found.items()}


def _refilled(
    request: Request, rows: list[Segment], lanes: Sequence[Lane], window: tuple[int, int], sheet: Sheet, limits: Mapping[str, int]
) -> list[Segment]:
    """Additional rows beside `rows` (booked on the sheet), as early as possible, until the volume is complete or no capacity is left.

    `limits`: the largest total bit/s that may be booked on each link.
    """
    more: list[Segment] = []
    for lane in lanes:
        missing = (request.volume_bytes or 0) * MICROBITS_PER_BYTE - sum(s.microbits for s in rows) - sum(s.microbits for s in more)
        if missing <= 0:
            break
        for begin, end, rate in _room_beside(request, [*rows, *more], lane, window, sheet, limits):
            finish = min(end, begin + round_up(-(-missing // rate), lane.task.slot))
            # No more than fills the last slots: the next request may need the capacity that a higher rate would waste.
            rate = min(rate, round_up(-(-missing // (finish - begin)), lane.task.channel))  # noqa: PLW2901  the same room, used less
            more.append(Segment(begin, finish, rate, lane.task.path))
            for link_id in lane.task.path:
                sheet[link_id].book(begin, finish, rate)
            missing -= rate * (finish - begin)
            if missing <= 0:
                break
    for segment in more:  # the caller books the rows that it keeps
        for link_id in segment.path:
            sheet[link_id].release(*segment[:3])
    return _summed([*rows, *more])


def _room_beside(
    request: Request, rows: Sequence[Segment], lane: Lane, window: tuple[int, int], sheet: Sheet, limits: Mapping[str, int]
) -> list[tuple[int, int, int]]:
    """(begin, end, rate) still free on a lane beside the request's own rows."""
    begin_us, end_us = window
    calendars = [sheet[link_id] for link_id in lane.task.path]
    edges = [calendar.times[: calendar.n] for calendar in calendars]
    own = np.array([edge for row in rows for edge in row[:2]], np.int64)
    cuts = np.unique(np.concatenate([*edges, own, np.array([begin_us, end_us], np.int64)]))
    cuts = cuts[(cuts >= begin_us) & (cuts <= end_us)]
    starts = cuts[:-1]
    room = np.full(len(starts), MAX_RATE_BPS if request.rate_max_bps is None else request.rate_max_bps, np.int64)
    # The calendars include the request's own rows, Rmax does not.
    for begin, end, rate, path in rows:
        during = slice(int(np.searchsorted(starts, begin)), int(np.searchsorted(starts, end)))
        room[during] -= rate if path == lane.task.path or request.options.split else MAX_RATE_BPS
    for link_id, calendar in zip(lane.task.path, calendars, strict=True):
        room = np.minimum(room, room_at(calendar, starts, limits[link_id]))
    room = np.maximum(room, 0) // lane.task.channel * lane.task.channel
    slot = lane.task.slot
    found = []
    for begin, end, rate in zip(starts.tolist(), cuts[1:].tolist(), room.tolist(), strict=True):
        first, last = round_up(begin, slot), round_down(end, slot)
        if rate > 0 and first < last:
            found.append((first, last, rate))
    return found


def _summed(rows: Sequence[Segment]) -> list[Segment]:
    """Overlapping rows of one path added up; ordered by begin."""
    by_path: dict[tuple[str, ...], list[Segment]] = defaultdict(list)
    for row in sorted(rows):
        by_path[row.path].append(row)
    summed = [Segment(*row, path) for path, own in by_path.items() for row in total_rates(own)]
    return list(coalesce(sorted(summed, key=lambda s: (s.begin_us, s.path))))


def _asks_for_more(request: Request, lanes: Sequence[Lane]) -> bool:
    """True if the request has constraints that the program does not cover."""
    options = request.options
    limited = options.shortest_segment_us is not None or options.most_segments is not None
    return limited or request.rate_min_bps is not None or any(lane.task.slot > 1 or lane.task.channel > 1 for lane in lanes)


def _is_right(request: Request, plan: Plan, network: Network, sheet: Sheet) -> bool:
    try:
        verify(request, plan, network.links, sheet)
    except PlanRejected:
        return False
    return True


def _rebook(sheet: Sheet, rows: Sequence[Segment], others: Sequence[Segment]) -> None:
    if rows:
        sheet.release(Plan(tuple(rows)))
    if others:
        sheet.book(Plan(tuple(others)))
