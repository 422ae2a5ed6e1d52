# SPDX-License-Identifier: Apache-2.0
"""One broker for all attacks, and a file for the figures: `pytest tests/abuse --abuse-figures FILE`."""

import json
import os
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.abuse.stage import Stage
from tests.embedded.running import Up

LINK = {"id": "L1", "source": "A", "target": "B", "capacity_bps": 10**11}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--abuse-figures", type=Path, default=None, help="write the figures of the attacks to this file, as JSON")


@pytest.fixture(scope="session")
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="bwb-abuse-") as directory:
        up = Up(Path(directory) / "state")
        try:
            up.start().ready()
            assert up.admin("POST", "/v1/links", LINK).status_code == 201
            made = Stage(up)
            yield made
            up.stop()
        finally:
            up.clear()
    figures: Path | None = request.config.getoption("--abuse-figures", None)
    if figures is not None:
        machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
        figures.write_text(json.dumps({"machine": machine, "attacks": made.figures}, indent=1) + "\n")
