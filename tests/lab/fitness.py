# SPDX-License-Identifier: Apache-2.0
"""Whether this machine can show what a test looks for that measures time: two cores carry senders, receivers and the link itself."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

import pytest

# Two cores that are busy for three quarters of the time in the mean are both busy for much of it, and whoever has to send now waits. What
# the hypervisor takes comes in pieces of many milliseconds.
MIN_IDLE, MAX_STOLEN = 0.25, 0.01
# One per cent of 200 ms is 2 ms: who wakes up five times as late cannot have sent in time either.
MAX_LATE_S = 0.01
ATTEMPTS = 3
ROOT = Path(__file__).parents[2]


class Processors(NamedTuple):
    """Time of all processors so far, in ticks."""

    total: int
    idle: int
    stolen: int

    @classmethod
    def now(cls) -> "Processors":
        ticks = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return cls(sum(ticks), ticks[3] + ticks[4], ticks[7])

    def starved_since(self, earlier: "Processors") -> str | None:
        """What kept processes waiting in between, if much did."""
        total, idle = self.total - earlier.total, self.idle - earlier.idle
        if idle < MIN_IDLE * total:
            return f"its processors were idle for {idle / total:.1%} of the time only"
        return self.robbed_since(earlier)

    def robbed_since(self, earlier: "Processors", most: float = MAX_STOLEN) -> str | None:
        """What the hypervisor took for others, if that is more than that share."""
        stolen = self.stolen_since(earlier)
        return f"the hypervisor took {stolen:.1%} of its time" if stolen > most else None

    def stolen_since(self, earlier: "Processors") -> float:
        return (self.stolen - earlier.stolen) / max(self.total - earlier.total, 1)


class Sleeper:
    """How late something as simple as waking up is at most. A mean over ten seconds does not show a tenth of one that was lost."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.lab.sleeper"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None and self._process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        self.latest_s = float(self._process.communicate("over\n", timeout=10)[0])

    @property
    def starved(self) -> str | None:
        return f"a process that only sleeps woke up {self.latest_s * 1000:.0f} ms late" if self.latest_s > MAX_LATE_S else None


def shown(play: Callable[[], list[str]]) -> None:
    """Play until nothing is found wrong. Fails when something was wrong twice on a machine that had time for it; skipped where it never had."""
    found: list[str] = []
    fair = 0
    for _ in range(ATTEMPTS):
        before = Processors.now()
        with Sleeper() as sleeper:
            wrong = play()
        if not wrong:
            return
        starved = Processors.now().starved_since(before) or sleeper.starved
        fair += starved is None
        found.append(f"{'; '.join(wrong)} [{starved or 'the machine had time'}]")
        print(found[-1])
        if fair > 1:
            pytest.fail("\n".join(found))
    pytest.skip(f"NOT SHOWN, for this machine was too busy in {ATTEMPTS} attempts: " + " | ".join(found))
