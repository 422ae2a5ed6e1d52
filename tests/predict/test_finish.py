# SPDX-License-Identifier: Apache-2.0
"""When a transfer will finish: the plan where nothing else is known, else the plan at the share that was reached."""

from hypothesis import given
from hypothesis import strategies as st

from broker.predict.finish import Step, finish

S = 1_000_000
PLAN = [Step(10 * S, 20 * S, 8_000_000), Step(30 * S, 40 * S, 16_000_000)]  # 10 MB, then 20 MB


def test_by_the_plan() -> None:
    found = finish(PLAN, 0, 20_000_000, [])
    assert found is not None and (found.earliest_us, found.expected_us, found.latest_us) == (35 * S, 35 * S, 35 * S)
    later = finish(PLAN, 35 * S, 5_000_000, [1.0, 1.0])
    assert later is not None and later.expected_us == 35 * S + 2_500_000


def test_at_the_share_that_was_reached() -> None:
    found = finish(PLAN, 30 * S, 5_000_000, [0.5] * 5)
    assert found is not None and found.expected_us == 35 * S and found.share == 0.5
    spread = finish(PLAN, 30 * S, 5_000_000, [0.25, 0.5, 0.5, 0.5, 1.0])
    assert spread is not None and (spread.earliest_us, spread.expected_us, spread.latest_us) == (32_500_000, 35 * S, 40 * S)


def test_beyond_the_plan_it_goes_on_at_the_mean_rate() -> None:
    found = finish(PLAN, 40 * S, 15_000_000, [])
    assert found is not None and found.expected_us == 50 * S


def test_what_stands_still_has_no_end() -> None:
    assert finish(PLAN, 15 * S, 1, [0.0, 0.0, 0.0]) is None
    assert finish([], 0, 1, []) is None
    done = finish(PLAN, 15 * S, 0, [0.0, 0.0, 0.0])
    assert done is not None and done.expected_us == 15 * S


@given(st.integers(0, 50 * S), st.integers(1, 40_000_000), st.lists(st.floats(0.01, 1.2), max_size=40))
def test_the_answers_are_in_order(now_us: int, left: int, shares: list[float]) -> None:
    found = finish(PLAN, now_us, left, shares)
    assert found is not None and now_us <= found.earliest_us <= found.expected_us <= found.latest_us
