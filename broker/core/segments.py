# SPDX-License-Identifier: Apache-2.0
"""Rows of TRC vectors: all that a client needs to read a plan. This module does not depend on calendars."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

Rows = Sequence[tuple[int, int, int]]  # (begin_us, end_us, rate_bps), ordered by time, without overlap


class Segment(NamedTuple):
    """One row of a TRC vector: `rate_bps` of payload on [begin, end) over the links of `path`."""

    begin_us: int
    end_us: int
    rate_bps: int
    path: tuple[str, ...]

    @property
    def microbits(self) -> int:
        """The volume of the segment: bit/s x microseconds."""
        return self.rate_bps * (self.end_us - self.begin_us)


def coalesce(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """The same rates in the fewest rows: adjacent rows of one path with equal rate are merged. Ordered by begin, then path."""
    rows: list[Segment] = []
    last: dict[tuple[str, ...], int] = {}  # index in `rows` of the newest row of each path
    for segment in segments:
        index = last.get(segment.path)
        if index is not None and rows[index].end_us == segment.begin_us and rows[index].rate_bps == segment.rate_bps:
            rows[index] = rows[index]._replace(end_us=segment.end_us)
        else:
            last[segment.path] = len(rows)
            rows.append(segment)
    return tuple(rows)


def total_rates(segments: Sequence[Segment]) -> list[tuple[int, int, int]]:
    """Rows (begin, end, rate) of the sum over all paths; a plan on one path at a time is unchanged."""
    if all(earlier.end_us <= later.begin_us for earlier, later in pairwise(segments)):
        return [segment[:3] for segment in segments]
    changes: dict[int, int] = defaultdict(int)
    for begin, end, rate, _ in segments:
        changes[begin] += rate
        changes[end] -= rate
    rows: list[tuple[int, int, int]] = []
    level = 0
    for begin, end in pairwise(sorted(changes)):
        level += changes[begin]
        if rows and rows[-1][1] == begin and rows[-1][2] == level:
            rows[-1] = (rows[-1][0], end, level)
        elif level:
            rows.append((begin, end, level))
    return rows
