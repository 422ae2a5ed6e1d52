# SPDX-License-Identifier: Apache-2.0
"""Sums over a trace, against plain ones."""

from pathlib import Path

import pytest

from broker.lab import trace

HEADER = (
    "time_us,direction,protocol,source,source_port,destination,destination_port,"
    "offered_bytes,forwarded_bytes,dropped_bytes,queue_max_bytes,unread_max_us\n"
)


@pytest.fixture
def rows(tmp_path: Path) -> list[trace.Row]:
    """Two flows; the second in every other tick, and one long silence."""
    lines = [HEADER]
    for tick in (*range(5), *range(30, 40)):
        lines.append(f"{tick * 10_000},left-right,tcp,10.71.1.10,7,10.71.2.10,8,2000,1500,500,9000,40\n")
        if tick % 2:
            lines.append(f"{tick * 10_000},right-left,udp,10.71.2.10,8,10.71.1.10,7,100,100,0,0,0\n")
    lines.append("400000,left-right,other,,,,,77,0,0,0,0\n")
    lines.append("410000,left-right,tcp,10.71.1.10,7,10.7")  # still being written
    path = tmp_path / "trace.csv"
    path.write_text("".join(lines))
    return trace.read(path)


def test_rows(rows: list[trace.Row]) -> None:
    assert rows[0] == trace.Row(0, "left-right", "tcp", "10.71.1.10", 7, "10.71.2.10", 8, 2000, 1500, 500, 9000, 40)
    assert rows[-1].protocol == "other"
    assert rows[-1].source_port == 0


def test_silence_counts(rows: list[trace.Row]) -> None:
    ticks = trace.per_tick(rows, "forwarded", lambda row: row.protocol == "tcp")
    assert len(ticks) == 40
    assert ticks[10] == (100_000, 0)
    assert sum(size for _, size in ticks) == 15 * 1500


@pytest.mark.parametrize("width_us", [10_000, 50_000, 200_000, 400_000])
def test_windows_are_plain_sums(rows: list[trace.Row], width_us: int) -> None:
    ticks = trace.per_tick(rows, "offered")
    count = width_us // 10_000
    plain = [
        (ticks[first][0], sum(size for _, size in ticks[first : first + count]) * 8_000_000 // width_us)
        for first in range(len(ticks) - count + 1)
    ]
    assert list(trace.windows(ticks, width_us)) == plain
    assert trace.peak_bps(rows, "offered", width_us) == max(rate for _, rate in plain)


def test_shorter_than_a_window(rows: list[trace.Row]) -> None:
    assert trace.peak_bps(rows, "offered", 1_000_000) == 0
    assert trace.peak_bps([], "offered") == 0


def test_sums_of_flows(rows: list[trace.Row]) -> None:
    found = trace.sums(rows, "offered", 10_000, 310_000)
    assert found == {
        ("tcp", "10.71.1.10", 7, "10.71.2.10", 8): 5 * 2000,
        ("udp", "10.71.2.10", 8, "10.71.1.10", 7): 2 * 100,
    }
