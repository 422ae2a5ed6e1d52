# SPDX-License-Identifier: Apache-2.0
"""Compiled loops over gamma(t): flat int64 arrays `times` and `free`, of which the first `n` entries count.

`free[i]` holds on [times[i], times[i+1]), the last one forever; `times[0]` is the distant past. Values may be negative (capacity
was lowered under bookings): nothing is free then. A remaining volume is a pair (whole bits, microbits below 1e6), because one
exabyte in microbits exceeds 64 bits. This module contains only the arithmetic; planners and calendars define its meaning.
"""

# ruff: noqa: PLR0912 - the four cases of a round belong in one loop

from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from broker.core.units import FOREVER_US

Int64Array = NDArray[np.int64]
_Function = TypeVar("_Function", bound=Any)

_FOREVER = FOREVER_US
_MILLION = 1_000_000

FOUND = 0  # the whole volume fits
NEVER = 1  # gamma(t) ends in a rate that cannot carry the volume
LATE = 2  # the deadline cannot be met
OUT_OF_PROFILE = 3  # the profile ended (it was cut at `limit`): repeat with a longer one
OUT_OF_ROOM = 4  # more segments than the output holds: repeat with a larger one


def compiled(function: _Function) -> _Function:
    """Compile on first use and cache the machine code on disk, so that later processes start in milliseconds."""
    try:
        return cast(_Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no writable cache folder: neither the package's, nor the user's, nor NUMBA_CACHE_DIR
        return cast(_Function, numba.njit(nogil=True)(function))


@compiled
def index_at(times: Int64Array, n: int, instant: int) -> int:
    """Index of the step that holds at `instant` (0 when it lies before the first)."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if times[middle] <= instant:
            low = middle + 1
        else:
            high = middle
    return max(low - 1, 0)


@compiled
def time_after(times: Int64Array, n: int, instant: int, steps: int) -> tuple[int, int]:
    """(begin of the step that is `steps` after the one at `instant`, FOREVER_US if there is none; number of steps up to there)."""
    index = index_at(times, n, instant)
    if index + steps < n:
        return times[index + steps], steps
    return _FOREVER, n - index


@compiled
def mirror(times: Int64Array, free: Int64Array, n: int, begin: int, end: int, out_times: Int64Array, out_free: Int64Array) -> int:
    """gamma(-t) on [-end, -begin): time runs backwards from `end`. Returns the number of steps."""
    i = index_at(times, n, end - 1)
    out_times[0] = -end
    out_free[0] = free[i]
    k = 1
    while i > 0 and times[i] > begin:
        out_times[k] = -times[i]
        i -= 1
        out_free[k] = free[i]
        k += 1
    return k


@compiled
def time_needed(bits: int, microbits: int, rate: int) -> int:
    """Microseconds, rounded up, that a volume takes at `rate` bit/s; long division in steps of 1000 avoids an overflow at 1 Pb/s."""
    seconds = bits // rate
    if seconds > _FOREVER // _MILLION:
        return _FOREVER
    rest = bits % rate
    millis = rest * 1000 // rate
    rest = rest * 1000 % rate
    micros = rest * 1000 // rate
    rest = rest * 1000 % rate + microbits
    return seconds * _MILLION + millis * 1000 + micros + (rest + rate - 1) // rate


@compiled
def volume_in(rate: int, duration: int) -> tuple[int, int]:
    """(bits, microbits) that `rate` carries in `duration` microseconds. The caller ensures that the bits fit into 63 bits."""
    seconds, micros = duration // _MILLION, duration % _MILLION
    # rate x micros may reach 1e21: split the rate as well.
    mega, unit = rate // _MILLION, rate % _MILLION
    low = unit * micros
    return rate * seconds + mega * micros + low // _MILLION, low % _MILLION


@compiled
def add(times: Int64Array, free: Int64Array, n: int, begin: int, end: int, delta: int) -> int:
    """Add `delta` to gamma on [begin, end) in place and return the new number of steps; the arrays need room for two more.

    Steps stay minimal: a boundary without a change of rate is removed.
    """
    first = index_at(times, n, begin)
    if times[first] != begin:
        for i in range(n, first + 1, -1):
            times[i] = times[i - 1]
            free[i] = free[i - 1]
        first += 1
        times[first] = begin
        free[first] = free[first - 1]
        n += 1
    if end >= _FOREVER:
        last = n
    else:
        last = index_at(times, n, end)
        if times[last] != end:
            for i in range(n, last + 1, -1):
                times[i] = times[i - 1]
                free[i] = free[i - 1]
            last += 1
            times[last] = end
            free[last] = free[last - 1]
            n += 1
    for i in range(first, last):
        free[i] += delta
    # Inner differences are unchanged, so only the two ends can have become superfluous; the later one is removed first.
    if last < n and free[last] == free[last - 1]:
        for i in range(last, n - 1):
            times[i] = times[i + 1]
            free[i] = free[i + 1]
        n -= 1
    if first > 0 and free[first] == free[first - 1]:
        for i in range(first, n - 1):
            times[i] = times[i + 1]
            free[i] = free[i + 1]
        n -= 1
    return n


@compiled
def add_all(times: Int64Array, free: Int64Array, n: int, begins: Int64Array, ends: Int64Array, rates: Int64Array) -> int:
    """Subtract each of `rates` from gamma on its [begin, end); the arrays need room for two more steps per rate."""
    for i in range(len(begins)):
        n = add(times, free, n, begins[i], ends[i], -rates[i])
    return n


@compiled
def accumulate(instants: Int64Array, deltas: Int64Array, times: Int64Array, free: Int64Array, origin: int) -> int:
    """Build minimal steps from sorted change instants: free(t) = origin + the sum of all deltas at or before t.

    Equal instants add up. `times` and `free` need len(instants) + 1 entries; returns the number used.
    """
    n = 1
    times[0] = -_FOREVER
    free[0] = origin
    level = origin
    i = 0
    while i < len(instants):
        instant = instants[i]
        while i < len(instants) and instants[i] == instant:
            level += deltas[i]
            i += 1
        if level != free[n - 1]:
            times[n] = instant
            free[n] = level
            n += 1
    return n


@compiled
def lowest(times: Int64Array, free: Int64Array, n: int, begin: int, end: int) -> int:
    """Smallest gamma on [begin, end)."""
    i = index_at(times, n, begin)
    low = free[i]
    i += 1
    while i < n and times[i] < end:
        low = min(low, free[i])
        i += 1
    return int(low)


@compiled
def minimum(
    times_a: Int64Array,
    free_a: Int64Array,
    n_a: int,
    times_b: Int64Array,
    free_b: Int64Array,
    n_b: int,
    begin: int,
    end: int,
    out_times: Int64Array,
    out_free: Int64Array,
) -> int:
    """The pointwise minimum of two functions on [begin, end): gamma(t) of two links in a row. Returns the number of steps."""
    i, j = index_at(times_a, n_a, begin), index_at(times_b, n_b, begin)
    out_times[0] = begin
    out_free[0] = min(free_a[i], free_b[j])
    k = 1
    while True:
        next_a = times_a[i + 1] if i + 1 < n_a else _FOREVER
        next_b = times_b[j + 1] if j + 1 < n_b else _FOREVER
        instant = min(next_a, next_b)
        if instant >= end or instant == _FOREVER:
            return k
        if next_a == instant:
            i += 1
        if next_b == instant:
            j += 1
        level = min(free_a[i], free_b[j])
        if level != out_free[k - 1]:
            out_times[k] = instant
            out_free[k] = level
            k += 1


@compiled
def _step(times: Int64Array, free: Int64Array, n: int, i: int, instant: int, slot: int) -> tuple[int, int, int]:
    """(rate, end, next index) of the longest slot-aligned interval from `instant` on in which a constant rate is guaranteed.

    Where gamma changes inside a slot, the interval is that one slot at its smallest gamma.
    """
    next_change = times[i + 1] if i + 1 < n else _FOREVER
    if next_change == _FOREVER:
        return free[i], _FOREVER, i
    end = next_change // slot * slot
    if end > instant:
        return free[i], end, (i + 1 if end == next_change else i)
    end = instant + slot
    low = free[i]
    while i + 1 < n and times[i + 1] < end:
        i += 1
        low = min(low, free[i])
    if i + 1 < n and times[i + 1] == end:
        i += 1
    return low, end, i


@compiled
def varying_bandwidth(
    times: Int64Array,
    free: Int64Array,
    n: int,
    start: int,
    deadline: int,
    limit: int,
    bits: int,
    rate_max: int,
    rate_min: int,
    channel: int,
    slot: int,
    fewest_rows: bool,
    out: Int64Array,
) -> tuple[int, int]:
    """VBLS (Veeraraghavan et al. 2004, section 3.2): the four cases in one loop.

    Per round: the smaller of gamma and Rmax, in whole channels; the rest of the file fits before the next change, or it does not;
    gamma = 0 (or below `rate_min`) skips ahead. Rows (begin, end, rate) go to `out`, one per round as in the paper, so a row also
    ends where gamma changes above Rmax, unless `fewest_rows`. The profile is valid up to `limit`. Returns (status, rows).
    """
    instant = -(-start // slot) * slot
    i = index_at(times, n, instant)
    least = max(rate_min, channel, 1)
    microbits = 0
    k = 0
    while True:
        if free[i] < least:
            # Skip the whole busy interval in a tight loop: a slot that touches it has no usable minimum either.
            i += 1
            while i < n and free[i] < least:
                i += 1
            if i == n:
                return (NEVER if limit == _FOREVER else OUT_OF_PROFILE), k
            instant = -(-times[i] // slot) * slot
            while i + 1 < n and times[i + 1] <= instant:
                i += 1
        if instant >= deadline:
            return LATE, k
        if instant >= limit:
            return OUT_OF_PROFILE, k
        level, end, i = _step(times, free, n, i, instant, slot)
        rate = min(level, rate_max) // channel * channel
        if rate < least:
            if end == _FOREVER:
                return (NEVER if limit == _FOREVER else OUT_OF_PROFILE), k
            instant = end
            continue
        end = min(end, limit)
        finish = instant + time_needed(bits, microbits, rate)
        finish = -(-finish // slot) * slot
        done = finish <= end
        stop = finish if done else end
        if stop > deadline:
            return LATE, k
        if fewest_rows and k > 0 and out[k - 1, 1] == instant and out[k - 1, 2] == rate:
            out[k - 1, 1] = stop
        else:
            if k == len(out):
                return OUT_OF_ROOM, k
            out[k, 0] = instant
            out[k, 1] = stop
            out[k, 2] = rate
            k += 1
        if done:
            return FOUND, k
        carried_bits, carried_microbits = volume_in(rate, stop - instant)
        bits -= carried_bits
        microbits -= carried_microbits
        if microbits < 0:
            microbits += _MILLION
            bits -= 1
        instant = stop


@compiled
def volume_between(
    times: Int64Array,
    free: Int64Array,
    n: int,
    start: int,
    end: int,
    rate_max: int,
    rate_min: int,
    channel: int,
    slot: int,
    max_bits: int,
) -> int:
    """Whole bits that the intervals of `varying_bandwidth` carry on [start, end), at most `max_bits`."""
    instant = -(-start // slot) * slot
    end = end // slot * slot
    i = index_at(times, n, instant)
    bits, microbits = 0, 0
    while instant < end:
        level, stop, i = _step(times, free, n, i, instant, slot)
        stop = min(stop, end)
        rate = min(level, rate_max) // channel * channel
        if rate > 0 and rate >= rate_min:
            if time_needed(max_bits - bits, 0, rate) <= stop - instant:
                return max_bits
            more_bits, more_microbits = volume_in(rate, stop - instant)
            bits += more_bits
            microbits += more_microbits
            if microbits >= _MILLION:
                microbits -= _MILLION
                bits += 1
            if bits >= max_bits:
                return max_bits
        instant = stop
    return bits


@compiled
def rates_between(
    times: Int64Array,
    free: Int64Array,
    n: int,
    begin: int,
    end: int,
    rate_max: int,
    rate_min: int,
    channel: int,
    slot: int,
    out: Int64Array,
) -> tuple[int, int]:
    """The bookable rates on [begin, end), both on slots: rows (begin, end, rate) in `out`, without gaps, 0 where below `rate_min`.

    Neighbours differ in rate. Returns (FOUND or OUT_OF_ROOM, rows); after OUT_OF_ROOM, the rows so far are correct.
    """
    instant = begin
    i = index_at(times, n, instant)
    k = 0
    while instant < end:
        level, stop, i = _step(times, free, n, i, instant, slot)
        stop = min(stop, end)
        rate = max(min(level, rate_max), 0) // channel * channel
        if rate < rate_min:
            rate = 0
        if k > 0 and out[k - 1, 2] == rate:
            out[k - 1, 1] = stop
        else:
            if k == len(out):
                return OUT_OF_ROOM, k
            out[k, 0] = instant
            out[k, 1] = stop
            out[k, 2] = rate
            k += 1
        instant = stop
    return FOUND, k
