# SPDX-License-Identifier: Apache-2.0
"""docs/wrapped.md speaks of options that `bwb run` and the agent have."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/wrapped.md").read_text()


def test_every_option_of_bwb_run_is_explained_and_exists() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "broker.cli.app", "run", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "200"},
    ).stdout
    known = set(re.findall(r"--[a-z][a-z-]+", shown)) - {"--help", "--state-dir", "--wait", "--transfers"}
    table = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `--"))
    assert set(re.findall(r"--[a-z][a-z-]+", table)) == known


def test_every_flag_of_the_agent_exists() -> None:
    helps = [
        subprocess.run([str(ROOT / "agents/bin/bwb-agent"), command, "--help"], capture_output=True, text=True, check=True).stdout
        for command in ("run", "exec")
    ]
    for command, text in zip(("run", "exec"), helps, strict=True):
        for used in re.findall(rf"bwb-agent {command} ([^`\n]*?)(?: -- |`|$)", PAGE, re.MULTILINE):
            assert set(re.findall(r"--[a-z][a-z-]+", used)) <= set(re.findall(r"--[a-z][a-z-]+", text)), used
