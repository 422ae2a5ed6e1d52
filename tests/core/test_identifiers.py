# SPDX-License-Identifier: Apache-2.0
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from broker.core.identifiers import identifier
from broker.core.units import from_datetime
from tests.core.grid import cases

# 50 bits of microseconds begin anew in September 2005 and in May 2041.
times = st.integers(from_datetime(datetime(2006, 1, 1, tzinfo=UTC)), from_datetime(datetime(2041, 1, 1, tzinfo=UTC)))
lots = st.binary(min_size=10, max_size=10)


@cases(100)
@given(times, times, lots, lots)
def test_they_sort_by_time_and_then_by_lot(first: int, second: int, a: bytes, b: bytes) -> None:
    assert (identifier("tr", first, a) < identifier("tr", second, b)) == ((first, a) < (second, b))


@cases(60)
@given(times, lots)
def test_their_shape(time_us: int, lot: bytes) -> None:
    text = identifier("tr", time_us, lot)
    assert len(text) == 3 + 26
    assert text.startswith("tr_")
    assert set(text[3:]) <= set("0123456789abcdefghjkmnpqrstvwxyz")
