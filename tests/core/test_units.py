# SPDX-License-Identifier: Apache-2.0

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core import units
from tests.core.grid import cases

instants = st.integers(units.MIN_TIME_US, units.MAX_TIME_US)
zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@cases(200)
@given(instants)
def test_times_survive_the_round_trip(time_us: int) -> None:
    text = units.format_time(time_us)
    assert units.parse_time(text) == time_us
    assert text.endswith("Z")
    assert ("." in text) == (time_us % 1_000_000 != 0)
    assert units.from_datetime(units.to_datetime(time_us)) == time_us


@cases(200)
@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=zones), st.sampled_from("Tt "))
def test_offsets_count(moment: datetime, separator: str) -> None:
    """Days by the proleptic ordinal, then plain arithmetic: no time stamps."""
    offset = moment.utcoffset()
    assert offset is not None
    seconds = (moment.toordinal() - datetime(1970, 1, 1).toordinal()) * 86_400
    seconds += moment.hour * 3_600 + moment.minute * 60 + moment.second - offset // timedelta(seconds=1)
    assert units.parse_time(moment.isoformat(sep=separator)) == seconds * 1_000_000 + moment.microsecond


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00z", 0),
        ("1970-01-01T00:00:00.5Z", 500_000),
        ("1970-01-01T00:00:00.123456999Z", 123_456),  # cut off, not rounded
        ("1970-01-01T01:00:00+01:00", 0),
        ("0001-01-01T00:00:00Z", units.MIN_TIME_US),
        ("9999-12-31T23:59:59.999999Z", units.MAX_TIME_US),
    ],
)
def test_accepted_times(text: str, time_us: int) -> None:
    assert units.parse_time(text) == time_us


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("2026-01-01T00:00:00", "give a zone, for example 2026-01-01T00:00:00Z"),
        ("2026-01-01 00:00:00.25", "give a zone"),
        ("2026-01-01", "not an RFC 3339 time"),
        ("20260101T000000Z", "not an RFC 3339 time"),
        ("2026-01-01T00:00Z", "not an RFC 3339 time"),
        ("2026-01-01T00:00:00+01", "not an RFC 3339 time"),
        ("2026-01-01T00:00:00Z\n", "not an RFC 3339 time"),
        ("٢٠٢٦-01-01T00:00:00Z", "not an RFC 3339 time"),
        ("", "not an RFC 3339 time"),
        ("2026-02-30T00:00:00Z", "day"),
        ("2026-01-01T24:00:00Z", "hour"),
        ("2026-01-01T23:59:60Z", "second"),
        ("2026-01-01T00:00:00+24:00", "offset"),
        ("0001-01-01T00:00:00+01:00", "outside the years"),
        ("9999-12-31T23:59:59-00:01", "outside the years"),
        ("0000-01-01T00:00:00Z", "year"),
    ],
)
def test_refused_times(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        units.parse_time(text)


@cases(200)
@given(st.text(st.sampled_from("0123456789-:.TZ+ "), max_size=35))
def test_any_text_is_a_time_or_a_value_error(text: str) -> None:
    try:
        time_us = units.parse_time(text)
    except ValueError:
        return
    assert units.MIN_TIME_US <= time_us <= units.MAX_TIME_US


def test_naive_datetimes_are_refused() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        units.from_datetime(datetime(2026, 1, 1))
    assert units.from_datetime(datetime(1970, 1, 1, tzinfo=UTC)) == 0


@cases(150)
@given(st.integers(1, units.MAX_VOLUME_BYTES), st.integers(1, units.MAX_RATE_BPS))
def test_durations_are_exact_and_rounded_up(volume: int, rate: int) -> None:
    duration = units.duration_for(volume, rate)
    exact = Fraction(volume * 8 * 1_000_000, rate)
    assert exact <= duration < exact + 1
    assert units.volume_of(rate, duration) >= volume > units.volume_of(rate, duration - 1)


@cases(100)
@given(st.integers(-(10**18), 10**18), st.integers(1, 10**12))
def test_rounding(value: int, multiple: int) -> None:
    up, down = units.round_up(value, multiple), units.round_down(value, multiple)
    assert up % multiple == down % multiple == 0
    assert down <= value <= up
    assert up - down == (0 if value % multiple == 0 else multiple)
