# SPDX-License-Identifier: Apache-2.0
"""The API compiles in a process of its own: a compiler that has run keeps 130 MB for as long as its process lives."""

import subprocess
import sys
from pathlib import Path

import pytest

from broker import machine_code
from broker.core import scans


def test_machine_code_is_made_apart_and_only_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = []

    def start(command: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        started.append(command[1:])
        (tmp_path / "scans.minimum-187.py311.nbi").touch()
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", start)
    monkeypatch.setattr(scans.minimum, "_cache", type("Cache", (), {"cache_path": str(tmp_path)})())
    machine_code.make()
    machine_code.make()
    assert started == [["-m", "broker.machine_code"]]


def test_what_is_looked_for_is_what_the_compiler_writes() -> None:
    subprocess.run([sys.executable, "-m", "broker.machine_code"], check=True, timeout=300)
    assert machine_code.is_there()
