# SPDX-License-Identifier: Apache-2.0
"""`make demo` keeps its promises, and leaves nothing behind, however it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.lab import fitness

pytestmark = [pytest.mark.real_time, pytest.mark.agents]

ROOT = Path(__file__).parents[2]
_LIMIT_S = 120


def start(tmp_path: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "broker.cli.demo", *words]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def leftovers(tmp_path: Path) -> list[str]:
    """Processes and files that name the demo's folder."""
    running = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(tmp_path) in line and process.pid != os.getpid():
            running.append(line)
    return running + [str(path) for path in tmp_path.iterdir()]


_FAULT = re.compile(r"^NOT AS PROMISED: (.*)$", re.MULTILINE)
# No machine is too busy for these.
_NEVER = ("SHA-256 differs", "the audit found", "was not refused")


def _play(tmp_path: Path) -> list[str]:
    """What was not as promised in time; what else is not as it should be fails at once."""
    demo = start(tmp_path)
    try:
        shown, _ = demo.communicate(timeout=_LIMIT_S)
    finally:
        demo.send_signal(signal.SIGTERM)
    assert "counter-offer: done at" in shown, shown
    assert "\x1b" not in shown
    assert leftovers(tmp_path) == []
    faults = _FAULT.findall(shown)
    assert not [fault for fault in faults if any(words in fault for words in _NEVER)], shown
    assert demo.returncode == (1 if faults else 0), shown
    assert faults or ("audit clean, all capacity returned: everything as promised" in shown and shown.count("equal ") == 4), shown
    return faults


def test_everything_is_as_promised(tmp_path: Path) -> None:
    fitness.shown(lambda: _play(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    demo = start(tmp_path)
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("broker at"):
            break
    time.sleep(1)  # agents are about to start
    demo.send_signal(number)
    shown, _ = demo.communicate(timeout=60)
    assert demo.returncode == 130, shown
    assert leftovers(tmp_path) == []
