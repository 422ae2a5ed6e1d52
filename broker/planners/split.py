# SPDX-License-Identifier: Apache-2.0
"""VBLS over several paths at once: `options.split`.

At every instant the candidate paths carry as much as they can together (`core.side_by_side`); Rmax and `rate_min_bps` limit the
sum. Since volume carried earlier does not hinder later volume, the finish is the earliest that these paths allow, except for the
rounding of rates: less than one bit/s or channel per path, where filling one path after the other is not optimal. It is never later
than on the best single path, because the single-path plan is kept unless the split plan beats it.

Not optimal in four respects: paths whose slots do not divide one another are not combined (the first ones count); boundaries of a
combination fall on its coarsest slot (the finer paths alone are tried too); at most `_MAX_PATHS` are combined; and limits on
reprogramming are kept by falling back to one path if the split plan breaks them.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from broker.core import scans
from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.profile import profiles_of_groups
from broker.core.request import Request
from broker.core.scans import Int64Array
from broker.core.segments import Rows, Segment, coalesce, total_rates
from broker.core.side_by_side import rates_side_by_side
from broker.core.units import FOREVER_US, MAX_RATE_BPS, US_PER_S, round_down, round_up
from broker.planners.along import limits_of
from broker.planners.signature import Calendars, Task, candidates

_MAX_PATHS = 16
_FIRST_ROWS = 64
_MORE_ROWS = 8


class _Paths(NamedTuple):
    """Candidate paths side by side. `groups`: links that the same paths use; `members[p, g]`: path p uses group g."""

    tasks: list[Task]
    groups: list[list[str]]
    members: NDArray[np.bool_]
    channels: Int64Array
    slot: int
    rate_max: int

    @property
    def deadline_us(self) -> int:
        return self.tasks[0].deadline_us


def find_earlier(request: Request, network: Network, calendars: Calendars, single: Plan | None) -> Plan | None:
    """The plan over several paths, if it finishes before `single`; otherwise `single`."""
    best = single
    for paths in _combinations(request, network):
        deadline = paths.deadline_us if best is None else min(paths.deadline_us, best.finish_us - 1)
        rows, _ = _rows(request, paths, calendars, deadline)
        if rows:
            plan = _plan(paths, _trimmed(request, paths, rows))
            limits = limits_of(request.options, paths.slot)
            if limits is None or all(limits.kept_by(programmed) for programmed in _programmed(plan)):
                best = plan
    return best


def max_bits(request: Request, network: Network, calendars: Calendars) -> int:
    """Whole bits, at most those of the request, that the paths together carry by the deadline."""
    if limits_of(request.options, 1) is not None:
        return 0
    carried = (
        paths.tasks[0].bits - _rows(request, paths, calendars, paths.deadline_us)[1] for paths in _combinations(request, network)
    )
    return max(carried, default=0)


def _combinations(request: Request, network: Network) -> Iterator[_Paths]:
    """The combinations of candidates to try: for each slot of the candidates, those whose slots divide it."""
    tasks = candidates(replace(request, rate_min_bps=None), network)
    if isinstance(tasks, Refusal):
        return
    together: list[Task] = []
    for task in tasks:
        if len(together) < _MAX_PATHS and all(task.slot % other.slot == 0 or other.slot % task.slot == 0 for other in together):
            together.append(task)
    for slot in sorted({task.slot for task in together}):
        aligned = [task for task in together if task.slot <= slot]
        if len(aligned) > 1:
            yield _side_by_side(request, aligned)


def _side_by_side(request: Request, tasks: list[Task]) -> _Paths:
    users: dict[str, set[int]] = {}
    for index, task in enumerate(tasks):
        for link_id in task.path:
            users.setdefault(link_id, set()).add(index)
    groups: dict[frozenset[int], list[str]] = {}
    for link_id, indices in users.items():
        groups.setdefault(frozenset(indices), []).append(link_id)
    members = np.array([[index in group for group in groups] for index in range(len(tasks))], np.bool_)
    channels = np.array([task.channel for task in tasks], np.int64)
    rate_max = min(request.rate_max_bps or MAX_RATE_BPS, sum(task.rate_max for task in tasks), MAX_RATE_BPS)
    return _Paths(tasks, list(groups.values()), members, channels, max(task.slot for task in tasks), rate_max)


def _rows(request: Request, paths: _Paths, calendars: Calendars, deadline_us: int) -> tuple[list[list[int]], int]:
    """(rows (begin, end, rate of each path) complete by the deadline, or none; bits missing)."""
    slot, task = paths.slot, paths.tasks[0]
    begin, deadline = round_up(request.not_before_us, slot), round_down(deadline_us, slot)
    duration = 0 if request.duration_us is None else min(round_up(request.duration_us, slot), FOREVER_US)
    if begin >= deadline:
        return [], task.bits
    room, missing = _FIRST_ROWS, task.bits
    for group_profiles, limit in profiles_of_groups(paths.groups, calendars, begin, deadline):
        offsets = np.cumsum([0, *(profile.n for profile in group_profiles)], dtype=np.int64)
        times = np.concatenate([profile.times[: profile.n] for profile in group_profiles])
        free = np.concatenate([profile.free[: profile.n] for profile in group_profiles])
        end = min(deadline, round_down(limit, slot))
        while True:
            out = np.empty((room, 2 + len(paths.tasks)), np.int64)
            status, count, missing = rates_side_by_side(
                times, free, offsets, paths.members, paths.channels, paths.rate_max, request.rate_min_bps or 1, begin, end, slot,
                task.bits, duration, out,
            )  # fmt: skip
            if status != scans.OUT_OF_ROOM:
                break
            room *= _MORE_ROWS
        if status == scans.FOUND:
            return out[:count].tolist(), 0
    return [], int(missing)


def _trimmed(request: Request, paths: _Paths, rows: list[list[int]]) -> list[list[int]]:
    """`rows` with the end moved to the slots of the paths used, which may be finer than the slot of the combination."""
    slot = max(task.slot for task, *rates in zip(paths.tasks, *(row[2:] for row in rows), strict=True) if any(rates))
    if slot == paths.slot:
        return rows
    if request.duration_us is not None:
        end = rows[0][0] + round_up(request.duration_us, slot)
    else:
        before = sum(sum(rates) * (stop - begin) for begin, stop, *rates in rows[:-1])
        begin, _, *rates = rows[-1]
        end = begin + round_up(-(-(paths.tasks[0].bits * US_PER_S - before) // sum(rates)), slot)
    return [[begin, min(stop, end), *rates] for begin, stop, *rates in rows if begin < end]


def _plan(paths: _Paths, rows: list[list[int]]) -> Plan:
    segments = (
        Segment(begin, end, rate, task.path)
        for begin, end, *rates in rows
        for rate, task in zip(rates, paths.tasks, strict=True)
        if rate
    )
    return Plan(coalesce(segments))


def _programmed(plan: Plan) -> Iterator[Rows]:
    """The rows of each path, and the rows of the sum: limits on reprogramming must hold for all of them."""
    for path in {segment.path for segment in plan.segments}:
        yield [segment[:3] for segment in plan.segments if segment.path == path]
    yield total_rates(plan.segments)
