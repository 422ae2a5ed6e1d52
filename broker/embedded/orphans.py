# SPDX-License-Identifier: Apache-2.0
"""End what a killed `bwb up` left running in a state directory. The kernel usually did it (PR_SET_PDEATHSIG); this makes sure.

A pid alone proves nothing, it may belong to a stranger by now: a process is ours when pid and start time are the recorded ones, or
it is in the recorded process group, and its command line or environment names the state directory or its sockets.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from broker.embedded.child import Child
from broker.embedded.home import Home

_PATIENCE_S = 5.0
_CLOCK_SLACK_S = 2.0  # psutil derives start times from the boot time, which moves a little with the wall clock


def record(home: Home, children: list[Child]) -> None:
    """Remember the running children, so that the next `bwb up` can end those that outlive a kill -9."""
    home.remember_children(
        {
            child.name: {"pid": child.pid, "started": child.started, "signal": int(child.program.stop_signal)}
            for child in children
            if child.pid is not None and child.exit_code is None
        }
    )


def end(home: Home, sockets: Path, report: Callable[[str], None]) -> None:
    """End what a killed `bwb up` left running: only processes that are still the recorded ones."""
    marks = (str(home.path), str(sockets))
    found = []
    for name, entry in home.remembered_children().items():
        if group := list(_survivors(entry, marks)):
            report(f"stopping {name} (pid {', '.join(str(process.pid) for process in group)}), left by a bwb up that was killed")
        for process in group:
            _send(process, entry["signal"])
        found += group
    _, stubborn = psutil.wait_procs(found, timeout=_PATIENCE_S)
    for process in stubborn:
        _send(process, signal.SIGKILL)
    psutil.wait_procs(stubborn, timeout=_PATIENCE_S)
    home.remember_children({})


def _survivors(entry: dict[str, Any], marks: tuple[str, str]) -> Iterator[psutil.Process]:
    """The recorded process and the members of its group, which may live on without it."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            same = process.pid == entry["pid"] and abs(process.create_time() - entry["started"]) < _CLOCK_SLACK_S
            member = os.getpgid(process.pid) == entry["pid"] and process.create_time() > entry["started"] - _CLOCK_SLACK_S
            if (same or member) and process.status() != psutil.STATUS_ZOMBIE and _names(process, marks):
                yield process


def _names(process: psutil.Process, marks: tuple[str, str]) -> bool:
    with suppress(psutil.Error):
        if any(mark in word for mark in marks for word in process.cmdline()):
            return True
        return any(mark in value for mark in marks for value in process.environ().values())
    return False


def _send(process: psutil.Process, number: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
