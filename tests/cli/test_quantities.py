# SPDX-License-Identifier: Apache-2.0
"""Rates, sizes, durations and times as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli import quantities as q


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("0", 0), ("1", 1), ("800M", 800_000_000), ("1.5G", 1_500_000_000), ("10g", 10**10), ("10Gb/s", 10**10),
        ("10 Gbit/s", 10**10), ("10Gbps", 10**10), ("100MB/s", 800_000_000), ("1Ki", 1024), ("1KiB/s", 8192), ("0.001k", 1),
    ],
)  # fmt: skip
def test_rates(text: str, bps: int) -> None:
    assert q.parse_rate(text) == bps


@pytest.mark.parametrize("text", ["", "M", "-1M", "1.5", "1e9", "10X", "10MB", "10mib/h", "1,000", "٣M", "99999P"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        q.parse_rate(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("500M", 500_000_000), ("10GB", 10**10), ("1.5TB", 1_500_000_000_000), ("64GiB", 64 * 2**30), ("64 Gi", 64 * 2**30)],
)
def test_sizes(text: str, size: int) -> None:
    assert q.parse_size(text) == size


def test_a_size_in_bits_is_refused_with_what_it_would_be() -> None:
    with pytest.raises(ValueError, match=r"is in bits; sizes are in bytes \(that would be 1\.25 GB\)"):
        q.parse_size("10Gbit")


@pytest.mark.parametrize(
    ("text", "us"),
    [("90s", 90_000_000), ("10min", 600_000_000), ("1h30m", 5_400_000_000), ("2d", 172_800_000_000), ("250ms", 250_000)],
)
def test_durations(text: str, us: int) -> None:
    assert q.parse_duration(text) == us


@pytest.mark.parametrize("text", ["", "10", "min", "10 parsecs", "1h-5m", "+5s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        q.parse_duration(text)


def test_times_are_absolute_or_from_now() -> None:
    assert q.parse_when("now", 5) == 5
    assert q.parse_when("+10s", 5) == 10_000_005
    assert q.parse_when("1970-01-01T00:00:01+00:00", 5) == 1_000_000
    with pytest.raises(ValueError, match="give a zone"):
        q.parse_when("2026-01-01T00:00:00", 5)


@given(st.integers(0, 10**15))
def test_what_is_shown_can_be_written_back(value: int) -> None:
    """To the four digits that are shown."""
    assert q.parse_rate(q.show_rate(value).replace(" b/s", "b/s")) == pytest.approx(value, rel=5e-4)
    assert q.parse_size(q.show_size(value).replace(" ", "")) == pytest.approx(value, rel=5e-4)


def test_durations_are_shown_in_two_units() -> None:
    shown = {
        0: "0 s",
        4_200_000: "4.2 s",
        -4_200_000: "-4.2 s",
        90_000_000: "1m 30s",
        5_400_000_000: "1h 30m",
        3 * 86_400_000_000: "3d",
    }
    assert {us: q.show_duration(us) for us in shown} == shown
