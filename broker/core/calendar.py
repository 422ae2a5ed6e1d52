# SPDX-License-Identifier: Apache-2.0
"""gamma(t): the free capacity of one directed link as a step function of time, in memory.

Two flat int64 arrays: `times[i]` begins a step, `free[i]` is its rate in bit/s; the last step holds forever (after the last change
point the whole link is free, Veeraraghavan et al. 2004, section 3.1). A change point costs 16 bytes, at most 24 with the spare
room. Free capacity may become negative when capacity is lowered under bookings; planners then see nothing free, and the audit
reports the excess.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from broker.core import scans
from broker.core.scans import Int64Array
from broker.core.units import FOREVER_US

Step = tuple[int, int]  # (begin_us, bit/s): holds until the next step begins

DISTANT_PAST_US = -FOREVER_US
_GROWTH = 1.5
_ONE_BY_ONE = 64


class Calendar:
    """Free capacity of one link. `book` and `release` update it; planners read `times[:n]`, `free[:n]` through `core.profile`."""

    __slots__ = ("_capacity", "free", "n", "times")

    def __init__(self, capacity: Sequence[Step]) -> None:
        """`capacity`: steps sorted by time; the first one begins at DISTANT_PAST_US (see `core.capacity`)."""
        self._capacity = _whole(capacity)
        self.times: Int64Array
        self.free: Int64Array
        self.n = 0
        self._rebuild(np.empty(0, np.int64), np.empty(0, np.int64))

    @property
    def capacity(self) -> tuple[Step, ...]:
        """The capacity function itself, without bookings."""
        return self._capacity

    def copy(self) -> "Calendar":
        """An independent copy, for planners that try out bookings."""
        same = Calendar.__new__(Calendar)
        same._capacity, same.n = self._capacity, self.n
        same.times, same.free = self.times.copy(), self.free.copy()
        return same

    def book(self, begin_us: int, end_us: int, rate_bps: int) -> None:
        """Take `rate_bps` on [begin, end). A negative rate returns capacity."""
        if begin_us >= end_us:
            raise ValueError(f"empty interval [{begin_us}, {end_us})")
        if self.n + 2 > len(self.times):
            self._grow(self.n + 2)
        self.n = scans.add(self.times, self.free, self.n, begin_us, end_us, -rate_bps)

    def release(self, begin_us: int, end_us: int, rate_bps: int) -> None:
        """Return `rate_bps` on [begin, end)."""
        self.book(begin_us, end_us, -rate_bps)

    def book_all(self, begins: Int64Array, ends: Int64Array, rates: Int64Array) -> None:
        """Book many intervals in one pass: O((n + m) log(n + m)), compared with O(n m) for one at a time."""
        if (begins >= ends).any():
            raise ValueError("an empty interval among those to book")
        if len(begins) < _ONE_BY_ONE:
            needed = self.n + 2 * len(begins)
            if needed > len(self.times):
                self._grow(needed)
            self.n = scans.add_all(self.times, self.free, self.n, begins, ends, rates)
            return
        self._rebuild(np.concatenate((begins, ends)), np.concatenate((-rates, rates)))

    def set_capacity(self, capacity: Sequence[Step]) -> None:
        """Replace the capacity function under the same bookings."""
        new = _whole(capacity)
        old_instants, old_deltas = _changes(self._capacity)
        new_instants, new_deltas = _changes(new)
        base = new[0][1] - self._capacity[0][1]
        self._capacity = new
        self.free[: self.n] += base
        self._rebuild(np.concatenate((old_instants, new_instants)), np.concatenate((-old_deltas, new_deltas)))

    def lowest(self, begin_us: int, end_us: int) -> int:
        """Smallest free rate on [begin, end)."""
        return int(scans.lowest(self.times, self.free, self.n, begin_us, end_us))

    def free_at(self, instant_us: int) -> int:
        """Free bit/s at an instant."""
        return int(self.free[scans.index_at(self.times, self.n, instant_us)])

    def capacity_at(self, instant_us: int) -> int:
        """Capacity at an instant in bit/s, without bookings."""
        return next(rate for at, rate in reversed(self._capacity) if at <= instant_us)

    def steps(self) -> list[Step]:
        """Steps (begin_us, free bit/s); each holds until the next one begins."""
        return list(zip(self.times[: self.n].tolist(), self.free[: self.n].tolist(), strict=True))

    def forget_before(self, instant_us: int) -> None:
        """Drop change points that no longer matter; gamma at and after `instant_us` is unchanged."""
        keep = scans.index_at(self.times, self.n, instant_us)
        if keep == 0:
            return
        self.times[: self.n - keep] = self.times[keep : self.n].copy()
        self.free[: self.n - keep] = self.free[keep : self.n].copy()
        self.n -= keep
        self.times[0] = DISTANT_PAST_US

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, spare room included."""
        return self.times.nbytes + self.free.nbytes

    def _grow(self, needed: int) -> None:
        size = max(int(needed * _GROWTH), 16)
        for name in ("times", "free"):
            larger = np.empty(size, np.int64)
            larger[: self.n] = getattr(self, name)[: self.n]
            setattr(self, name, larger)

    def _rebuild(self, instants: Int64Array, deltas: Int64Array) -> None:
        """Add change instants to the existing steps (or to the capacity alone) and make the steps minimal again."""
        if self.n:
            present_instants, present_deltas = self.times[1 : self.n], np.diff(self.free[: self.n])
            origin = int(self.free[0])
        else:
            present_instants, present_deltas = _changes(self._capacity)
            origin = int(self._capacity[0][1])
        all_instants = np.concatenate((present_instants, instants))
        all_deltas = np.concatenate((present_deltas, deltas))
        order = np.argsort(all_instants, kind="stable")
        size = len(all_instants) + 3
        times, free = np.empty(size, np.int64), np.empty(size, np.int64)
        n = scans.accumulate(all_instants[order], all_deltas[order], times, free, origin)
        self.times, self.free, self.n = times[: n + 2].copy(), free[: n + 2].copy(), n
        # No booking lasts forever: a booking that ends at FOREVER_US leaves a step there that no scan may reach.
        while self.n > 1 and self.times[self.n - 1] >= FOREVER_US:
            self.n -= 1


def _whole(capacity: Sequence[Step]) -> tuple[Step, ...]:
    if not capacity or capacity[0][0] != DISTANT_PAST_US:
        raise ValueError("capacity must begin in the distant past")
    return tuple(capacity)


def _changes(capacity: Iterable[Step]) -> tuple[Int64Array, Int64Array]:
    steps = list(capacity)
    rates = np.array([rate for _, rate in steps], np.int64)
    return np.array([begin for begin, _ in steps[1:]], np.int64), rates[1:] - rates[:-1]
