# SPDX-License-Identifier: Apache-2.0
"""What a machine that is short of time may spoil is played again; any other failure is final."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FLAKY = '''
from pathlib import Path

import pytest


def late(name):
    """Fails the first time."""
    path = Path(__file__).with_name(name)
    path.write_text(path.read_text() + "." if path.exists() else ".")
    assert path.read_text() != "."


@pytest.mark.real_time
def test_marked():
    late("marked")


def test_fine():
    pass
'''
WRONG = """

def test_unmarked():
    late("unmarked")
"""


@pytest.mark.parametrize(("tests", "status", "runs"), [(FLAKY, 0, {"marked": 2}), (FLAKY + WRONG, 1, {"marked": 2, "unmarked": 1})])
def test_only_what_needs_real_time_is_played_again(tests: str, status: int, runs: dict[str, int], tmp_path: Path) -> None:
    path = tmp_path / "test_them.py"
    path.write_text(tests)
    command: list[str | Path] = [ROOT / ".ci/pytest", "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, path]
    run = subprocess.run(
        command, env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, capture_output=True, text=True, check=False
    )
    assert run.returncode == status, run.stdout + run.stderr
    assert {name: len((tmp_path / name).read_text()) for name in runs} == runs
    assert ("failed for good:\ntest_them.py::test_unmarked" in run.stdout) == bool(status), run.stdout
