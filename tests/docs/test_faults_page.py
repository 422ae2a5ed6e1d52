# SPDX-License-Identifier: Apache-2.0
"""docs/faults.md names tests that exist, and says something in every cell."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs/faults.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| fault ")
]


def test_the_faults_that_were_asked_for_are_there() -> None:
    faults = " ".join(row[0] for row in ROWS)
    for part in (
        "broker is down",
        "agent is killed",
        "cut for 5 s",
        "clock is stepped by 2 s",
        "disk is full",
        "state folder is full",
    ):
        assert part in faults
    for part in ("gone for good", "forged", "replay"):
        assert part in faults


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:40] for row in ROWS])
def test_each_fault_is_shown_by_a_test(row: list[str]) -> None:
    assert len(row) == 4 and all(row), row
    tests = re.findall(r"`([^`]+)::(\w+)`", row[3])
    assert tests, "no test is named"
    for file, name in tests:
        assert re.search(rf"^(async )?(def|func) {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file} has no {name}"
