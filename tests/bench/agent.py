# SPDX-License-Identifier: Apache-2.0
"""The agent: memory, idle processor time, and how fast it moves a file when the booking does not hold it back."""

import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from broker.core.units import parse_time
from tests.agents.stack import stack, wait_for
from tests.agents.tcp_info import Sampler

_SIZE = 3_000_000_000
# More than two cores can hash, send, receive and hash again; the margin keeps the broker from booking the rest at what was reached.
_BOOKED = 12_000_000_000
_HANDSHAKE = 10_000  # bytes that come before the first segment begins
_IDLE_S = 20


def measure() -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory(prefix="bwb-bench-") as directory,
        stack(Path(directory), BWB_MANAGED_MARGIN_MS="30000") as running,
    ):
        running.link(100_000_000_000)
        running.enrol()
        agents = [psutil.Process(running.pid(host)) for host in ("dtn-a", "dtn-b")]
        before = [sum(agent.cpu_times()[:2]) for agent in agents]
        time.sleep(_IDLE_S)
        idle = [sum(agent.cpu_times()[:2]) - earlier for agent, earlier in zip(agents, before, strict=True)]
        running.file("big", _SIZE)
        transfer = running.submit("big", _SIZE, rate_max_bps=_BOOKED)
        sampler = Sampler(running.ports["dtn-b"])
        while (done := running.ended(transfer["id"])) is None:
            for _ in range(10):
                sampler.take()
                time.sleep(0.01)
        assert done["state"] == "FINISHED", done
        resident = [_peak_resident(agent.pid) for agent in agents]
        flowing = [sample for sample in sampler.samples if _HANDSHAKE < sample.received < sampler.samples[-1].received]
        wire = (flowing[-1].received - flowing[0].received) * 8e6 / (flowing[-1].at_us - flowing[0].at_us)
        wait_for(running.clean, 10, "the audit is clean")
        whole = _SIZE * 8e6 / (parse_time(done["actual_finish"]) - parse_time(done["actual_start"]))
    return {
        "unpaced_gbps": round(wire / 1e9, 2),
        "unpaced_with_fsync_and_checksum_gbps": round(whole / 1e9, 2),
        "peak_resident_mb": [round(value / 1e6, 1) for value in resident],
        "idle_percent_of_a_core": [round(100 * seconds / _IDLE_S, 2) for seconds in idle],
    }


def _peak_resident(pid: int) -> int:
    """VmHWM: the most that was ever resident, file pages of the binary included."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
