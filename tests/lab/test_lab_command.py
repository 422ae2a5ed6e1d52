# SPDX-License-Identifier: Apache-2.0
"""`bwb lab` as a person uses it: up with a broker and agents, looked at, changed, and gone with ctrl-C."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from broker.cli.app import build
from broker.lab import preflight, registry
from tests.agents.stack import wait_for
from tests.lab import needs

BWB = [sys.executable, "-m", "broker.cli.app"]


class Up:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.name = f"bwblab-{process.pid}-0"

    def bwb(self, *words: str, code: int = 0) -> str:
        """In this process, which is quicker."""
        done = CliRunner().invoke(build(words[0]), words, env=self.environment())
        assert done.exit_code == code, done.output
        return done.stdout if code == 0 else done.stderr

    def run(self, *words: str, code: int = 0) -> str:
        """As a process: `exec` becomes the command."""
        done = subprocess.run([*BWB, *words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def status(self) -> Any:
        (mine,) = [lab for lab in json.loads(self.bwb("lab", "status", "--json")) if lab["name"] == self.name]
        return mine

    def environment(self) -> dict[str, str]:
        record = dict(registry.records()).get(self.name, {})
        place = {"BWB_STATE_DIR": record["broker"]["state_dir"]} if "broker" in record else {}
        return {"BWB_URL": "", **place}


@pytest.fixture
def up() -> Iterator[Up]:
    command = [*BWB, "lab", "up", "--left", "a", "--right", "c", "--capacity", "100M", "--rtt", "4ms", "--buffer", "100k"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield Up(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=40)


@pytest.mark.real_time
@needs.laboratory()
def test_up_used_and_down(up: Up) -> None:
    output = up.process.stdout
    assert output is not None
    said = ""
    while "ctrl-C takes it all down" not in said:
        line = output.readline()
        assert line, said
        said += line
    assert "bwb lab exec a -- ping -c 3 10.71.2.10" in said

    # What it says to try, works.
    record = dict(registry.records())[up.name]
    (export,) = [line for line in said.splitlines() if "export BWB_STATE_DIR=" in line]
    assert export.split("=")[1].split()[0] == record["broker"]["state_dir"]
    out = Path(record["directory"]) / "agents" / "a" / "out" / "big"
    out.write_bytes(os.urandom(2_000_000))
    here = ["--lab", up.name]
    assert "3 received" in up.run("lab", "exec", *here, "a", "--", "ping", "-c", "3", "-i", "0.02", "10.71.2.10")
    submitted = json.loads(up.bwb("transfer", "submit", "a", "c", "--path", "big", "--size-of", str(out), "--json"))
    up.bwb("lab", "set", *here, "--rtt", "6ms", "--loss", "0%", "--direction", "left-right")
    link = up.status()["link"]["directions"]
    assert (link["left-right"]["delay_us"], link["right-left"]["delay_us"]) == (3000, 2000)
    up.bwb("lab", "cut", *here)
    assert all(way["cut"] for way in up.status()["link"]["directions"].values())
    up.bwb("lab", "restore", *here)
    assert up.name in up.bwb("lab", "status")
    inbox = Path(record["directory"]) / "agents" / "c" / "in" / "big"
    wait_for(inbox.exists, 60, "the file has arrived")
    assert inbox.read_bytes() == out.read_bytes(), submitted

    assert "there is no host 'z'; there are a, c" in up.bwb("lab", "exec", *here, "z", "true", code=2)
    assert "nothing to change" in up.bwb("lab", "set", *here, code=2)
    assert "loss" in up.bwb("lab", "set", *here, "--loss", "2", code=2).lower()
    assert "want left-right, right-left or both" in up.bwb("lab", "cut", *here, "--direction", "up", code=1)
    assert "no laboratory nosuch runs" in up.bwb("lab", "cut", "--lab", "nosuch", code=1)

    began = time.monotonic()
    up.process.send_signal(signal.SIGINT)
    up.process.communicate(timeout=40)
    assert up.process.returncode == 0
    assert time.monotonic() - began < 20
    assert not Path(record["directory"]).exists()
    assert up.name not in dict(registry.records())


def test_where_it_cannot_run_it_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setattr(preflight, "_TUN", tmp_path / "tun")
    monkeypatch.setattr(preflight, "gateway_binary", lambda: None)
    reasons = preflight.why_not()
    for reason, way_out in zip(reasons, ("sudo", "install iproute2", "modprobe tun", "make build"), strict=True):
        assert way_out in reason


def test_without_the_right_to_make_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(preflight, "gateway_binary", lambda: Path("here"))
    monkeypatch.setattr(preflight, "_permitted", lambda _command: False)
    (reason,) = preflight.why_not()
    assert "CAP_SYS_ADMIN" in reason
