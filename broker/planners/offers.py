# SPDX-License-Identifier: Apache-2.0
"""Counter-offers for refused requests: exact alternatives that the planner would accept.

Every offer is found by asking the planner itself, so a request for exactly the offer is admitted, and a request for slightly more
is not. Where answers are monotone (a later deadline, a higher Rmax with varying rates, a lower Rmin, a shorter holding time),
bisection finds the limit. Two cases are not monotone: candidate paths change at rates at which links become too small, so the
search is split at these rates (`Network.rates`); and FBLS may accept one rate but neither a higher nor a lower one, so all
rectangles under gamma are examined (`core.rectangles`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from broker.core.network import Network
from broker.core.plan import Plan
from broker.core.request import Request
from broker.core.units import MAX_RATE_BPS, MAX_TIME_US, MICROBITS_PER_BYTE
from broker.planners.binding import Binding, find_binding
from broker.planners.fbls import Fbls
from broker.planners.signature import MAX_STRETCHES, Calendars, OutOfBudget, Planner, Spent, is_joint, never, next_lower_rate

Stretch = tuple[int, int]  # first and last value, both included


@dataclass(frozen=True, slots=True)
class CounterOffer:
    """The requests that the same planner would accept now, one field changed at a time; None where no value of that field helps.

    `earliest_finish_us` is also the smallest deadline that could be met; `largest_volume_bytes` fits by the requested deadline.
    With `smallest_rate_max_bps` or `largest_rate_min_bps` the otherwise unchanged request would be accepted; `longest_duration_us`
    is the longest possible holding time of a class 2 request.
    """

    earliest_finish_us: int | None
    largest_volume_bytes: int | None
    smallest_rate_max_bps: int | None = None
    largest_rate_min_bps: int | None = None
    longest_duration_us: int | None = None


def find_counter_offer(
    planner: Planner, request: Request, network: Network, calendars: Calendars, spent: Spent = never
) -> CounterOffer:
    """The counter-offer for a request that `planner` has refused. Joint planners offer no rates: each try may be a solver run.

    Raises OutOfBudget as soon as `spent` returns True: a partial search offers nothing.
    """
    asked = _Asked(planner, request, network, calendars, spent)
    volume = planner.largest_volume(request, network, calendars) if request.deadline_us is not None else 0
    if is_joint(planner):
        return CounterOffer(asked.earliest_finish(), volume or None)
    return CounterOffer(
        asked.earliest_finish() or asked.smallest_deadline(),
        volume or None,
        asked.smallest_rate_max(),
        asked.largest_rate_min(),
        asked.longest_duration(),
    )


class _Asked:
    """A refused request that can be tried again with changed fields."""

    def __init__(self, planner: Planner, request: Request, network: Network, calendars: Calendars, spent: Spent) -> None:
        self._spent = spent
        self._planner = planner
        self._request = request
        self._network = network
        self._calendars = calendars

    def _plan(self, **changes: int | None) -> Plan | None:
        if self._spent():
            raise OutOfBudget
        request = replace(self._request, **changes)  # type: ignore[arg-type]
        answer = self._planner.plan(request, self._network, self._calendars)
        return answer if isinstance(answer, Plan) else None

    def _accepts(self, field: str) -> Callable[[int], bool]:
        return lambda value: self._plan(**{field: value}) is not None

    def earliest_finish(self) -> int | None:
        plan = self._plan(deadline_us=None)
        if plan is None:
            return None
        first, finish, accepts = self._request.deadline_us, plan.finish_us, self._accepts("deadline_us")
        # Planners that use the time available may finish earlier under a tighter deadline.
        return finish if first is None or not accepts(finish - 1) else _lowest(first + 1, finish - 1, accepts)

    def smallest_deadline(self) -> int | None:
        """For planners that require a deadline."""
        if self._request.deadline_us is None:
            return None
        accepts = self._accepts("deadline_us")
        for first, last in islice(self._deadlines(), MAX_STRETCHES):
            if accepts(last):
                return _lowest(first, last, accepts)
        return None

    def _deadlines(self) -> Iterator[Stretch]:
        """Intervals of deadlines with the same candidates: a later deadline lowers the even rate, which makes smaller links candidates."""
        request = self._request
        assert request.deadline_us is not None
        first = max(request.deadline_us, request.not_before_us) + 1
        while first <= MAX_TIME_US and request.volume_bytes is not None:
            microbits = request.volume_bytes * MICROBITS_PER_BYTE
            lower = next_lower_rate(self._network, -(-microbits // (first - request.not_before_us)))
            if lower < (request.rate_min_bps or 1):
                break
            last = min(request.not_before_us + (microbits - 1) // lower, MAX_TIME_US)
            yield first, last
            first = last + 1
        if first <= MAX_TIME_US:
            yield first, MAX_TIME_US

    def smallest_rate_max(self) -> int | None:
        request = self._request
        if request.rate_max_bps is None or request.volume_bytes is None:
            return None
        if isinstance(self._planner, Fbls):
            return self._planner.min_rate(request, self._network, self._calendars)
        if self._plan(rate_max_bps=None) is None:
            return None
        highest = MAX_RATE_BPS if request.options.split else self._network.rates[-1]
        return _lowest(request.rate_max_bps + 1, highest, self._accepts("rate_max_bps"))

    def largest_rate_min(self) -> int | None:
        asked = self._request.rate_min_bps
        accepts = self._accepts("rate_min_bps")
        if asked is None or asked == 1 or not accepts(1):
            return None
        last = asked - 1
        for _ in range(MAX_STRETCHES):
            first = max(next_lower_rate(self._network, last) + 1, 1)
            if accepts(first):
                return _highest(first, last, accepts)
            last = first - 1
        return 1

    def longest_duration(self) -> int | None:
        request = self._request
        if request.duration_us is None:
            return None
        accepts = self._accepts("duration_us")
        end = MAX_TIME_US if request.deadline_us is None else request.deadline_us
        longest = min(request.duration_us - 1, end - request.not_before_us)
        return _highest(1, longest, accepts) if longest > 0 and accepts(1) else None


def _lowest(first: int, last: int, accepts: Callable[[int], bool]) -> int:
    """The lowest accepted value, if all above it are accepted too; `last` in any case. Steps grow at first: it is usually near."""
    step = 1
    while first + step < last and not accepts(first + step):
        first += step + 1
        step *= 4
    last = min(first + step, last)
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if accepts(middle) else (middle + 1, last)
    return first


def _highest(first: int, last: int, accepts: Callable[[int], bool]) -> int:
    """The highest accepted value, if all below it are accepted too; `first` in any case."""
    while first < last:
        middle = (first + last + 1) // 2
        first, last = (middle, last) if accepts(middle) else (first, middle - 1)
    return first


__all__ = ["Binding", "CounterOffer", "find_binding", "find_counter_offer"]
