# SPDX-License-Identifier: Apache-2.0
"""The processor time that holding a transfer to its rate costs, sending apart: an unmodified iperf3 at 1 Gb/s, held by the agent.

Between two hosts on one side, past the emulator: what iperf3 and the kernel need for a gigabit is theirs, what the agent and the supervisor
of the command need is counted.
"""

import contextlib
import subprocess
import time

import psutil

from broker.core.units import format_time, volume_of
from broker.lab.preflight import agent_binary
from tests.experiments.endhost.run import Control
from tests.experiments.endhost.stage import Stage

MECHANISMS = ("pacing", "htb", "window")
_RATE_BPS, _SECONDS = 1_000_000_000, 8
_PORT = 7700


def run(stage: Stage, mechanism: str) -> Control:
    source, sink = "a", "b"
    size = volume_of(_RATE_BPS, _SECONDS * 1_000_000)
    server = stage.lab.host(sink).start(["iperf3", "--server", "--one-off", f"--port={_PORT}"], stdout=subprocess.DEVNULL)
    begin = format_time(time.time_ns() // 1000 + 1_500_000)
    asked = {"source": source, "destination": sink, "volume_bytes": size, "mode": "wrapped", "rate_max_bps": _RATE_BPS}
    transfer = stage.client.submit({**asked, "mechanism": mechanism, "not_before": begin})
    agent = stage.agents[source]
    sending = ["iperf3", f"--client={stage.lab.host(sink).address}", f"--port={_PORT}", f"--bytes={size}"]
    command = [
        str(agent_binary()),
        "exec",
        "--quiet",
        "--transfer",
        transfer["id"],
        "--state-dir",
        str(agent.state_dir),
        "--",
        *sending,
    ]
    daemon = psutil.Process(agent.process.pid)
    before = _busy_s(daemon)
    with stage.lab.host(source).start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as supervised:
        supervisor, seconds = psutil.Process(supervised.pid), 0.0
        while supervised.poll() is None:
            with contextlib.suppress(psutil.Error):
                seconds = _busy_s(supervisor)
            time.sleep(0.05)
        said, _ = supervised.communicate()
    assert supervised.returncode == 0, said
    server.wait(10)
    seconds += _busy_s(daemon) - before
    rate = _received_bps(said)
    took = size * 8 / rate
    return Control(mechanism, round(rate), round(100 * seconds / took, 3), round(took, 2))


def _busy_s(process: psutil.Process) -> float:
    """Of the process itself, not of those that it started."""
    return sum(process.cpu_times()[:2])


def _received_bps(said: str) -> float:
    """From the last line of iperf3 about the receiver."""
    (line,) = (line for line in said.splitlines() if "receiver" in line)
    words = line.split()
    unit = next(i for i, word in enumerate(words) if word.endswith("bits/sec"))
    return float(words[unit - 1]) * {"M": 1e6, "G": 1e9, "K": 1e3}[words[unit][0]]
