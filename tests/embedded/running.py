# SPDX-License-Identifier: Apache-2.0
"""`bwb up` as a user starts it: a process, its state directory, and everything that belongs to it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

PARTS = ("api", "worker", "postgres", "redis")


@dataclass
class Up:
    """One state directory, and the `bwb up` that runs on it now."""

    state_dir: Path
    environment: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> "Up":
        """Without waiting; its output goes to a file."""
        self.process = self._popen(options or ("--port", "0"))
        return self

    def refused(self, *options: str) -> str:
        """Start one that must give up; what it said."""
        process = self._popen(options or ("--port", "0"))
        assert process.wait(30) == 1, self.said()
        return self.said()

    def _popen(self, options: Sequence[str]) -> subprocess.Popen[bytes]:
        command = [*self.prefix, sys.executable, "-m", "broker.cli.app", "up", "--state-dir", str(self.state_dir), *options]
        with self.output.open("wb") as output:
            return subprocess.Popen(command, cwd="/", env={**_environment(), **self.environment}, stdout=output, stderr=output)

    @property
    def output(self) -> Path:
        return self.state_dir.with_name("output")

    def said(self) -> str:
        return self.output.read_text()

    def info(self) -> dict[str, Any]:
        return json.loads((self.state_dir / "bwb.json").read_text())

    def pid(self, part: str) -> int:
        return self.info()["pids"][part]

    def ready(self, within_s: float = 30) -> "Up":
        def announced() -> bool:
            assert self.process
            assert self.process.poll() is None, self.said()
            return "admin token:" in self.said()  # a bwb.json may still be there from one that was killed

        until(announced, within_s, self.said)
        return self

    def get(self, path: str, token: str | None = None) -> httpx.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.get(self.info()["url"] + path, headers=headers, timeout=15)

    def admin(self, method: str, path: str, body: Any = None) -> httpx.Response:
        token = (self.state_dir / "admin.token").read_text().strip()
        return httpx.request(method, self.info()["url"] + path, json=body, headers={"Authorization": f"Bearer {token}"}, timeout=15)

    def signal(self, number: int) -> None:
        assert self.process
        self.process.send_signal(number)

    def ended(self, within_s: float = 15) -> int:
        assert self.process
        return self.process.wait(within_s)

    def stop(self) -> None:
        self.signal(signal.SIGINT)
        assert self.ended() == 0, self.said()
        assert self.left() == {}

    def left(self) -> dict[int, list[str]]:
        """Whatever still runs and has to do with this state directory, `bwb up` itself included."""
        found = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                about = [*process.cmdline(), *process.environ().values()]
                ours = process.pid != os.getpid() and any(str(self.state_dir) in word for word in about)
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found[process.pid] = process.cmdline()
        return found

    def clear(self) -> None:
        """After a test that failed half-way: end what it started."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
        for pid in self.left():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process:
            self.process.wait(5)


def until(condition: Callable[[], bool], within_s: float, explain: Callable[[], str] = str) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, f"not within {within_s} s: {explain()}"
        time.sleep(0.05)


def _environment() -> Mapping[str, str]:
    """Ours without settings that are meant for another broker."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("BWB_", "PG"))}
