# SPDX-License-Identifier: Apache-2.0
"""The testbed of RR-6205 (figure 8) in a laboratory: sources a and b, sinks c and d, one bottleneck, a broker, an agent on each host."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from broker.client import BrokerClient
from broker.lab import Bottleneck, Lab
from broker.lab.services import DATA_PORT, AgentProcess
from tests.experiments.endhost.analysis import Count
from tests.experiments.endhost.setting import (
    BUFFER_BYTES,
    CAPACITY_BPS,
    FRAMING_BYTES,
    MODERATE_US,
    MTU_BYTES,
    SEGMENT_BYTES,
    payload_bps,
)
from tests.experiments.endhost.watch import Watch, retransmitted_segments

# Who sends to whom: the first pair moves v, the second 2v.
PAIRS = (("a", "c"), ("b", "d"))
PLAIN_PORT = 7500
LINK = "left-right"

# An END frame: the agents' connections close with it (docs/agent-protocol.md, section 2).
TRAILER_BYTES = 5 + 8 + 32 + 32

# What emulator and stacks add to a round trip: at 0.1 ms it is all of it.
PATH_US = 100

# A booking is made this long before its transfer begins, which is no part of the completion time: some ten round trips of it go into the
# handshakes and the congestion window.
LEAD_US = {100: 500_000, 10_000: 600_000, 100_000: 1_800_000}
_BROKER: dict[str, Any] = {"BWB_MANAGED_LEAD_MS": "100", "BWB_FALLBACK_RATE_BPS": "1000000"}

# The emulator runs at 10, before all: everybody's time is its time. Then who measures, then who sends, then the broker.
_MEASURING, AGENT_PRIORITY, _API_PRIORITY, SINK_NICE = 5, 2, 1, -20

# END, acknowledgements, FIN: what is sent when all data is.
_FAREWELL_BYTES = 3_000

_CLOCK_ERROR_US, _CLOCK_LIMIT_S = 9_000, 90

# A run counts only if the emulator added no more than this to the delay of a packet in the mean; 25 us are usual, and one halt of 20 ms
# in a run is too much.
MAX_LATE_US = 50.0


class Emulator(NamedTuple):
    """What the emulator says of itself, summed since its start over both directions."""

    forwarded: int
    dropped: int
    overrun: int
    late_us: float

    def since(self, earlier: "Emulator") -> "Emulator":
        return Emulator._make(mine - theirs for mine, theirs in zip(self, earlier, strict=True))

    @property
    def mean_late_us(self) -> float:
        return self.late_us / max(self.forwarded, 1)

    def fault(self) -> str | None:
        """Why what was measured meanwhile does not count."""
        if self.overrun:
            return "the emulator lost packets before the link"
        if self.mean_late_us > MAX_LATE_US:
            return f"the emulator was late by more than {MAX_LATE_US:g} us in the mean"
        return None


@dataclass(frozen=True, slots=True)
class File:
    """Random bytes that a source serves, or that have arrived at a sink."""

    path: Path
    size: int
    digest: str


class Stage:
    """What repetitions need. Nothing is set up anew between them but the delay."""

    def __init__(self, lab: Lab, agents: dict[str, AgentProcess], client: BrokerClient) -> None:
        self.lab, self.agents, self.client = lab, agents, client
        self.watches = {sink: Watch(lab.host(sink).namespace, DATA_PORT, TRAILER_BYTES) for _, sink in PAIRS}
        self.plain_watches = {sink: Watch(lab.host(sink).namespace, PLAIN_PORT) for _, sink in PAIRS}
        self._files: dict[tuple[str, int], File] = {}
        self.trace = Trace(lab.gateway.trace)

    def set_rtt(self, rtt_us: int) -> None:
        """Of the whole path, which takes a little itself; the report shows what came out."""
        self.lab.gateway.set(delay_us=max(rtt_us - PATH_US, 0) // 2)

    def round_trip_us(self) -> float:
        """The smallest of some echoes between a source and its sink: propagation, and what emulator and stacks add."""
        source, sink = PAIRS[0]
        command = ["ping", "-q", "-c", "20", "-i", "0.02", self.lab.host(sink).address]
        lines = self.lab.host(source).run(command).stdout.splitlines()
        return float(lines[-1].split("=")[1].split("/")[0]) * 1000

    def file(self, source: str, size: int) -> File:
        """Made once."""
        if (source, size) not in self._files:
            path = self.agents[source].out / f"{size}.dat"
            digest = hashlib.sha256()
            with path.open("wb") as file:
                for begin in range(0, size, 1 << 22):
                    block = os.urandom(min(1 << 22, size - begin))
                    digest.update(block)
                    file.write(block)
            self._files[source, size] = File(path, size, digest.hexdigest())
        return self._files[source, size]

    def clear(self) -> None:
        """Forget what has arrived."""
        for _, sink in PAIRS:
            for path in self.agents[sink].inbox.iterdir():
                if path.is_file():
                    path.unlink()

    def emulator(self) -> Emulator:
        directions = self.lab.gateway.statistics()["directions"].values()
        return Emulator(
            sum(d["forwarded"]["packets"] for d in directions),
            sum(d["dropped"]["overflow"]["packets"] for d in directions),
            sum(d["overrun_packets"] for d in directions),
            sum(d["lateness_us"]["mean"] * d["lateness_us"]["count"] for d in directions),
        )

    def retransmitted_bytes(self) -> int:
        """By both sources since their start; every segment counts as a full one."""
        return SEGMENT_BYTES * sum(retransmitted_segments(self.agents[source].process.pid) for source, _ in PAIRS)

    def submit(self, source: str, sink: str, size: int, **more: Any) -> Any:
        """Book a managed transfer of a file of so many bytes."""
        path = self.file(source, size).path.name
        body = {"source": source, "destination": sink, "volume_bytes": size, "mode": "managed"}
        return self.client.submit(body | {"payload": {"path": path, "overwrite": True, "verify": False}} | more)

    def ended(self, transfer_id: str, size: int, source: str, timeout_s: float) -> Any:
        """The transfer when it has ended. AssertionError unless it brought just the bytes that were sent."""
        deadline = time.monotonic() + timeout_s
        while (found := self.client.transfer(transfer_id))["state"] in ("RESERVED", "ACTIVE"):
            if time.monotonic() > deadline:
                raise AssertionError(f"{transfer_id} has not ended: {found['state']}, {found['waiting_reason']}")
            time.sleep(0.2)
        assert found["state"] == "FINISHED", found
        sent, sink = self.file(source, size), self.agents[dict(PAIRS)[source]]
        same = subprocess.run(["cmp", "--silent", sent.path, sink.inbox / sent.path.name], check=False)  # faster than a digest
        assert same.returncode == 0, found
        return found

    def keep_logs(self, folder: Path) -> None:
        """Before they go with the laboratory."""
        folder.mkdir(parents=True, exist_ok=True)
        for log in (self.lab.directory / "broker.log", self.lab.directory / "gateway.log"):
            shutil.copy(log, folder)
        for name, agent in self.agents.items():
            shutil.copy(agent.log, folder / f"agent-{name}.log")

    def close(self) -> None:
        for watch in (*self.watches.values(), *self.plain_watches.values()):
            watch.close()


class Trace:
    """The emulator's own account: wire bytes that each source offered to the bottleneck, per 10 ms."""

    TICK_US = 10_000

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0

    def skip(self) -> None:
        """What is there by now is of no interest."""
        self._read = self._path.stat().st_size if self._path.exists() else 0

    def offered(self, address: str, since_us: int, payload_bytes: int) -> list[Count]:
        """Payload of a source since an instant, as counts at the ends of the ticks. What it sent in all is `payload_bytes`: the share of

        headers is taken to be the same throughout. The end of the connection, a round trip after the last data, is no part of it.
        """
        with self._path.open() as file:
            file.seek(self._read)
            whole, _, _ = file.read().rpartition("\n")  # the last line may still be being written
            rows = [line.split(",") for line in whole.splitlines()]
        counts, total = [(since_us, 0)], 0
        ticks: dict[int, int] = {}
        for row in rows:
            if row[1:4] == ["left-right", "tcp", address]:
                ticks[int(row[0])] = ticks.get(int(row[0]), 0) + int(row[7])
        last = max((begin for begin, wire in ticks.items() if wire > _FAREWELL_BYTES), default=0)
        for begin, wire in sorted(ticks.items()):
            if begin + self.TICK_US > since_us and wire > 0 and begin <= last:
                total += wire
                counts.append((begin + self.TICK_US, total))
        return [Count(at, wire * payload_bytes / max(total, 1)) for at, wire in counts]


@contextlib.contextmanager
def stage() -> Iterator[Stage]:
    """Everything up, in memory (no disk has a say); everything gone afterwards."""
    bottleneck = Bottleneck(
        capacity_bps=CAPACITY_BPS,
        buffer_bytes=BUFFER_BYTES,
        framing_bytes=FRAMING_BYTES,
        mtu_bytes=MTU_BYTES,
        moderate_us=MODERATE_US,
        realtime=True,
    )
    with contextlib.ExitStack() as undo:
        directory = Path(tempfile.mkdtemp(prefix="bwb-endhost-", dir="/dev/shm"))
        undo.callback(shutil.rmtree, directory, ignore_errors=True)
        lab = undo.enter_context(Lab([source for source, _ in PAIRS], [sink for _, sink in PAIRS], bottleneck, directory=directory))
        broker = lab.start_broker(**_BROKER)
        broker.declare_links(payload_bps())
        # It tells the agents the time; its database may be as slow as it is.
        hasten(json.loads((broker.state_dir / "bwb.json").read_text())["pids"]["api"], _API_PRIORITY)
        agents = {name: lab.start_agent(name, ["--poll", "2s"]) for name in lab.hosts}
        for source, sink in PAIRS:
            hasten(agents[source].process.pid, AGENT_PRIORITY)
            favour(agents[sink].process.pid)
        client = undo.enter_context(broker.client())
        _agree_on_the_time(client)
        made = Stage(lab, agents, client)
        undo.callback(made.close)
        yield made


def favour(pid: int) -> None:
    """Give a process the most of what ordinary ones share. Sinks, who would wake for every single packet before all others, then take many

    at a time; what they have not yet taken has arrived all the same.
    """
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), SINK_NICE)


def _agree_on_the_time(client: BrokerClient) -> None:
    """Wait until all agents know broker time well; as a rule they do at once, but not when they were started on a busy machine."""
    deadline = time.monotonic() + _CLOCK_LIMIT_S
    while (error_us := max(host["clock"]["error_us"] for host in client.hosts() if host["clock"])) > _CLOCK_ERROR_US:
        if time.monotonic() > deadline:
            raise AssertionError(f"an agent knows broker time to {error_us} us only: this machine is too busy")
        time.sleep(1)


def hasten(pid: int, priority: int) -> None:
    """Run a process, all its threads and those to come before all ordinary ones, so that what else this machine does has no say."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(priority))


@contextlib.contextmanager
def measuring() -> Iterator[None]:
    """This thread looks when it wants to look."""
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(_MEASURING))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def interruptible() -> None:
    """TERM ends the experiment as ctrl-C does: what is up goes down first."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
