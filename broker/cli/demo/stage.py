# SPDX-License-Identifier: Apache-2.0
"""The processes and folders of one demo. Leaving the stage in any way ends the processes and removes the folders."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import broker
from broker.client import BrokerClient, ClientError, locate

_START_LIMIT_S = 90.0  # a busy laptop with a slow disk; 8 s is usual, most of it initdb
_STOP_LIMIT_S = 20.0
_TAIL_LINES = 15
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StageError(Exception):
    """A process of the demo did not start, or ended."""


class Stage:
    """The processes and folders of a demo, and their cleanup."""

    def __init__(self, state_dir: Path | None, keep: bool) -> None:
        self.keep = keep
        self.folder = Path(tempfile.mkdtemp(prefix="bwb-demo-"))
        self.state_dir = state_dir or self.folder / "broker"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._shielded = self._interrupted = False
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in _ENDING:
            self._handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._shielded = True  # a second ctrl-C must not interrupt the cleanup
        if not self.keep or kind is not None:
            for process in reversed(self._processes.values()):  # agents first: they announce their stop to the broker
                _stop(process)
            shutil.rmtree(self.folder, ignore_errors=True)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._interrupted = True
        if not self._shielded:
            raise KeyboardInterrupt

    def start_broker(self, settings: dict[str, str], meanwhile: Callable[[], None]) -> BrokerClient:
        """Start a broker, or use the one already running on the state directory; `meanwhile` runs while the broker starts."""
        try:
            client = BrokerClient(*_address(self.state_dir), patience_s=0)
            client.links()
        except ClientError:
            command = [sys.executable, "-m", "broker.cli.app", "up", "--state-dir", str(self.state_dir), "--port", "0"]
            self._start("broker", command, settings)
            meanwhile()
            self.until("the broker", (self.state_dir / "bwb.json").exists, "broker")
        else:
            client.close()
            meanwhile()
        return BrokerClient(*_address(self.state_dir))

    def start_agent(self, name: str, url: str, enrolment_token: str) -> None:
        """Start an agent that serves from NAME/out and receives into NAME/in."""
        address = f"127.0.0.1:{_free_port()}"
        home = self.folder / name
        folders = ["--state-dir", str(home / "state"), "--serve", str(home / "out"), "--receive", str(home / "in")]
        trace = ["--trace", str(home / "trace.csv")]
        for folder in ("out", "in"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        command = [str(_agent_binary()), "run", "--broker", url, "--listen", address, "--advertise", address, *folders, *trace]
        self._start(name, command, {"BWB_ENROLMENT_TOKEN": enrolment_token})

    def until(self, what: str, ready: Callable[[], bool], *needed: str) -> None:
        """Wait for `ready` as long as the processes in `needed` live. Raises StageError."""
        deadline = time.monotonic() + _START_LIMIT_S
        while not ready():
            for name in needed:
                if (code := self._processes[name].poll()) is not None:
                    raise StageError(f"{name} ended with exit code {code}")
            if time.monotonic() > deadline:
                raise StageError(f"{what} is not ready after {_START_LIMIT_S:.0f} s")
            time.sleep(0.05)

    def pids(self) -> list[int]:
        """The process ids of all started processes."""
        return [process.pid for process in self._processes.values()]

    def log_tails(self) -> str:
        """The last lines of every log, for an error message."""
        tails = []
        for log in (*sorted(self.folder.glob("*.log")), *sorted((self.state_dir / "logs").glob("*.log"))):
            lines = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
            tails.append("\n".join([f"--- {log.name}", *lines]))
        return "\n".join(tails)

    def _start(self, name: str, command: list[str], settings: dict[str, str]) -> None:
        # In a session of its own, so that ctrl-C reaches only this process, which ends the others in order.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BWB_")} | settings
        self._shielded = True  # from the start of a process until it is recorded
        try:
            with (self.folder / f"{name}.log").open("wb") as log:
                self._processes[name] = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
                )
        finally:
            self._shielded = False
        if self._interrupted:
            raise KeyboardInterrupt


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _address(state_dir: Path) -> tuple[str, str]:
    endpoint = locate(state_dir)
    return endpoint.url, endpoint.token


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _agent_binary() -> Path:
    built = Path(broker.__file__).parent.parent / "agents" / "bin" / "bwb-agent"
    found = built if built.exists() else shutil.which("bwb-agent")
    if found is None:
        raise StageError(f"there is no bwb-agent, neither {built} nor on PATH; `make` builds it")
    return Path(found)
