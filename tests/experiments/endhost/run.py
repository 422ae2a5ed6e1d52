# SPDX-License-Identifier: Apache-2.0
"""Records of what was measured, one JSON line each, in a file that a second call goes on with."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


class Mismatch(Exception):
    """The file holds records of another setting; the message says which and what to do."""


@dataclass(frozen=True, slots=True)
class Part:
    """One transfer of a run. Times in microseconds from the planned common start."""

    volume_bytes: int
    first_us: int | None  # first payload byte at the bottleneck
    last_us: int  # last payload byte at the receiver


@dataclass(frozen=True, slots=True)
class Segment:
    """A booked rate, and the mean of what was sent while it held."""

    seconds: float
    booked_bps: int
    measured_bps: float


@dataclass(frozen=True, slots=True)
class Run:
    """One repetition of one strategy at one round-trip time."""

    strategy: str
    rtt_us: int
    repetition: int
    completion_us: int
    ideal_us: float
    parts: list[Part]
    retransmitted_bytes: int
    dropped_packets: int
    lateness_us: float  # the emulator's, at the percentile that decides whether the run counts
    gap_us: float | None = None  # ViFi: how long the link stood idle between the two
    segments: list[Segment] = field(default_factory=list)
    discarded: str | None = None  # why it does not count
    stolen: float = 0.0  # share of the processors' time that the hypervisor took


@dataclass(frozen=True, slots=True)
class Steps:
    """One transfer whose booked rate changes: when each change came to effect, and the mean rates between."""

    mechanism: str
    rtt_us: int
    repetition: int
    repacing_us: list[float]
    segments: list[Segment]
    discarded: str | None = None


@dataclass(frozen=True, slots=True)
class Signalling:
    """Durations of one start signal, repeated."""

    rtt_us: int
    cost_us: list[float]


@dataclass(frozen=True, slots=True)
class Echo:
    """The smallest round trip of small packets through the idle bottleneck: what was set, and what emulator and stacks add."""

    rtt_us: int
    measured_us: float


@dataclass(frozen=True, slots=True)
class Control:
    """What the agent's own work cost while it held a sender of `rate_bps`."""

    mechanism: str
    rate_bps: float
    percent_of_a_core: float
    seconds: float


Record = Run | Steps | Signalling | Echo | Control
_KINDS: dict[str, type[Any]] = {kind.__name__.lower(): kind for kind in (Run, Steps, Signalling, Echo, Control)}


class Notebook:
    """The file. Its first line is the setting; a line that was cut off by a crash is left out."""

    def __init__(self, path: Path, setting: dict[str, Any]) -> None:
        self.path = path
        self.records: list[Record] = []
        text = path.read_text() if path.exists() else ""
        if lines := text.splitlines():
            if (found := json.loads(lines[0])) != setting:
                different = ", ".join(sorted(key for key in found | setting if found.get(key) != setting.get(key)))
                raise Mismatch(f"{path} was measured with another {different}; --fresh puts it aside and begins anew")
            self.records = list(_read(lines[1:]))
            if not text.endswith("\n"):
                path.write_text(text + "\n")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(setting) + "\n")

    def add(self, record: Record) -> None:
        self.records.append(record)
        with self.path.open("a") as file:
            file.write(json.dumps({"kind": type(record).__name__.lower(), **asdict(record)}) + "\n")

    def runs(self) -> list[Run]:
        """Those that count."""
        return [record for record in self.records if isinstance(record, Run) and record.discarded is None]

    def done(self) -> Counter[tuple[str, int]]:
        """(strategy, rtt_us) -> repetitions that count."""
        return Counter((run.strategy, run.rtt_us) for run in self.runs())


def _read(lines: Iterable[str]) -> Iterator[Record]:
    for line in lines:
        try:
            fields = json.loads(line)
        except json.JSONDecodeError:
            continue
        kind = _KINDS[fields.pop("kind")]
        if "parts" in fields:
            fields["parts"] = [Part(**part) for part in fields["parts"]]
        if "segments" in fields:
            fields["segments"] = [Segment(**segment) for segment in fields["segments"]]
        yield kind(**fields)
