# SPDX-License-Identifier: Apache-2.0
"""The bottleneck: a `bwb-gateway emulate` between two namespaces, and its control socket."""

import contextlib
import json
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from broker.lab.errors import LabError
from broker.lab.preflight import gateway_binary

Direction = Literal["both", "left-right", "right-left"]
_START_LIMIT_S = 20.0
_ANSWER_LIMIT_S = 10.0
_STOP_LIMIT_S = 5.0
_REALTIME = {None: "try", True: "yes", False: "no"}


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """One link, the same in each direction. `capacity_bps` counts IP bytes plus `framing_bytes` per packet (38: Ethernet)."""

    capacity_bps: int = 1_000_000_000
    delay_us: int = 0  # one way
    buffer_bytes: int = 1_000_000  # the queue limit in front of the transmitter
    loss: float = 0.0  # fraction of the packets
    framing_bytes: int = 0
    mtu_bytes: int = 1500
    seed: int | None = None  # of the random losses; None: chosen at random, and reported in the statistics
    moderate_us: int = 0  # polls at this interval instead of waking up per packet: half the work, and this much additional delay
    realtime: bool | None = None  # real-time priority (SCHED_FIFO) for the emulator; None: if that is permitted

    @property
    def payload_bps(self) -> int:
        """The maximum TCP payload rate: each packet has 20 bytes of IP, 20 of TCP and 12 of timestamps."""
        return self.capacity_bps * (self.mtu_bytes - 52) // (self.mtu_bytes + self.framing_bytes)


class Gateway:
    """A running emulator. A command has taken effect when its method returns."""

    def __init__(self, bottleneck: Bottleneck, namespaces: tuple[str, str], device: str, directory: Path) -> None:
        self.bottleneck = bottleneck
        self.trace = directory / "trace.csv"  # complete after stop(); before that it lags by about 200 ms
        self.socket = directory / "gateway.sock"
        self._log = directory / "gateway.log"
        binary = gateway_binary()
        if binary is None:
            raise LabError("there is no bwb-gateway: `make build` builds it")
        left, right = namespaces
        command = [str(binary), "emulate", "--left", left, "--right", right, "--left-device", device, "--right-device", device]
        command += ["--capacity", str(bottleneck.capacity_bps), "--delay", f"{bottleneck.delay_us}us"]
        command += ["--buffer", str(bottleneck.buffer_bytes), "--loss", f"{bottleneck.loss:.9f}"]
        command += ["--framing", str(bottleneck.framing_bytes), "--mtu", str(bottleneck.mtu_bytes)]
        command += ["--control", str(self.socket), "--trace", str(self.trace), "--until-stdin-closes"]
        command += [] if bottleneck.seed is None else ["--seed", str(bottleneck.seed)]
        command += ["--moderate", f"{bottleneck.moderate_us}us"]
        command += [f"--realtime={_REALTIME[bottleneck.realtime]}"]
        with self._log.open("wb") as log:  # stdin: the emulator ends with this process, in whatever way that ends
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)

    def ready(self) -> None:
        """Wait until the emulator carries packets. Raises LabError."""
        deadline = time.monotonic() + _START_LIMIT_S
        while not self.socket.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise LabError(f"the emulator did not start: {self.last_words()}")
            time.sleep(0.005)

    def set(
        self,
        *,
        capacity_bps: int | None = None,
        delay_us: int | None = None,
        buffer_bytes: int | None = None,
        loss: float | None = None,
        direction: Direction = "both",
    ) -> None:
        """Change the given parameters immediately. `delay_us` is one way."""
        given = {"capacity_bps": capacity_bps, "delay_us": delay_us, "buffer_bytes": buffer_bytes, "loss": loss}
        self._order("set", direction, **{name: value for name, value in given.items() if value is not None})

    def cut(self, direction: Direction = "both") -> None:
        """Drop all packets on the link, and all that arrive, until `restore`."""
        self._order("cut", direction)

    def restore(self, direction: Direction = "both") -> None:
        """Restore the configured rate of one direction, or both."""
        self._order("restore", direction)

    def drop(self, count: int, protocol: Literal["", "tcp", "udp"] = "", port: int = 0, direction: Direction = "both") -> None:
        """Drop the next `count` packets of a kind in each direction; replaces the previous command, and 0 cancels it."""
        self._order("drop", direction, count=count, protocol=protocol, port=port)

    def statistics(self) -> dict[str, Any]:
        """Counters since the start; see `bwb-gateway emulate --help`. Bytes are wire bytes."""
        found: dict[str, Any] = self._order("statistics", "both")["statistics"]
        return found

    def last_words(self) -> str:
        """The end of the emulator's log."""
        return self._log.read_text(errors="replace").strip()[-500:]

    def stop(self) -> None:
        """Stop the emulator and complete the trace. Repeating it is a no-op."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _order(self, operation: str, direction: Direction, **more: Any) -> dict[str, Any]:
        return order(self.socket, {"op": operation, "direction": direction, **more})


def order(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """Send one command to an emulator's control socket; returns its answer. Raises LabError."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ANSWER_LIMIT_S)
            connection.connect(str(path))
            connection.sendall(json.dumps(document).encode() + b"\n")
            with connection.makefile("rb") as lines:
                answer: dict[str, Any] = json.loads(lines.readline() or b"{}")
    except (OSError, ValueError) as error:
        raise LabError(f"the emulator at {path} does not answer: {error}") from None
    if not answer.get("ok"):
        raise LabError(f"the emulator refused {document['op']}: {answer.get('error', 'it is gone')}")
    return answer
