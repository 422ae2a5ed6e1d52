# SPDX-License-Identifier: Apache-2.0
"""The compiled arithmetic against Python's unbounded integers, up to 1 EB and 1 Pb/s."""

from hypothesis import example, given
from hypothesis import strategies as st

from broker.core import scans
from broker.core.units import FOREVER_US, MAX_RATE_BPS, MAX_TIME_US, MAX_VOLUME_BYTES
from tests.core.grid import cases

MILLION = 1_000_000
MAX_BITS = 8 * MAX_VOLUME_BYTES


def near(*values: int) -> st.SearchStrategy[int]:
    """The given values and their neighbours: where a carry or a rounding goes wrong."""
    return st.sampled_from(values).flatmap(lambda value: st.integers(max(value - 2, 1), value + 2))


rates = st.one_of(st.integers(1, MAX_RATE_BPS), near(1, 1_000, MILLION, 10**9, 10**12).filter(lambda rate: rate <= MAX_RATE_BPS))
bits = st.one_of(st.integers(0, MAX_BITS), near(1, MILLION, 10**12, 10**15, MAX_BITS - 2))


@cases(500)
@given(bits, st.integers(0, MILLION - 1), rates)
@example(MAX_BITS, 0, 1)
@example(MAX_BITS, 999_999, MAX_RATE_BPS)
@example(MAX_RATE_BPS - 1, 999_999, MAX_RATE_BPS)
def test_time_needed_is_exact(whole: int, micro: int, rate: int) -> None:
    exact = -(-(whole * MILLION + micro) // rate)
    got = scans.time_needed(whole, micro, rate)
    assert got == (exact if exact < FOREVER_US else got)
    assert exact < FOREVER_US or got > MAX_TIME_US


@cases(500)
@given(rates, st.integers(0, 2 * MAX_TIME_US))
@example(MAX_RATE_BPS, 8_000 * MILLION)
@example(MAX_RATE_BPS - 1, MILLION - 1)
def test_volume_in_is_exact(rate: int, duration: int) -> None:
    duration = min(duration, MAX_BITS * MILLION // rate)  # the callers' promise: it fits into 63 bits
    assert scans.volume_in(rate, duration) == divmod(rate * duration, MILLION)
