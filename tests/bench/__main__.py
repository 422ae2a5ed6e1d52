# SPDX-License-Identifier: Apache-2.0
"""Run everything, or the parts that are named: python -m tests.bench planner dashboard ..."""

import argparse
import os
import platform
import sys
from importlib import import_module
from pathlib import Path

from tests.bench.frame import run

PARTS = (
    "planner", "optimal", "admission", "memory", "reload", "replan", "streams", "simulation", "startup", "agent", "gateway", "dashboard",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Measure, and print one JSON object with a figure for each part, whatever became of the others. Ends with 1 "
        "when a part failed, with 130 when it was interrupted. A part that cannot run here says why in its place.",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure (all): {', '.join(PARTS)}")
    parser.add_argument("--list", action="store_true", help="name the parts and end")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the object there, after each part")
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    if given.list:
        print("\n".join(PARTS))
        return 0
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    # Imported when its turn comes: what one part lacks stops none of the others.
    parts = {name: lambda name=name: import_module(f"tests.bench.{name}").measure() for name in given.parts or PARTS}
    return run(parts, {"machine": machine}, given.json)


if __name__ == "__main__":
    sys.exit(main())
