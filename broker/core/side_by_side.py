# SPDX-License-Identifier: Apache-2.0
"""Several paths at once: at every instant the largest total rate that they can carry over links that some of them share.

At each instant this is a small linear programme: maximise the sum of the paths' rates, so that no link carries more than its free
capacity and the request no more than Rmax. Filling one path after the other nearly always solves it, and a cover (links of which
every path has one) proves that it did; otherwise the simplex method finds the optimum. Rates are rounded down to whole bit/s, or
channels, and the remainder is distributed again: the sum is below the optimum by less than one such unit per path. Rates that are
still optimal are kept, to avoid needless reprogramming.
"""

# ruff: noqa: PLR0912, PLR0915 - the loop over intervals belongs together

import numpy as np
from numpy.typing import NDArray

from broker.core.scans import FOUND, LATE, OUT_OF_ROOM, Int64Array, compiled, index_at, time_needed, volume_in
from broker.core.units import FOREVER_US

_FOREVER = FOREVER_US
_MILLION = 1_000_000
_ZERO = 1e-12  # of the largest rate
_WHOLE = 1e-6  # bit/s; a rate this little below a whole one is rounded up to it


@compiled
def rates_side_by_side(
    times: Int64Array,
    free: Int64Array,
    offsets: Int64Array,
    members: NDArray[np.bool_],
    channels: Int64Array,
    rate_max: int,
    rate_min: int,
    begin: int,
    end: int,
    slot: int,
    bits: int,
    duration: int,
    out: Int64Array,
) -> tuple[int, int, int]:
    """Rows (begin, end, rate of each path) from `begin` on, until `bits` are carried, or the sum was `rate_min` or more for `duration`.

    Group g of links has the steps offsets[g]:offsets[g+1] of `times` and `free`; `members[p, g]`: path p uses group g. Both ends on
    slots; rows with a sum below `rate_min` are left out. Returns (FOUND, LATE or OUT_OF_ROOM, rows, bits missing).
    """
    paths, groups = members.shape
    least = max(rate_min, 1)
    at = np.empty(groups, np.int64)
    for g in range(groups):
        at[g] = offsets[g] + index_at(times[offsets[g] : offsets[g + 1]], offsets[g + 1] - offsets[g], begin)
    level, before = np.empty(groups, np.int64), np.full(groups, -1, np.int64)
    rates, kept = np.zeros(paths, np.int64), np.zeros(paths, np.int64)
    table = np.empty((groups + 2, paths + groups + 2), np.float64)
    basis = np.empty(groups + 1, np.int64)
    instant, held_from, microbits, total, k = begin, begin, 0, 0, 0
    while instant < end:
        change = _FOREVER
        for g in range(groups):
            level[g] = max(free[at[g]], 0)
            if at[g] + 1 < offsets[g + 1]:
                change = min(change, times[at[g] + 1])
        stop = end if change >= end else change // slot * slot
        if stop <= instant:  # gamma changes inside this slot: its minimum counts
            stop = instant + slot
        for g in range(groups):
            while at[g] + 1 < offsets[g + 1] and times[at[g] + 1] <= stop:
                at[g] += 1
                if times[at[g]] < stop:
                    level[g] = max(min(level[g], free[at[g]]), 0)
        changed = False
        for g in range(groups):
            if level[g] != before[g]:
                changed = True
                before[g] = level[g]
        if changed:
            kept[:] = rates
            total = _share_out(level, members, channels, rate_max, kept, rates, table, basis)
        if total < least:
            if duration > 0:
                k = 0
            instant = stop
            held_from = stop
            continue
        done = False
        if duration > 0:
            if stop - held_from >= duration:
                stop = held_from + duration
                done = True
        else:
            finish = instant + -(-time_needed(bits, microbits, total) // slot) * slot
            if finish <= stop:
                stop = finish
                done = True
            else:
                carried_bits, carried_microbits = volume_in(total, stop - instant)
                bits -= carried_bits
                microbits -= carried_microbits
                if microbits < 0:
                    microbits += _MILLION
                    bits -= 1
        same = k > 0 and out[k - 1, 1] == instant
        if same:
            for p in range(paths):
                same = same and out[k - 1, 2 + p] == rates[p]
        if same:
            out[k - 1, 1] = stop
        else:
            if k == len(out):
                return OUT_OF_ROOM, k, bits
            out[k, 0] = instant
            out[k, 1] = stop
            out[k, 2:] = rates
            k += 1
        if done:
            return FOUND, k, 0
        instant = stop
    return LATE, k, bits + (1 if microbits > 0 else 0)


@compiled
def _share_out(
    level: Int64Array,
    members: NDArray[np.bool_],
    channels: Int64Array,
    rate_max: int,
    kept: Int64Array,
    rates: Int64Array,
    table: NDArray[np.float64],
    basis: Int64Array,
) -> int:
    """Write the rates of all paths with the largest sum to `rates`, or `kept` if these still reach it. Returns the sum."""
    paths, groups = members.shape
    rates[:] = 0
    total = _fill_up(level, members, channels, rate_max, rates)
    cover = 0
    counted = np.zeros(groups, np.bool_)
    for p in range(paths):
        narrow = -1
        for g in range(groups):
            if members[p, g] and (narrow < 0 or level[g] < level[narrow]):
                narrow = g
        if not counted[narrow]:
            counted[narrow] = True
            cover += level[narrow]
    if total < min(cover, rate_max):
        best = rates.copy()
        _simplex(level, members, rate_max, rates, table, basis)
        for p in range(paths):
            rates[p] = rates[p] // channels[p] * channels[p]
        other = _fill_up(level, members, channels, rate_max, rates)
        if other > total:
            total = other
        else:
            rates[:] = best
    if kept.sum() >= total and _fits(level, members, rate_max, kept):
        rates[:] = kept
        total = kept.sum()
    return total


@compiled
def _fits(level: Int64Array, members: NDArray[np.bool_], rate_max: int, rates: Int64Array) -> bool:
    if rates.sum() > rate_max:
        return False
    for g in range(len(level)):
        used = 0
        for p in range(len(rates)):
            if members[p, g]:
                used += rates[p]
        if used > level[g]:
            return False
    return True


@compiled
def _fill_up(level: Int64Array, members: NDArray[np.bool_], channels: Int64Array, rate_max: int, rates: Int64Array) -> int:
    """Raise one path after the other as far as possible; `rates` too high by a rounding error are cut first. Returns the sum."""
    paths, groups = members.shape
    rest = level.copy()
    budget = rate_max
    for turn in range(2):
        for p in range(paths):
            most = budget
            for g in range(groups):
                if members[p, g]:
                    most = min(most, rest[g])
            more = min(rates[p], most) if turn == 0 else most
            more = more // channels[p] * channels[p]
            budget -= more
            for g in range(groups):
                if members[p, g]:
                    rest[g] -= more
            rates[p] = more if turn == 0 else rates[p] + more
    return rate_max - budget


@compiled
def _simplex(
    level: Int64Array,
    members: NDArray[np.bool_],
    rate_max: int,
    rates: Int64Array,
    table: NDArray[np.float64],
    basis: Int64Array,
) -> None:
    """Maximise the sum of rates by Bland's rule, which terminates. Columns: paths, slacks, right side; rows: groups, Rmax, objective."""
    paths, groups = members.shape
    rows, right = groups + 1, paths + groups + 1
    scale = float(max(level.max(), 1))
    table[:] = 0.0
    for g in range(groups):
        for p in range(paths):
            if members[p, g]:
                table[g, p] = 1.0
        table[g, right] = level[g] / scale
    for p in range(paths):
        table[groups, p] = 1.0
        table[rows, p] = 1.0
    table[groups, right] = min(rate_max / scale, float(groups))  # more than all groups together is no constraint
    for row in range(rows):
        table[row, paths + row] = 1.0
        basis[row] = paths + row
    while True:
        entering = -1
        for column in range(right):
            if table[rows, column] > _ZERO:
                entering = column
                break
        if entering < 0:
            break
        leaving = -1
        for row in range(rows):
            if table[row, entering] > _ZERO:
                if leaving < 0:
                    leaving = row
                    continue
                difference = table[row, right] / table[row, entering] - table[leaving, right] / table[leaving, entering]
                if difference < -_ZERO or (difference <= _ZERO and basis[row] < basis[leaving]):
                    leaving = row
        if leaving < 0:
            break
        table[leaving] /= table[leaving, entering]
        for row in range(rows + 1):
            if row != leaving and table[row, entering] != 0.0:
                table[row] -= table[row, entering] * table[leaving]
        basis[leaving] = entering
    rates[:] = 0
    for row in range(rows):
        if basis[row] < paths:
            rates[basis[row]] = int(max(table[row, right], 0.0) * scale + _WHOLE)
