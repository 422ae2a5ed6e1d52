# SPDX-License-Identifier: Apache-2.0
"""A laboratory with a broker, an agent on each side and something to upload to; and what its trace says of wrapped transfers."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import httpx

from broker.client import ENDED, BrokerClient
from broker.client.documents import Transfer
from broker.core.units import parse_time
from broker.lab import Bottleneck, Lab
from broker.lab.preflight import agent_binary
from broker.lab.trace import TICK_US, Row, per_tick, read

ROOT = Path(__file__).parents[2]
HTTP_PORT = 9000
# Of a full packet of 1500 bytes 1448 are payload: 20 IP, 20 TCP, 12 time stamps.
PACKET, PAYLOAD = 1500, 1448


class Rig:
    def __init__(self, lab: Lab, ports: int) -> None:
        self.lab = lab
        self.agent = str(agent_binary())
        self.state = lab.agents["a"].state_dir
        self.files = lab.directory / "files"
        self.files.mkdir()
        self.to = lab.host("c").address
        self.broker: BrokerClient = lab.broker.client()
        sink = lab.host("c").start(
            [sys.executable, "-m", "tests.lab.sink", self.to, str(HTTP_PORT), str(ports)], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert sink.stdout is not None and sink.stdout.readline() == b"ready\n"

    def file(self, size: int) -> Path:
        """A file of that size (of zeros, which nobody here compresses)."""
        path = self.files / f"f{size}"
        if not path.exists():
            with path.open("wb") as file:
                file.truncate(size)
        return path

    def book(self, volume: int, **more: Any) -> Transfer:
        return self.broker.submit({"source": "a", "destination": "c", "volume_bytes": volume, "mode": "wrapped"} | more)

    def exec(self, transfer: Transfer, command: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
        arguments = [self.agent, "exec", "--transfer", transfer["id"], "--state-dir", str(self.state), "--", *command]
        return self.lab.host("a").start(arguments, stdin=subprocess.DEVNULL, **options)

    def bwb_run(self, options: Sequence[str], command: Sequence[str], **more: Any) -> "subprocess.Popen[Any]":
        environment = os.environ | {"BWB_URL": self.lab.broker.url, "BWB_TOKEN": self.lab.broker.token}
        environment["PATH"] = f"{Path(self.agent).parent}:{environment['PATH']}"
        arguments = [sys.executable, "-m", "broker.cli.app", "run", "--agent-state-dir", str(self.state), *options, "--", *command]
        return self.lab.host("a").start(arguments, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, **more)

    def transfer(self, transfer_id: str) -> Transfer:
        return self.broker.transfer(transfer_id)

    def ended(self, transfer_id: str, seconds: float = 60) -> Transfer:
        """The transfer, when it has ended."""
        shown: list[Transfer] = []

        def over() -> bool:
            shown[:] = [self.transfer(transfer_id)]
            return shown[0]["state"] in ENDED

        wait_for(over, seconds, f"{transfer_id} ends")
        return shown[0]

    def history(self, transfer_id: str) -> list[str]:
        """What happened to a transfer, by the names of its events."""
        headers = {"Authorization": f"Bearer {self.lab.broker.token}"}
        answer = httpx.get(f"{self.lab.broker.url}/v1/transfers/{transfer_id}/events", headers=headers, timeout=10)
        return [event["action"] for event in answer.raise_for_status().json()]

    def signals(self, transfer_id: str) -> list[str]:
        """What its sender said of start signals."""
        told = [event["after"] or {} for event in self.broker.history(transfer_id) if event["action"] == "transfer.signal"]
        return [one["code"] for one in told]

    def trace(self) -> list[Row]:
        """What went from left to right so far."""
        time.sleep(0.3)  # the trace lags
        return [row for row in read(self.lab.gateway.trace) if row.direction == "left-right"]


def wait_for(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")


@contextmanager
def rig(capacity_bps: int, *, ports: int = 100, flags: Sequence[str] = ()) -> Iterator[Rig]:
    """The bottleneck is twice as wide as what the broker knows, so that it measures and does not help."""
    bottleneck = Bottleneck(capacity_bps=2 * capacity_bps, delay_us=5_000, buffer_bytes=2_000_000, realtime=True, moderate_us=200)
    with Lab(left=["a"], right=["c"], bottleneck=bottleneck) as lab:
        lab.start_broker().declare_links(capacity_bps)
        lab.start_agent("a", flags)
        lab.start_agent("c")
        yield Rig(lab, ports)


def booked_bytes(transfer: Transfer, begin_us: int, end_us: int) -> float:
    """What the plan carries in [begin, end), in bytes of payload."""
    total = 0.0
    for segment in transfer["plan"]["segments"]:
        overlap = min(end_us, parse_time(segment["end"])) - max(begin_us, parse_time(segment["begin"]))
        total += max(0, overlap) * segment["rate_bps"] / 8e6
    return total


def deviation(rows: list[Row], transfer: Transfer, ports: range) -> float:
    """By which share more, or less, than booked was sent to the ports, on the whole, while it sent 3 to 90 % of it.

    Before, a command says hello and thinks; after, the slowest of its streams ends alone, or waits for a new booking.
    """
    ticks = per_tick([row for row in rows if row.destination_port in ports], "offered")
    assert ticks, f"nothing was sent to {ports}"
    whole = sum(size for _, size in ticks)
    so_far = list(accumulate(size for _, size in ticks))
    first = next(index for index, size in enumerate(so_far) if size >= 0.03 * whole)
    last = next(index for index, size in enumerate(so_far) if size >= 0.9 * whole)
    sent = (so_far[last] - so_far[first]) * PAYLOAD / PACKET
    return sent / booked_bytes(transfer, ticks[first][0] + TICK_US, ticks[last][0] + TICK_US) - 1


def missing(*tools: str) -> list[str]:
    return [tool for tool in tools if shutil.which(tool) is None]
