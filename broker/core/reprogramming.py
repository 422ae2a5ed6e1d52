# SPDX-License-Identifier: Apache-2.0
"""Rows with limits on reprogramming (Veeraraghavan et al. 2004, section 3.4): on their number, and their length (except the last).

Taking all free capacity no longer works: a row that must last can use only the minimum that is free in it. These are therefore
dynamic programmes over the instants at which a row may begin or end. Without a minimum length those are the change points alone: a
boundary elsewhere can be moved to one without carrying less. With a minimum length, rows of exactly that length may follow one
another from a change point or up to one, so the change points plus and minus its multiples count as well.

Limits of exactness: volumes are whole microbits up to 576 GB, above that rounded down by less than 1 part in 4e17 per row. A row
spans at most `_LONGEST_SPAN` of the instants, fewer where it would take more than `_MAX_STEPS`; shifted instants are added up to
`_MAX_INSTANTS`, and rows are counted up to `_MAX_CELLS` of memory. Beyond that plans are still valid, but may end later.
"""

# ruff: noqa: PLR0912 - one transition of a dynamic programme belongs in one loop

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from broker.core.scans import Int64Array, compiled, time_needed, volume_in
from broker.core.segments import Rows
from broker.core.units import FOREVER_US, US_PER_S, round_up

Int32Array = NDArray[np.int32]

_LONGEST_SPAN = 2048
_SHORTEST_SPAN = 16
_MAX_INSTANTS = 4096
_MAX_CELLS = 1 << 22
_MAX_STEPS = 100_000_000

_FOREVER = FOREVER_US
_MILLION = 1_000_000
_NEARLY = 1 - 1e-9  # a float below this share of another is certainly less


class Limits(NamedTuple):
    """`most`: maximum number of rows, or None; `shortest_us`: in whole slots, 0 without a minimum."""

    most: int | None
    shortest_us: int

    def kept_by(self, rows: Rows) -> bool:
        """True if `rows` keep the limits. The rows must be minimal in number and ordered by time."""
        if self.most is not None and len(rows) > self.most:
            return False
        return all(end - begin >= self.shortest_us for begin, end, _ in rows[:-1])


def earliest_rows(rates: Int64Array, bits: int, limits: Limits, slot: int) -> list[tuple[int, int, int]] | None:
    """The rows with the earliest finish of `bits` within the limits, or None. `rates` are rows (begin, end, rate) without gaps."""
    rows, rest, done = _best_rows(rates, bits, limits, slot)
    if not done:
        return None
    begin, _, rate = rows.pop()
    while rest <= 0:  # the volume lost to rounding down already completes it
        begin, end, rate = rows.pop()
        rest += rate * (end - begin)
    return [*rows, (begin, begin + round_up(-(-rest // rate), slot), rate)]


def max_in_rows(rates: Int64Array, bits: int, limits: Limits, slot: int) -> int:
    """Whole bits, at most `bits`, that can be carried within the limits."""
    _, rest, done = _best_rows(rates, bits, limits, slot)
    return bits if done else bits - -(-rest // US_PER_S)


def fullest_rows(rates: Int64Array, limits: Limits) -> list[tuple[int, int, int]]:
    """The rows within the limits that carry most and fill `rates` without gaps, for a holding time. No rate of `rates` may be 0."""
    instants, levels = _instants(rates, limits)
    layers = _layers(limits, len(levels))
    carried = np.full((len(instants), layers + 1), -1.0)
    source = np.zeros((len(instants), layers + 1), np.int32)
    _fill(instants, levels, limits.shortest_us, limits.most is None, _span(len(levels), layers), carried, source)
    layer = int(np.argmax(carried[-1]))
    if carried[-1, layer] <= 0:  # the span was too short for so few rows
        return [(int(instants[0]), int(instants[-1]), int(levels.min()))]
    return _rows_up_to(len(levels), layer, instants, levels, source, limits)


def _best_rows(rates: Int64Array, bits: int, limits: Limits, slot: int) -> tuple[list[tuple[int, int, int]], int, bool]:
    """(rows that carry most, microbits missing, whether they carry all). If they carry all, the last row still counts as missing."""
    instants, levels = _instants(rates, limits)
    layers = _layers(limits, len(levels))
    unit = 1  # microbits
    while bits * US_PER_S // unit >= 1 << 62 and unit < US_PER_S:
        unit *= 10
    carried = np.zeros((len(instants), layers + 1), np.int64)
    source = np.zeros((len(instants), layers + 1), np.int32)
    unlimited = limits.most is None
    done, first, last, rate = _earliest(
        instants, levels, bits * (US_PER_S // unit), unit, limits.shortest_us, slot, unlimited, _span(len(levels), layers),
        carried, source,
    )  # fmt: skip
    rows = _rows_up_to(int(first), layers if unlimited else layers - 1, instants, levels, source, limits)
    rest = bits * US_PER_S - sum(rate * (end - begin) for begin, end, rate in rows)
    begin, end = int(instants[first]), int(instants[last])
    rows.append((begin, end, int(rate)))
    return rows, rest if done else rest - int(rate) * (end - begin), bool(done)


def _instants(rates: Int64Array, limits: Limits) -> tuple[Int64Array, Int64Array]:
    """The instants at which rows may begin and end, and the rate from each to the next."""
    bounds = np.append(rates[:, 0], rates[-1, 1])
    if not limits.shortest_us:
        return bounds, rates[:, 2].copy()
    changes, step = bounds[:-1], limits.shortest_us
    begin, end = (
        int(bounds[0]),
        min(int(bounds[-1]), int(changes[-1]) + step),
    )  # no row begins or ends later than one step after the last change
    furthest = min((end - begin) // step, len(bounds) if limits.most is None else limits.most)
    for multiple in range(1, furthest + 1):
        if len(bounds) >= _MAX_INSTANTS:
            break
        shifted = np.concatenate((changes - multiple * step, changes + multiple * step))
        bounds = np.union1d(bounds, shifted[(shifted > begin) & (shifted <= end)])
    return bounds, rates[np.searchsorted(changes, bounds[:-1], side="right") - 1, 2]


def _layers(limits: Limits, stretches: int) -> int:
    if limits.most is None:
        return 1
    return max(min(limits.most, stretches, _MAX_CELLS // (stretches + 1)), 1)


def _span(stretches: int, layers: int) -> int:
    return min(max(_MAX_STEPS // (stretches * layers), _SHORTEST_SPAN), _LONGEST_SPAN)


def _rows_up_to(
    last: int, layer: int, instants: Int64Array, levels: Int64Array, source: Int32Array, limits: Limits
) -> list[tuple[int, int, int]]:
    rows: list[tuple[int, int, int]] = []
    while last > 0 and layer > 0:
        first = int(source[last, layer]) - 1
        if first < 0:  # nothing is sent up to here
            last -= 1
            continue
        rows.append((int(instants[first]), int(instants[last]), int(levels[first:last].min())))
        last = first
        if limits.most is not None:
            layer -= 1
    rows.reverse()
    return rows


@compiled
def _earliest(
    instants: Int64Array,
    levels: Int64Array,
    need: int,
    unit: int,
    shortest: int,
    slot: int,
    unlimited: bool,
    span: int,
    carried: Int64Array,
    source: Int32Array,
) -> tuple[bool, int, int, int]:
    """(done, first instant, last instant, rate) of the row that completes the volume, or of the last row of the best attempt.

    `carried[j, k]`: the most, in units, that at most k whole rows carry up to instant j; the last of these rows goes from instant
    `source[j, k]` - 1 to j, and 0 there means the same rows as up to j - 1. If rows are not counted, there is a single layer, in
    which each row follows the others.
    """
    layers = carried.shape[1] - 1
    before = layers if unlimited else layers - 1
    per_bit = _MILLION // unit
    most, best_first, best_last, best_rate = 0, 0, 0, 0
    for j in range(len(levels)):
        for k in range(1, layers + 1):
            carried[j + 1, k] = carried[j, k]
        finish, finish_first, finish_rate = _FOREVER, -1, 0
        rate = levels[j]
        for i in range(j, max(j - span, -1), -1):
            rate = min(rate, levels[i])
            if rate == 0:
                break
            duration = instants[j + 1] - instants[i]
            left = need - carried[i, before]
            if float(rate) * float(duration) >= float(left) * float(unit) * _NEARLY:
                microseconds = time_needed(left // per_bit, left % per_bit * unit, rate)
                stop = instants[i] + -(-microseconds // slot) * slot
                if stop <= instants[j + 1]:
                    if stop < finish:
                        finish, finish_first, finish_rate = stop, i, rate
                    continue
            bits, microbits = volume_in(rate, duration)
            volume = bits * per_bit + microbits // unit
            if carried[i, before] + volume > most:
                most, best_first, best_last, best_rate = carried[i, before] + volume, i, j + 1, rate
            if duration < shortest:
                continue
            if unlimited:
                if carried[i, 1] + volume > carried[j + 1, 1]:
                    carried[j + 1, 1] = carried[i, 1] + volume
                    source[j + 1, 1] = i + 1
            else:
                for k in range(1, layers + 1):
                    if carried[i, k - 1] + volume > carried[j + 1, k]:
                        carried[j + 1, k] = carried[i, k - 1] + volume
                        source[j + 1, k] = i + 1
        if finish_first >= 0:
            return True, finish_first, j + 1, finish_rate
    return False, best_first, best_last, best_rate


@compiled
def _fill(
    instants: Int64Array,
    levels: Int64Array,
    shortest: int,
    unlimited: bool,
    span: int,
    carried: NDArray[np.float64],
    source: Int32Array,
) -> None:
    """As `_earliest`, without pauses and to the end; `carried` is negative where rows cannot end, and counts exactly k of them."""
    layers = carried.shape[1] - 1
    carried[0, 1 if unlimited else 0] = 0
    for j in range(len(levels)):
        rate = levels[j]
        for i in range(j, max(j - span, -1), -1):
            rate = min(rate, levels[i])
            duration = instants[j + 1] - instants[i]
            if duration < shortest and j + 1 < len(levels):
                continue
            volume = float(rate) * float(duration)
            for k in range(1, layers + 1):
                base = carried[i, k] if unlimited else carried[i, k - 1]
                if base >= 0 and base + volume > carried[j + 1, k]:
                    carried[j + 1, k] = base + volume
                    source[j + 1, k] = i + 1
