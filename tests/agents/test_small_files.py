# SPDX-License-Identifier: Apache-2.0
"""Many small files on a busy machine, in little: with a patience of a second most of them begin later than that."""

from pathlib import Path

import pytest

from tests.agents.stack import AGENT, stack
from tests.experiments.small_files import holds, play

pytestmark = [pytest.mark.real_time, 
    pytest.mark.agents,
    pytest.mark.skipif(not AGENT.exists(), reason=f"{AGENT} is not built: run make build"),
]


def test_load_ends_no_transfer(tmp_path: Path) -> None:
    with stack(tmp_path, BWB_START_GRACE_S="1") as running:
        found = play(running, 120, 1, 120)
    assert holds(found), found
