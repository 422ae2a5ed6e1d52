# SPDX-License-Identifier: Apache-2.0
"""One link and nothing but immediate requests, in one compiled loop: what list scheduling would do, some hundred thousand requests a second.

The scans are those of the planners (`broker.core.scans`); only the walk over requests is here. The past is forgotten as it goes: of gamma(t)
what lies before an arrival can never matter again.
"""

import numpy as np

from broker.core import scans
from broker.core.rectangles import fixed_bandwidth
from broker.core.scans import FOUND, Int64Array, add, compiled, index_at, time_needed, varying_bandwidth
from broker.core.units import FOREVER_US

_FOREVER = FOREVER_US


class Unschedulable(ValueError):
    """A request that this link never carries."""


def vbls_finishes(arrivals: Int64Array, bits: Int64Array, rate_max: Int64Array, capacity: int, channel: int = 1) -> Int64Array:
    """When each file is through under VBLS. Microseconds, bits, bit/s; `arrivals` in order of time."""
    finishes = np.empty(len(arrivals), np.int64)
    times, free = _room(len(arrivals))
    out = np.empty((len(times), 3), np.int64)
    status = _varying(arrivals, bits, rate_max, capacity, channel, times, free, out, finishes)
    _check(status)
    return finishes


def fbls_finishes(arrivals: Int64Array, bits: Int64Array, rate_max: Int64Array, capacity: int) -> Int64Array:
    """The same under FBLS."""
    finishes = np.empty(len(arrivals), np.int64)
    times, free = _room(len(arrivals))
    status = _fixed(arrivals, bits, rate_max, capacity, times, free, finishes)
    _check(status)
    return finishes


def _room(requests: int) -> tuple[Int64Array, Int64Array]:
    # Every change point is a begin or a finish of some request: the rows between them begin and end where gamma changes already.
    size = 2 * requests + 8
    return np.empty(size, np.int64), np.empty(size, np.int64)


def _check(status: int) -> None:
    if status != scans.FOUND:
        raise Unschedulable("a request's rate is below one channel, or above what the link has")


@compiled
def _varying(
    arrivals: Int64Array,
    bits: Int64Array,
    rate_max: Int64Array,
    capacity: int,
    channel: int,
    times: Int64Array,
    free: Int64Array,
    out: Int64Array,
    finishes: Int64Array,
) -> int:
    times[0] = -_FOREVER
    free[0] = capacity
    first, n = 0, 1
    for i in range(len(arrivals)):
        past = index_at(times[first:], n, arrivals[i])
        first += past
        n -= past
        status, rows = varying_bandwidth(
            times[first:], free[first:], n, arrivals[i], _FOREVER, _FOREVER, bits[i], rate_max[i], 0, channel, 1, True, out
        )
        if status != FOUND:
            return int(status)
        for row in range(rows):
            n = add(times[first:], free[first:], n, out[row, 0], out[row, 1], -out[row, 2])
        finishes[i] = out[rows - 1, 1]
    return FOUND


@compiled
def _fixed(
    arrivals: Int64Array,
    bits: Int64Array,
    rate_max: Int64Array,
    capacity: int,
    times: Int64Array,
    free: Int64Array,
    finishes: Int64Array,
) -> int:
    times[0] = -_FOREVER
    free[0] = capacity
    first, n = 0, 1
    for i in range(len(arrivals)):
        past = index_at(times[first:], n, arrivals[i])
        first += past
        n -= past
        duration = time_needed(bits[i], 0, rate_max[i])
        status, begin = fixed_bandwidth(times[first:], free[first:], n, arrivals[i], _FOREVER, _FOREVER, duration, rate_max[i], 1)
        if status != FOUND:
            return int(status)
        n = add(times[first:], free[first:], n, begin, begin + duration, -rate_max[i])
        finishes[i] = begin + duration
    return FOUND
