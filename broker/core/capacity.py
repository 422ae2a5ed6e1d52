# SPDX-License-Identifier: Apache-2.0
"""capacity(t) of a link: its base rate, steps of what may be used, and windows that take some of it away for a while."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
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

    `available` (sorted by time): before its first step `base_bps` holds, the last step holds on. Windows only lower what is there;
    where several overlap, the lowest counts.
    """
    windows = list(windows)
    instants = {begin for begin, _ in available}
    for window in windows:
        instants.add(window.begin_us)
        instants.add(window.end_us)
    steps: list[Step] = [(DISTANT_PAST_US, base_bps)]
    base, taken = base_bps, 0
    for instant in sorted(instants):
        while taken < len(available) and available[taken][0] <= instant:
            base = available[taken][1]
            taken += 1
        level = min([base, *(w.bps for w in windows if w.begin_us <= instant < w.end_us)])
        if level != steps[-1][1]:
            steps.append((instant, level))
    return steps


def rises(before: Sequence[Step], after: Sequence[Step], from_us: int) -> bool:
    """Is capacity `after` above what it was `before`, at any instant from `from_us` on? Without steps there was none."""
    if tuple(before) == tuple(after):
        return False
    instants = {from_us, *(begin for begin, _ in (*before, *after) if begin > from_us)}
    return any(_level(after, instant) > _level(before, instant) for instant in instants)


def _level(steps: Sequence[Step], instant_us: int) -> int:
    index = bisect_right(steps, instant_us, key=itemgetter(0)) - 1
    return steps[index][1] if index >= 0 else 0
