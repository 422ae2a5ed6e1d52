# SPDX-License-Identifier: Apache-2.0
"""A whole broker (`bwb up`) and two agents as processes, to be driven and killed."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from broker.core.units import format_time
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "agents" / "bin" / "bwb-agent"


def wait_for(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first true value of `condition`; AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if value := condition():
                return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")


class Stack:
    """Nodes A and B, a link each way, host dtn-a at A and dtn-b at B."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self._settings = settings
        self.directory = directory
        self.state = directory / "broker"
        self.ports = {"dtn-a": free_port(), "dtn-b": free_port()}
        self.files = {"dtn-a": directory / "out", "dtn-b": directory / "in"}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.port = free_port()
        for folder in self.files.values():
            folder.mkdir()

    # -- processes ---------------------------------------------------------------------------------------------------------

    def start_broker(self) -> None:
        command = [sys.executable, "-m", "broker.cli.app", "up", "--state-dir", str(self.state), "--port", str(self.port)]
        self._start("broker", command, self._settings)
        wait_for(lambda: (self.state / "bwb.json").exists() and self.ready(), 60, "the broker is ready")

    def ready(self) -> bool:
        return httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200

    def kill_broker(self) -> None:
        """kill -9 of `bwb up` and everything it started."""
        pids = json.loads((self.state / "bwb.json").read_text())["pids"]
        self.kill("broker")
        for pid in pids.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def start_agent(self, host: str, token: str | None = None, *options: str) -> None:
        command = [str(AGENT), "run", "--state-dir", str(self.directory / host), "--broker", self.agents_url]
        command += ["--listen", f"127.0.0.1:{self.ports[host]}", "--advertise", f"127.0.0.1:{self.ports[host]}"]
        command += ["--serve", str(self.files[host]), "--receive", str(self.files[host]), *options]
        self._start(host, command, {"BWB_ENROLMENT_TOKEN": token} if token else {})

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for process in reversed(self._processes.values()):
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        self._processes.clear()

    def _start(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, stdout=log, stderr=log)

    # -- the API -----------------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def agents_url(self) -> str:
        """How agents reach the broker."""
        return self.url

    def call(self, method: str, path: str, expected: int = 200, **options: Any) -> Any:
        token = (self.state / "admin.token").read_text().strip()
        answer = httpx.request(method, f"{self.url}{path}", headers={"Authorization": f"Bearer {token}"}, timeout=20, **options)
        assert answer.status_code == expected, answer.text
        return answer.json() if answer.content else None

    def link(self, capacity_bps: int, available: list[tuple[int, int]] = []) -> None:  # noqa: B006
        steps = [{"from": format_time(at), "bps": bps} for at, bps in available]
        body = {"id": "A-B", "source": "A", "target": "B", "capacity_bps": capacity_bps, "available": steps}
        self.call("POST", "/v1/links", 201, json=body)
        self.call("POST", "/v1/links", 201, json={"id": "B-A", "source": "B", "target": "A", "capacity_bps": capacity_bps})

    def enrol(self, *options: str, nic_bps: int = 100_000_000_000) -> None:
        for host, node in (("dtn-a", "A"), ("dtn-b", "B")):
            made = self.call("POST", "/v1/hosts/enrolment-tokens", 201, json={"host": host, "node": node, "nic_bps": nic_bps})
            self.start_agent(host, made["token"], *options)
        wait_for(lambda: len(self.call("GET", "/v1/hosts")) == 2, 60, "both agents are enrolled")

    def file(self, name: str, size: int) -> str:
        """A file of random bytes at the sender; its SHA-256."""
        digest = hashlib.sha256()
        with (self.files["dtn-a"] / name).open("wb") as file:
            for begin in range(0, size, 1 << 22):
                block = os.urandom(min(1 << 22, size - begin))
                digest.update(block)
                file.write(block)
        return digest.hexdigest()

    def submit(self, name: str, size: int, **more: Any) -> dict[str, Any]:
        body = {
            "source": "dtn-a",
            "destination": "dtn-b",
            "volume_bytes": size,
            "mode": "managed",
            "payload": {"path": name},
            **more,
        }
        submitted: dict[str, Any] = self.call("POST", "/v1/transfers", 201, json=body)
        return submitted

    def transfer(self, transfer_id: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.call("GET", f"/v1/transfers/{transfer_id}")
        return shown

    def ended(self, transfer_id: str) -> dict[str, Any] | None:
        shown = self.transfer(transfer_id)
        return shown if shown["state"] in ("FINISHED", "FAILED", "CANCELED", "EXPIRED") else None

    def arrived(self, name: str) -> str | None:
        path = self.files["dtn-b"] / name
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None

    def clean(self) -> bool:
        return bool(self.call("GET", "/v1/audit")["clean"])


@contextlib.contextmanager
def stack(directory: Path, **settings: str) -> Iterator[Stack]:
    """`settings` are further BWB_* variables of the broker."""
    running = Stack(directory, **settings)
    try:
        running.start_broker()
        yield running
    finally:
        running.stop()
