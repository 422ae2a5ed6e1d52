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
    """One link, the same in each direction. `capacity_bps` counts IP bytes, and `framing_bytes` more for each packet (38: Ethernet)."""

    capacity_bps: int = 1_000_000_000
    delay_us: int = 0  # one way
    buffer_bytes: int = 1_000_000  # may wait for the transmitter
    loss: float = 0.0  # share of the packets
    framing_bytes: int = 0
    mtu_bytes: int = 1500
    seed: int | None = None  # of the random losses; None: drawn, and in the statistics
    moderate_us: int = 0  # it looks for packets so often, instead of waking up for each: half the work, and so much delay more
    realtime: bool | None = None  # the emulator comes before all ordinary processes (SCHED_FIFO); None: where that is allowed

    @property
    def payload_bps(self) -> int:
        """What TCP can carry at most: each packet has 20 bytes of IP, 20 of TCP and 12 of time stamps."""
        return self.capacity_bps * (self.mtu_bytes - 52) // (self.mtu_bytes + self.framing_bytes)


class Gateway:
    """A running emulator. Every order is carried out when its method returns."""

    def __init__(self, bottleneck: Bottleneck, namespaces: tuple[str, str], device: str, directory: Path) -> None:
        self.bottleneck = bottleneck
        self.trace = directory / "trace.csv"  # complete after stop(); before, it lags by some 200 ms
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
        with self._log.open("wb") as log:  # stdin: it ends when we do, however we end
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)

    def ready(self) -> None:
        """Wait until it carries packets. Raises LabError."""
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
        """Change what is given, at once. `delay_us` is one way."""
        given = {"capacity_bps": capacity_bps, "delay_us": delay_us, "buffer_bytes": buffer_bytes, "loss": loss}
        self._order("set", direction, **{name: value for name, value in given.items() if value is not None})

    def cut(self, direction: Direction = "both") -> None:
        """Lose what is on the link, and all that comes, until `restore`."""
        self._order("cut", direction)

    def restore(self, direction: Direction = "both") -> None:
        """Give a direction, or both, its configured rate back."""
        self._order("restore", direction)

    def drop(self, count: int, protocol: Literal["", "tcp", "udp"] = "", port: int = 0, direction: Direction = "both") -> None:
        """Lose the next `count` packets of a kind in each direction; replaces the order of before, 0 takes it back."""
        self._order("drop", direction, count=count, protocol=protocol, port=port)

    def statistics(self) -> dict[str, Any]:
        """Since the start; `bwb-gateway emulate --help` explains. Bytes are wire bytes."""
        found: dict[str, Any] = self._order("statistics", "both")["statistics"]
        return found

    def last_words(self) -> str:
        """The end of its log."""
        return self._log.read_text(errors="replace").strip()[-500:]

    def stop(self) -> None:
        """End it; the trace is complete then. A second time is a no-op."""
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
    """One order to an emulator's control socket, and its answer. Raises LabError."""
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
