# SPDX-License-Identifier: Apache-2.0
"""Prediction of the finish of an active transfer, from its plan and the share of the planned rate that it has recently reached.

The model assumes that the transfer continues to reach a constant share of the planned rate. The share is the median of the last
reports; the spread of the answer comes from their first and last decile. After the end of the plan the mean planned rate is assumed
to continue, because the rest is booked anew.
"""

from collections.abc import Sequence
from typing import NamedTuple

from broker.core.units import MICROBITS_PER_BYTE

MIN_REPORTS = 3  # with fewer reports the shares are not meaningful
_MIN_SHARE = 0.001


class Step(NamedTuple):
    """A row of a plan: `rate_bps` on [begin, end)."""

    begin_us: int
    end_us: int
    rate_bps: int


class Finish(NamedTuple):
    """The predicted finish of a transfer, at the rates that it has reached so far."""

    earliest_us: int
    expected_us: int
    latest_us: int
    share: float  # of the planned rate; the basis of `expected_us`


def finish(plan: Sequence[Step], now_us: int, left_bytes: int, shares: Sequence[float]) -> Finish | None:
    """The predicted finish. `plan`: ordered by time, without overlap. None if the transfer does not progress, or has no plan."""
    ordered = sorted(min(share, 1.0) for share in shares) if len(shares) >= MIN_REPORTS else [1.0]
    slow, middle, fast = (ordered[round(part * (len(ordered) - 1))] for part in (0.1, 0.5, 0.9))
    times = [_at(plan, now_us, left_bytes, share) for share in (fast, middle, slow)]
    earliest, expected, latest = times
    if earliest is None or expected is None:
        return None
    return Finish(earliest, expected, expected if latest is None else latest, middle)


def _at(plan: Sequence[Step], now_us: int, left_bytes: int, share: float) -> int | None:
    if left_bytes <= 0:
        return now_us
    if share < _MIN_SHARE or not plan:
        return None
    left = left_bytes * MICROBITS_PER_BYTE / share
    end_us = now_us
    for begin, end, rate in plan:
        start = max(begin, now_us)
        if end <= start or rate <= 0:
            continue
        if rate * (end - start) >= left:
            return start + round(left / rate)
        left -= rate * (end - start)
        end_us = end
    carried = sum(rate * (end - begin) for begin, end, rate in plan)
    return end_us + round(left * sum(end - begin for begin, end, _ in plan) / carried) if carried else None
