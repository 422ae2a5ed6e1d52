# SPDX-License-Identifier: Apache-2.0
"""Many small files in one batch on a busy machine: `python -m tests.experiments.small_files --files 1000 --busy 2`, as JSON.

Each is a managed transfer of its own, moved by real agents beside processes that do nothing but compute. Exit status 1 where one did not
finish, or is not whole at the receiver.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.agents.stack import Stack, wait_for

SIZE = 10_000
STATES = ("RESERVED", "ACTIVE", "FINISHED", "FAILED", "EXPIRED")


@contextlib.contextmanager
def busy(number: int) -> Iterator[None]:
    """So many processes that compute."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def play(running: Stack, files: int, loops: int, patience_s: float) -> dict[str, Any]:
    """Move `files` files beside `loops` busy processes; how many transfers ended in which state, and how many files are whole."""
    running.link(1_000_000_000)
    running.enrol()
    digests = {f"f{number}": running.file(f"f{number}", SIZE) for number in range(files)}
    ends = {"source": "dtn-a", "destination": "dtn-b", "volume_bytes": SIZE, "mode": "managed"}
    with busy(loops):
        began = time.monotonic()
        body = [ends | {"payload": {"path": name}} for name in digests]
        items = running.call("POST", "/v1/transfers/batch", 200, json=body)["items"]

        def over() -> bool:
            counted = _counted(running)
            return counted["RESERVED"] + counted["ACTIVE"] == 0

        wait_for(over, patience_s, "all have ended")
        took = time.monotonic() - began
    return {
        "files": files,
        "busy": loops,
        "admitted": sum(item["status"] == 201 for item in items),
        "ended": _counted(running),
        "whole": sum(running.arrived(name) == digest for name, digest in digests.items()),
        "seconds": round(took, 1),
        "audit_clean": running.clean(),
    }


def _counted(running: Stack) -> dict[str, int]:
    return {state: running.call("GET", f"/v1/transfers?state={state}&count=true&limit=1")["total"] for state in STATES}


def holds(found: dict[str, Any]) -> bool:
    return found["admitted"] == found["ended"]["FINISHED"] == found["whole"] == found["files"] and found["audit_clean"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--busy", type=int, default=2, help="processes that only compute (default: 2)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bwb-small-") as directory:
        running = Stack(Path(directory))
        try:
            running.start_broker()
            found = play(running, given.files, given.busy, 600)
        finally:
            running.stop()
    print(json.dumps(found | {"holds": holds(found)}, indent=1))
    return 0 if holds(found) else 1


if __name__ == "__main__":
    sys.exit(main())
