# SPDX-License-Identifier: Apache-2.0
"""A broker for the laboratory, and the agents of its hosts."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from broker.client import BrokerClient, ClientError, locate
from broker.lab.errors import LabError
from broker.lab.host import Host
from broker.lab.preflight import agent_binary

DATA_PORT = 7411
_START_LIMIT_S = 90.0  # a busy machine with a slow disk; 8 s is usual, most of it initdb


class BrokerProcess:
    """`bwb up` on the control network: its own PostgreSQL, Redis, API and worker."""

    def __init__(self, state_dir: Path, address: str, directory: Path, settings: Mapping[str, str]) -> None:
        self.state_dir = state_dir
        self.log = directory / "broker.log"
        command = [sys.executable, "-m", "broker.cli.app", "up", "--state-dir", str(state_dir), "--host", address, "--port", "0"]
        self.process: subprocess.Popen[Any]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, **_apart(log, settings))

    def ready(self) -> None:
        """Wait until the broker answers. Raises LabError."""
        _until("the broker", self.process, self.log, (self.state_dir / "bwb.json").exists)
        endpoint = locate(self.state_dir)
        self.url, self.token = endpoint.url, endpoint.token

    def client(self) -> BrokerClient:
        """A client of the laboratory's broker."""
        return BrokerClient(self.url, self.token)

    def declare_links(self, capacity_bps: int, mtu_bytes: int | None = None) -> None:
        """Declare the bottleneck to the broker: links `left-right` and `right-left` between the nodes `left` and `right`.

        `capacity_bps` is payload unless `mtu_bytes` is given; Bottleneck.payload_bps minus 1 %, the possible excess of a sender, is
        safe.
        """
        with self.client() as client:
            for source, target in (("left", "right"), ("right", "left")):
                link = {"id": f"{source}-{target}", "source": source, "target": target, "capacity_bps": capacity_bps}
                client.create_link(link | ({} if mtu_bytes is None else {"mtu_bytes": mtu_bytes}))


class AgentProcess:
    """`bwb-agent run` in a host. It serves from `out` and receives into `inbox`."""

    def __init__(self, host: Host, broker: BrokerProcess, home: Path, extra_flags: Sequence[str], nic_bps: int) -> None:
        binary = agent_binary()
        if binary is None:
            raise LabError("there is no bwb-agent: `make build` builds it")
        self.host, self.broker = host, broker
        self.state_dir, self.out, self.inbox = home / "state", home / "out", home / "in"
        self.log, self.trace = home / "agent.log", home / "trace.csv"
        for folder in (self.state_dir, self.out, self.inbox):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        listen = f"{host.address}:{DATA_PORT}"
        command = [str(binary), "run", "--broker", broker.url, "--listen", listen, "--advertise", listen]
        command += ["--state-dir", str(self.state_dir), "--serve", str(self.out), "--receive", str(self.inbox)]
        command += ["--trace", str(self.trace), *extra_flags]
        enrolled = (self.state_dir / "credentials.json").exists()
        environment = {} if enrolled else {"BWB_ENROLMENT_TOKEN": self._token(nic_bps)}
        with self.log.open("ab") as log:
            self.process = host.start(command, **_apart(log, environment))

    def _token(self, nic_bps: int) -> str:
        with self.broker.client() as client:
            return str(client.enrolment_token(self.host.name, self.host.side, nic_bps)["token"])

    def ready(self) -> None:
        """Wait until the broker has received a report of the agent and its clock. Raises LabError."""
        with self.broker.client() as client:

            def heard() -> bool:
                return any(host["name"] == self.host.name and host["clock"] is not None for host in client.hosts())

            _until(f"the agent of {self.host.name}", self.process, self.log, heard)


def _apart(log: IO[bytes], settings: Mapping[str, str]) -> dict[str, Any]:
    """Options of Popen. In a session of its own, so that ctrl-C reaches only this process, which ends the others in order."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BWB_")} | dict(settings)
    return {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "env": environment, "start_new_session": True}


def _until(what: str, process: "subprocess.Popen[Any]", log: Path, done: Callable[[], bool]) -> None:
    """Wait for `done` as long as the process lives. Raises LabError with the end of its log."""
    deadline = time.monotonic() + _START_LIMIT_S
    while not _answered(done):
        if process.poll() is not None or time.monotonic() > deadline:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise LabError(f"{what} is not ready; its log ends with:\n{tail}")
        time.sleep(0.05)


def _answered(done: Callable[[], bool]) -> bool:
    try:
        return done()
    except ClientError:
        return False
