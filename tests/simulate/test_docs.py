# SPDX-License-Identifier: Apache-2.0
"""The documentation's commands work, and its figures are still what comes out."""

import csv
import re
import shlex
from pathlib import Path

import pytest

from broker.simulate.paper import REQUESTS, SEEDS, measure, points, summarise
from tests.simulate.command import bwb

ROOT = Path(__file__).parents[2]
COMMANDS = re.findall(r"^\$ bwb simulate (.*)$", (ROOT / "docs/simulation.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    answer = bwb(*shlex.split(command))
    assert (answer.status, answer.err) == (0, "")


def test_the_figures_of_the_paper() -> None:
    with (ROOT / "docs/experiments/vbls-paper.csv").open() as file:
        rows = {(float(row["load"]), row["scheme"], int(row["rmax_channels"])): row for row in csv.DictReader(file)}
    for result in summarise([(point, measure(point)) for point in points([0.5, 0.9], SEEDS, REQUESTS)]):
        row = rows[result.load, result.scheme, result.rmax_channels]
        assert float(row["normalized_delay_s"]) == pytest.approx(result.normalized_delay_s, rel=1e-6)
        assert float(row["ci95_s"]) == pytest.approx(result.ci95_s, rel=1e-6)
