# SPDX-License-Identifier: Apache-2.0
"""The one rate of a fixed-bandwidth plan is the height of a rectangle under gamma(t): which heights will do?"""

import numpy as np

from broker.core.scans import Int64Array, compiled
from broker.core.units import FOREVER_US, MAX_RATE_BPS

_FOREVER = FOREVER_US
_MILLION = 1_000_000
_MOST_RATE = MAX_RATE_BPS


@compiled
def rate_needed(bits: int, duration: int) -> int:
    """bit/s, rounded up, for a volume in `duration` microseconds; for ever when it is more than 1 Pb/s."""
    rate, rest = bits // duration, bits % duration
    if rate > _MOST_RATE // _MILLION:
        return _FOREVER
    for _ in range(6):  # digit by digit, because a remainder times a million would not fit
        rest *= 10
        rate = rate * 10 + rest // duration
        rest %= duration
    return rate + (1 if rest > 0 else 0)


@compiled
def least_height(rates: Int64Array, bits: int, least: int, channel: int) -> int:
    """The least rate, a multiple of `channel` and at least `least`, that is free for as long as `bits` take at it; -1 when none is.

    `rates`: rows (begin, end, rate) without gaps, rates in whole channels. A rate that will do fits into a rectangle that cannot be made
    wider; of such there is at most one a row, and one pass with a stack finds them all.
    """
    found = -1
    begins, heights = np.empty(len(rates), np.int64), np.empty(len(rates), np.int64)
    depth = 0
    for row in range(len(rates) + 1):
        height = rates[row, 2] if row < len(rates) else 0
        begin = rates[row, 0] if row < len(rates) else rates[row - 1, 1]
        reach = begin
        while depth > 0 and heights[depth - 1] >= height:
            depth -= 1
            reach = begins[depth]
            if heights[depth] == 0:
                continue
            needed = max(rate_needed(bits, begin - reach), least)
            if needed <= heights[depth]:
                needed = -(-needed // channel) * channel
                if needed <= heights[depth] and (found < 0 or needed < found):
                    found = needed
        begins[depth], heights[depth] = reach, height
        depth += 1
    return found
