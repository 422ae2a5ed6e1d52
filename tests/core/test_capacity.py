# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker.core.calendar import DISTANT_PAST_US, Step
from broker.core.capacity import Window, capacity_steps
from tests.core.grid import cases

HORIZON = 40

step_lists = st.lists(st.tuples(st.integers(0, HORIZON), st.integers(0, 5)), max_size=6, unique_by=lambda step: step[0]).map(sorted)
windows = st.lists(
    st.tuples(st.integers(0, HORIZON), st.integers(1, 20), st.integers(0, 5)).map(lambda w: Window(w[0], w[0] + w[1], w[2])),
    max_size=5,
)


@cases(200)
@given(st.integers(0, 5), step_lists, windows)
def test_capacity_at_every_instant(base: int, available: list[Step], taken: list[Window]) -> None:
    steps = capacity_steps(base, available, taken)
    assert steps[0][0] == DISTANT_PAST_US
    assert all(a[0] < b[0] and a[1] != b[1] for a, b in pairwise(steps)), "sorted and minimal"
    for t in range(-1, HORIZON + 22):
        level = base
        for begin, rate in available:
            if begin <= t:
                level = rate
        for window in taken:
            if window.begin_us <= t < window.end_us:
                level = min(level, window.bps)
        assert [rate for begin, rate in steps if begin <= t][-1] == level, f"at {t}"


def test_a_window_never_raises_capacity() -> None:
    assert capacity_steps(10, [(5, 4)], [Window(0, 10, 7)]) == [(DISTANT_PAST_US, 10), (0, 7), (5, 4)]


def test_many_steps_take_linear_time() -> None:
    """A year of background traffic in five-minute steps is 105,120 of them; a quadratic loop took minutes for ten links."""
    steps = [(i, i % 7) for i in range(105_120)]
    assert len(capacity_steps(0, steps)) == len(steps)
