# SPDX-License-Identifier: Apache-2.0
"""docs/host.md speaks of flags that the agent has, and of failures that it reports."""

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.agents

ROOT = Path(__file__).parents[2]
FOREIGN = {"--preserve-env", "--purge", "--now", "--cacert"}  # of sudo, dpkg, systemctl, curl
PAGE = (ROOT / "docs/host.md").read_text()


def help_of(command: str) -> str:
    return subprocess.run(
        [str(ROOT / "agents/bin/bwb-agent"), command, "--help"], capture_output=True, text=True, check=True
    ).stdout


def test_every_flag_exists() -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", help_of("enrol") + help_of("run") + help_of("status") + help_of("doctor")))
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) - FOREIGN <= known
    keys = re.findall(r"^([a-z-]+) = ", PAGE.split("```toml")[1].split("```")[0], re.MULTILINE)
    assert {f"--{key}" for key in keys} <= known


def test_the_failures_are_those_of_the_protocol() -> None:
    section = (ROOT / "docs/agent-protocol.md").read_text().split("## 3. Failure codes")[1].split("\n## ")[0]
    said = PAGE.split("A transfer that fails names the cause:")[1].split("\n\n")[0]
    assert re.findall(r"`([a-z_]+)`", said) == re.findall(r"`([a-z_]+)`", section)
    known = re.findall(r'^\s+\w+ += "([a-z_]+)"', (ROOT / "agents/internal/failure/failure.go").read_text(), re.MULTILINE)
    assert set(known) == set(re.findall(r"`([a-z_]+)`", said))
