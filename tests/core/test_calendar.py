# SPDX-License-Identifier: Apache-2.0
"""gamma(t) against a list with one number per microsecond, under bookings in random order."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from broker.core.calendar import DISTANT_PAST_US, Calendar, Step
from broker.core.units import FOREVER_US
from tests.core.grid import CASES, cases

HORIZON = 60  # every change lies in [0, HORIZON]; microsecond HORIZON stands for all that follow, -1 for all before


class Slots:
    """The oracle: capacity and bookings, one number per microsecond."""

    def __init__(self, capacity: list[Step]) -> None:
        self.set_capacity(capacity)
        self.booked = dict.fromkeys(range(-1, HORIZON + 1), 0)

    def set_capacity(self, capacity: list[Step]) -> None:
        self.capacity = {t: [rate for begin, rate in capacity if begin <= t][-1] for t in range(-1, HORIZON + 1)}

    def book(self, begin: int, end: int, rate: int) -> None:
        for t in range(-1, HORIZON + 1):
            if begin <= t < end:
                self.booked[t] += rate

    def free(self, t: int) -> int:
        return self.capacity[t] - self.booked[t]


intervals = st.one_of(
    st.tuples(st.integers(0, HORIZON), st.integers(0, HORIZON)).filter(lambda pair: pair[0] != pair[1]).map(sorted).map(tuple),
    st.integers(0, HORIZON).map(lambda begin: (begin, FOREVER_US)),
)
rates = st.integers(1, 4)  # few values, so that neighbours often become equal and steps must merge
bookings = st.tuples(intervals, rates).map(lambda pair: (*pair[0], pair[1]))
capacities = st.tuples(
    st.integers(0, 5), st.lists(st.tuples(st.integers(0, HORIZON), st.integers(0, 5)), max_size=6, unique_by=lambda step: step[0])
).map(lambda pair: [(DISTANT_PAST_US, pair[0]), *sorted(pair[1])])


def columns(rows: list[tuple[int, int, int]]) -> list[np.ndarray]:
    return [np.array([row[i] for row in rows], np.int64) for i in range(3)]


def assert_same(calendar: Calendar, slots: Slots, since: int = -1) -> None:
    steps = calendar.steps()
    assert steps[0][0] == DISTANT_PAST_US
    assert all(a[0] < b[0] for a, b in pairwise(steps)), "steps out of order"
    assert all(a[1] != b[1] for a, b in pairwise(steps)), "steps are not minimal"
    for t in range(since, HORIZON + 1):
        assert [rate for begin, rate in steps if begin <= t][-1] == slots.free(t), f"at {t}"
        assert calendar.free_at(t) == slots.free(t)


class CalendarMachine(RuleBasedStateMachine):
    """Book, release, replace capacity and forget the past in any order."""

    booked = Bundle("booked")

    def __init__(self) -> None:
        super().__init__()
        capacity = [(DISTANT_PAST_US, 5)]
        self.calendar, self.slots = Calendar(capacity), Slots(capacity)
        self.since = -1

    @rule(target=booked, booking=bookings)
    def book(self, booking: tuple[int, int, int]) -> tuple[int, int, int]:
        self.calendar.book(*booking)
        self.slots.book(*booking)
        return booking

    @rule(booking=booked)
    def release(self, booking: tuple[int, int, int]) -> None:
        """Give back what was booked, or (as the ledger may hold it) more than that."""
        begin, end, rate = booking
        self.calendar.release(*booking)
        self.slots.book(begin, end, -rate)

    @rule(some=st.lists(bookings, max_size=5), repeat=st.sampled_from([1, 1, 20]), sign=st.sampled_from([1, -1]))
    def book_all(self, some: list[tuple[int, int, int]], repeat: int, sign: int) -> None:
        rows = [(begin, end, sign * rate) for begin, end, rate in some] * repeat  # from 64 rows on, another way is taken
        self.calendar.book_all(*columns(rows))
        for row in rows:
            self.slots.book(*row)

    @rule(capacity=capacities)
    def set_capacity(self, capacity: list[Step]) -> None:
        self.calendar.set_capacity(capacity)
        self.slots.set_capacity(capacity)

    @rule(instant=st.integers(0, HORIZON))
    def forget_before(self, instant: int) -> None:
        steps = len(self.calendar.steps())
        self.calendar.forget_before(instant)
        assert len(self.calendar.steps()) <= steps
        assert all(begin > instant for begin, _ in self.calendar.steps()[1:])
        self.since = max(self.since, instant)

    @precondition(lambda self: self.since < HORIZON)
    @rule(data=st.data())
    def lowest(self, data: st.DataObject) -> None:
        begin, end = sorted(data.draw(st.sets(st.integers(max(self.since, 0), HORIZON), min_size=2, max_size=2)))
        assert self.calendar.lowest(begin, end) == min(self.slots.free(t) for t in range(begin, end))

    @invariant()
    def agrees(self) -> None:
        assert_same(self.calendar, self.slots, self.since)


TestCalendarMachine = CalendarMachine.TestCase
TestCalendarMachine.settings = cases(120)


@cases(200)
@given(capacities, st.lists(bookings, min_size=8, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_bookings_and_the_way_in_do_not_matter(
    capacity: list[Step], some: list[tuple[int, int, int]], random: Random
) -> None:
    one_by_one, at_once = Calendar(capacity), Calendar(capacity)
    rows = some * 8  # from 64 rows on, `book_all` goes another way
    at_once.book_all(*columns(rows))
    random.shuffle(rows)
    for row in rows:
        one_by_one.book(*row)
    assert one_by_one.steps() == at_once.steps()


@cases(150)
@given(capacities, st.lists(bookings, max_size=20))
def test_what_is_booked_and_released_leaves_nothing_behind(capacity: list[Step], rows: list[tuple[int, int, int]]) -> None:
    calendar = Calendar(capacity)
    before = calendar.steps()
    calendar.book_all(*columns(rows))
    for begin, end, rate in reversed(rows):
        calendar.release(begin, end, rate)
    assert calendar.steps() == before


@cases(60)
@given(capacities, capacities)
def test_capacity_there_and_back(first: list[Step], second: list[Step]) -> None:
    calendar = Calendar(first)
    calendar.book(10, 20, 3)
    before = calendar.steps()
    calendar.set_capacity(second)
    calendar.set_capacity(first)
    assert calendar.steps() == before
    assert calendar.capacity == tuple(first)


@CASES
@given(st.lists(rates, min_size=2, max_size=70))
def test_rates_that_start_at_the_same_instant_add_up(together: list[int]) -> None:
    """OSCARS kept deltas in a set and lost one of two equal ones (style.md, 2)."""
    one_by_one, at_once = Calendar([(DISTANT_PAST_US, 1_000)]), Calendar([(DISTANT_PAST_US, 1_000)])
    for rate in together:
        one_by_one.book(10, 20, rate)
    at_once.book_all(*columns([(10, 20, rate) for rate in together]))
    expected = [(DISTANT_PAST_US, 1_000), (10, 1_000 - sum(together)), (20, 1_000)]
    assert one_by_one.steps() == at_once.steps() == expected


def test_two_bookings_one_after_the_other_are_a_peak_not_a_sum() -> None:
    """SuPA summed every booking that touched a window (style.md, 2)."""
    calendar = Calendar([(DISTANT_PAST_US, 10)])
    calendar.book(0, 10, 7)
    calendar.book(10, 20, 7)
    assert calendar.lowest(0, 20) == 3
    assert calendar.steps() == [(DISTANT_PAST_US, 10), (0, 3), (20, 10)]


def test_capacity_below_what_is_booked_shows_as_negative() -> None:
    calendar = Calendar([(DISTANT_PAST_US, 10)])
    calendar.book(0, 10, 7)
    calendar.set_capacity([(DISTANT_PAST_US, 10), (5, 2)])
    assert calendar.steps() == [(DISTANT_PAST_US, 10), (0, 3), (5, -5), (10, 2)]


@pytest.mark.parametrize("interval", [(5, 5), (6, 5)])
def test_empty_intervals_are_refused(interval: tuple[int, int]) -> None:
    calendar = Calendar([(DISTANT_PAST_US, 10)])
    with pytest.raises(ValueError, match="empty interval"):
        calendar.book(*interval, 1)
    with pytest.raises(ValueError, match="empty interval"):
        calendar.book_all(*columns([(1, 2, 1)] * 64 + [(*interval, 1)]))
    assert calendar.steps() == [(DISTANT_PAST_US, 10)]


@pytest.mark.parametrize("capacity", [[], [(0, 10)]])
def test_capacity_must_be_known_for_all_time(capacity: list[Step]) -> None:
    with pytest.raises(ValueError, match="distant past"):
        Calendar(capacity)
    calendar = Calendar([(DISTANT_PAST_US, 10)])
    with pytest.raises(ValueError, match="distant past"):
        calendar.set_capacity(capacity)
    assert calendar.steps() == [(DISTANT_PAST_US, 10)]


def test_a_change_point_costs_at_most_24_bytes() -> None:
    calendar = Calendar([(DISTANT_PAST_US, 10**12)])
    for i in range(5_000):
        calendar.book(10 * i, 10 * i + 5, 1 + i % 2)
        assert calendar.n < 100 or calendar.nbytes <= 24 * (calendar.n + 2)
    assert calendar.n == 10_001
