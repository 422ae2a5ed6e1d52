# SPDX-License-Identifier: Apache-2.0
"""A benchmark of minutes loses nothing that it measured: not when a part fails, not when somebody interrupts it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.bench.__main__ import PARTS
from tests.bench.frame import INTERRUPTED, run


def _measured() -> dict[str, int]:
    return {"figure": 1}


def _skipped() -> dict[str, str]:
    return {"skipped": "no iperf3 on PATH"}


def _failed() -> NoReturn:
    raise RuntimeError("the server is gone")


def _left() -> NoReturn:
    sys.exit("no")


@pytest.mark.parametrize("fault", [_failed, _left])
def test_a_part_that_fails_takes_no_other_down(fault: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    parts = {"first": _measured, "bad": fault, "missing": _skipped, "last": _measured}
    assert run(parts, {"machine": {"cores": 2}}, file) == 1
    said = capsys.readouterr()
    figures = json.loads(said.out)
    assert list(figures) == ["machine", "first", "bad", "missing", "last"]
    assert figures["first"] == figures["last"] == {"figure": 1}
    assert figures["missing"] == {"skipped": "no iperf3 on PATH"}
    assert figures["bad"]["error"] in ("RuntimeError: the server is gone", "SystemExit: no")
    assert "FAILED:    bad" in said.err
    assert json.loads(file.read_text()) == figures


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_measured_outlives_an_interruption(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    parts = {"first": _measured, "long": lambda: os.kill(os.getpid(), number), "never": _measured}
    assert run(parts, {}) == INTERRUPTED
    assert json.loads(capsys.readouterr().out) == {"first": {"figure": 1}, "long": {"error": "interrupted"}}


def test_all_measured_or_said_why_not_is_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert run({"first": _measured, "missing": _skipped}, {}) == 0
    assert "measured:  first" in capsys.readouterr().err


def test_the_command_names_its_parts_and_refuses_others() -> None:
    listed = _command("--list")
    assert (listed.returncode, tuple(listed.stdout.split())) == (0, PARTS)
    assert all((Path(__file__).parent / f"{name}.py").exists() for name in PARTS)
    refused = _command("planer")
    assert refused.returncode == 2
    assert "planner" in refused.stderr


def _command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.bench", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
