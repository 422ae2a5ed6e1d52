# SPDX-License-Identifier: Apache-2.0
"""capacity(t) of a link: its base rate, steps of available capacity, and windows that reduce it temporarily."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from operator import itemgetter
from typing import NamedTuple

from broker.core.calendar import DISTANT_PAST_US, Step


class Window(NamedTuple):
    """On [begin, end) no more than `bps` payload may be used: maintenance, an outage (0), background traffic."""

    begin_us: int
    end_us: int
    bps: int


def capacity_steps(base_bps: int, available: Sequence[Step] = (), windows: Iterable[Window] = ()) -> list[Step]:
    """Minimal steps of capacity(t), beginning in the distant past.

    Before the first step of `available` (sorted by time), `base_bps` holds; the last step holds forever. Windows only lower the
    capacity; where several overlap, the lowest counts.
    """
    opening = sorted(windows)
    instants = {begin for begin, _ in available}.union(*((window.begin_us, window.end_us) for window in opening))
    steps: list[Step] = [(DISTANT_PAST_US, base_bps)]
    base, taken, opened = base_bps, 0, 0
    lowest: list[
        tuple[int, int]
    ] = []  # heap of (bps, end) of the windows that have begun; a window that is over is removed when it reaches the top
    for instant in sorted(instants):
        while taken < len(available) and available[taken][0] <= instant:
            base = available[taken][1]
            taken += 1
        while opened < len(opening) and opening[opened].begin_us <= instant:
            heappush(lowest, (opening[opened].bps, opening[opened].end_us))
            opened += 1
        while lowest and lowest[0][1] <= instant:
            heappop(lowest)
        level = min(base, lowest[0][0]) if lowest else base
        if level != steps[-1][1]:
            steps.append((instant, level))
    return steps


def rises(before: Sequence[Step], after: Sequence[Step], from_us: int) -> bool:
    """True if capacity `after` exceeds `before` at any instant from `from_us` on. No steps mean no capacity."""
    if tuple(before) == tuple(after):
        return False
    instants = {from_us, *(begin for begin, _ in (*before, *after) if begin > from_us)}
    return any(_level(after, instant) > _level(before, instant) for instant in instants)


def _level(steps: Sequence[Step], instant_us: int) -> int:
    index = bisect_right(steps, instant_us, key=itemgetter(0)) - 1
    return steps[index][1] if index >= 0 else 0
