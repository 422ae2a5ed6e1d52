# SPDX-License-Identifier: Apache-2.0
"""`bwb up` from an empty directory, and again on the same one."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.agents.stack import ROOT, wait_for
from tests.ports import free_port


def _start(state: Path, port: int) -> tuple[float, "subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "broker.cli.app", "up", "--state-dir", str(state), "--port", str(port)]
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for((state / "bwb.json").exists, 60, "bwb up is ready")
    return time.perf_counter() - begin, process


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGINT)
    process.wait(30)


def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bwb-bench-") as directory:
        state, port = Path(directory) / "state", free_port()
        first, process = _start(state, port)
        _stop(process)
        again, process = _start(state, port)
        _stop(process)
    return {"first_start_s": round(first, 2), "second_start_s": round(again, 2)}
