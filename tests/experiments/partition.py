# SPDX-License-Identifier: Apache-2.0
"""The partition with the settings that users have: `python -m tests.experiments.partition --seconds 85` prints its course as JSON.

A file of 1 MB and one of 120 MB at 10 Mb/s; both agents lose the broker as soon as they know of them. Exit status 1 where a file did not
arrive whole, a state is not FINISHED at the end, what was booked went to others meanwhile, or an invariant is broken.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.agents.partition import LARGE, SMALL, Course, Split, play

RATE_BPS = 10_000_000


def holds(course: Course) -> bool:
    return (
        set(course.ended.values()) == {"FINISHED"}
        and all(course.whole.values())
        and all(course.checksums.values())
        and course.least_booked_bps is not None
        and course.least_booked_bps >= RATE_BPS
        and course.audit_clean
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=85, help="how long both agents are cut off (default: 85)")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="bwb-partition-") as directory:
        running = Split(Path(directory))
        try:
            running.start_broker()
            course = play(running, seconds, {SMALL: 1_000_000, LARGE: 120_000_000}, RATE_BPS)
        finally:
            running.stop()
    print(json.dumps(course.document() | {"holds": holds(course)}, indent=1))
    return 0 if holds(course) else 1


if __name__ == "__main__":
    sys.exit(main())
