# SPDX-License-Identifier: Apache-2.0
"""A partition with real agents, in little: the broker's patience is a second or two. tests/experiments/partition.py plays it in full."""

from pathlib import Path

import pytest

from tests.agents.partition import LARGE, SMALL, Split, play
from tests.agents.stack import AGENT

pytestmark = [pytest.mark.real_time, 
    pytest.mark.agents,
    pytest.mark.skipif(not AGENT.exists(), reason=f"{AGENT} is not built: run make build"),
]


def test_what_goes_on_in_a_partition(tmp_path: Path) -> None:
    """The small file is whole long before the mend, and by then counts as failed; the large one is still under way when it is heard again."""
    impatient = {"BWB_START_GRACE_S": "1", "BWB_AGENT_LOST_S": "3", "BWB_LOST_AFTER_S": "2"}
    running = Split(tmp_path, **impatient)
    try:
        running.start_broker()
        course = play(running, 10, {SMALL: 1_000_000, LARGE: 15_000_000}, 10_000_000)
    finally:
        running.stop()
    assert ("FAILED", "agents_lost") in [seen[1:] for seen in course.states[SMALL]], course.states
    assert (("RESERVED", "unheard") in [seen[1:] for seen in course.states[LARGE]]), course.states
    assert course.least_booked_bps is not None and course.least_booked_bps >= 10_000_000, "its sender was sending"
    assert course.ended == {SMALL: "FINISHED", LARGE: "FINISHED"}
    assert all(course.whole.values()) and all(course.checksums.values()), course
    assert course.audit_clean
