# SPDX-License-Identifier: Apache-2.0
"""Compiled scans for plans of one rate: a rectangle under gamma(t), as FBLS and spaghetti book it. Arrays and rounding as in `scans`."""

import numpy as np

from broker.core.scans import FOUND, LATE, NEVER, OUT_OF_PROFILE, Int64Array, compiled, index_at, time_needed, volume_in
from broker.core.units import FOREVER_US, MAX_RATE_BPS

_FOREVER = FOREVER_US
_MILLION = 1_000_000
_MAX_RATE = MAX_RATE_BPS


@compiled
def fixed_bandwidth(
    times: Int64Array,
    free: Int64Array,
    n: int,
    start: int,
    deadline: int,
    limit: int,
    duration: int,
    rate: int,
    slot: int,
) -> tuple[int, int]:
    """FBLS (section 3.3): the earliest slot at or after `start` from which `rate` is free for `duration`. (status, begin)."""
    begin = -(-start // slot) * slot
    i = index_at(times, n, begin)
    while True:
        if begin + duration > deadline:
            return LATE, begin
        next_change = times[i + 1] if i + 1 < n else _FOREVER
        if free[i] < rate:
            i += 1
            while i < n and free[i] < rate:
                i += 1
            if i == n:
                return (NEVER if limit == _FOREVER else OUT_OF_PROFILE), begin
            begin = -(-times[i] // slot) * slot
            continue
        if next_change >= begin + duration or next_change == _FOREVER:
            if begin + duration > limit:
                return OUT_OF_PROFILE, begin
            return FOUND, begin
        i += 1


@compiled
def longest_run(times: Int64Array, free: Int64Array, n: int, start: int, end: int, rate: int, slot: int) -> int:
    """Microseconds (whole slots) of the longest stretch inside [start, end) on which `rate` is free throughout."""
    begin = -(-start // slot) * slot
    end = end // slot * slot
    i = index_at(times, n, begin)
    best = 0
    while begin < end:
        next_change = times[i + 1] if i + 1 < n else _FOREVER
        if free[i] >= rate:
            run = min(next_change, end) // slot * slot - begin
            best = max(best, run)
        elif next_change < end:
            begin = -(-next_change // slot) * slot
        if next_change >= end:
            return best
        i += 1
    return best


@compiled
def longest_constant(
    times: Int64Array,
    free: Int64Array,
    n: int,
    begin: int,
    end: int,
    bits: int,
    rate_max: int,
    rate_min: int,
    channel: int,
    slot: int,
) -> int:
    """The latest slot boundary up to which one constant rate, free from `begin` on, can carry `bits`; `begin` itself if none can.

    The rate that is free throughout falls as the interval grows, so it suffices to check where it falls, and `end`. Both ends on
    slots.
    """
    latest = begin
    i = index_at(times, n, begin)
    rate = min(free[i], rate_max) // channel * channel
    while rate > 0 and rate >= rate_min:
        i += 1
        while i < n and times[i] < end and min(free[i], rate_max) // channel * channel >= rate:
            i += 1
        stop = end if i >= n or times[i] >= end else times[i] // slot * slot
        if stop > begin and time_needed(bits, 0, rate) <= stop - begin:
            latest = stop
        if i >= n or times[i] >= end:
            break
        rate = min(free[i], rate_max) // channel * channel
    return latest


@compiled
def max_constant(
    times: Int64Array,
    free: Int64Array,
    n: int,
    begin: int,
    end: int,
    rate_max: int,
    rate_min: int,
    channel: int,
    slot: int,
    max_bits: int,
) -> int:
    """Whole bits, at most `max_bits`, that one rate can carry from `begin` on, ending at any time up to `end`. Both ends on slots."""
    most = 0
    i = index_at(times, n, begin)
    rate = min(free[i], rate_max) // channel * channel
    while rate > 0 and rate >= rate_min:
        i += 1
        while i < n and times[i] < end and min(free[i], rate_max) // channel * channel >= rate:
            i += 1
        stop = end if i >= n or times[i] >= end else times[i] // slot * slot
        if stop > begin:
            if time_needed(max_bits, 0, rate) <= stop - begin:
                return max_bits
            most = max(most, volume_in(rate, stop - begin)[0])
        if i >= n or times[i] >= end:
            break
        rate = min(free[i], rate_max) // channel * channel
    return most


@compiled
def rate_needed(bits: int, duration: int) -> int:
    """bit/s, rounded up, that carry `bits` in `duration` microseconds; FOREVER_US if above 1 Pb/s."""
    rate, rest = bits // duration, bits % duration
    if rate > _MAX_RATE // _MILLION:
        return _FOREVER
    for _ in range(6):  # digit by digit, because a remainder times a million would not fit
        rest *= 10
        rate = rate * 10 + rest // duration
        rest %= duration
    return rate + (1 if rest > 0 else 0)


@compiled
def min_height(rates: Int64Array, bits: int, least: int, channel: int) -> int:
    """The least rate that is free for as long as `bits` take at it, a multiple of `channel` and at least `least`; -1 if there is none.

    `rates`: rows (begin, end, rate) without gaps, rates in whole channels. A sufficient rate fits into a rectangle that cannot be
    made wider; there is at most one such rectangle per row, and one pass with a stack finds them all.
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
