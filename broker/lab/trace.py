# SPDX-License-Identifier: Apache-2.0
"""Evaluation of an emulator trace: rates per direction, protocol or flow over sliding windows. Bytes are wire bytes."""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TICK_US = 10_000
Column = Literal["offered", "forwarded", "dropped"]


@dataclass(frozen=True, slots=True)
class Row:
    """One flow in one tick of 10 ms."""

    time_us: int  # begin of the tick, since the Unix epoch
    direction: str
    protocol: str
    source: str
    source_port: int
    destination: str
    destination_port: int
    offered: int
    forwarded: int  # counted in the tick in which the packet was due at the far end
    dropped: int
    queue_max: int  # of the direction
    unread_max_us: int  # how much earlier a packet of this tick and direction may have arrived

    @property
    def flow(self) -> tuple[str, str, int, str, int]:
        """(protocol, source, its port, destination, its port)."""
        return self.protocol, self.source, self.source_port, self.destination, self.destination_port


def read(path: Path) -> list[Row]:
    """All rows. An incomplete last line is left out."""
    with path.open(newline="") as file:
        lines = [line for line in file if line.endswith("\n")]
    return [
        Row(
            int(row["time_us"]),
            row["direction"],
            row["protocol"],
            row["source"],
            int(row["source_port"] or 0),
            row["destination"],
            int(row["destination_port"] or 0),
            int(row["offered_bytes"]),
            int(row["forwarded_bytes"]),
            int(row["dropped_bytes"]),
            int(row["queue_max_bytes"]),
            int(row["unread_max_us"]),
        )
        for row in csv.DictReader(lines)
    ]


def per_tick(rows: Iterable[Row], column: Column, wanted: Callable[[Row], bool] = lambda _: True) -> list[tuple[int, int]]:
    """(begin of the tick in µs, bytes) summed over all wanted rows, including ticks without traffic."""
    sums: defaultdict[int, int] = defaultdict(int)
    for row in rows:
        if wanted(row):
            sums[row.time_us] += getattr(row, column)
    if not sums:
        return []
    return [(time_us, sums.get(time_us, 0)) for time_us in range(min(sums), max(sums) + TICK_US, TICK_US)]


def windows(ticks: list[tuple[int, int]], width_us: int = 200_000) -> Iterator[tuple[int, int]]:
    """(begin in µs, bit/s) of each window of `width_us`, one per tick; none if the trace is shorter."""
    count = width_us // TICK_US
    total = sum(size for _, size in ticks[: count - 1])
    for index in range(count - 1, len(ticks)):
        begin_us = ticks[index - count + 1][0]
        total += ticks[index][1]
        yield begin_us, total * 8_000_000 // width_us
        total -= ticks[index - count + 1][1]


def peak_bps(rows: Iterable[Row], column: Column, width_us: int = 200_000, wanted: Callable[[Row], bool] = lambda _: True) -> int:
    """The highest rate over any window of that width; 0 if the trace is shorter."""
    return max((rate for _, rate in windows(per_tick(rows, column, wanted), width_us)), default=0)


def sums(rows: Iterable[Row], column: Column, begin_us: int, end_us: int) -> dict[tuple[str, str, int, str, int], int]:
    """Bytes of each flow in the ticks that begin in [begin, end)."""
    found: defaultdict[tuple[str, str, int, str, int], int] = defaultdict(int)
    for row in rows:
        if begin_us <= row.time_us < end_us:
            found[row.flow] += getattr(row, column)
    return dict(found)
