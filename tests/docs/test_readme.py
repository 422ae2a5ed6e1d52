# SPDX-License-Identifier: Apache-2.0
"""The README and the code map tell the truth about names."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "agents" / "README.md"]


def _tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return listed.stdout.split("\n")


def test_the_request_path_names_files_in_their_order() -> None:
    """Eight steps; every file named exists, and each layer is named before the ones that it calls."""
    section = (ROOT / "README.md").read_text().split("## One request, file by file")[1].split("## ")[0]
    steps = re.findall(r"^\d\. .*$", section, re.MULTILINE)
    assert [int(step[0]) for step in steps] == list(range(1, len(steps) + 1))
    named = re.findall(r"`((?:broker|agents)/[^`]+)`", section)
    assert len(named) >= 12
    for name in named:
        assert (ROOT / name).exists(), f"README names {name}, which is not there"
    rooms = [name.split("/")[1] for name in named if name.startswith("broker/")]
    first = {room: rooms.index(room) for room in ("api", "desk", "store", "planners", "fleet")}
    assert first["api"] < first["desk"] < first["store"] < first["planners"] < first["fleet"]


def test_the_request_path_is_the_one_that_the_code_takes() -> None:
    """Each named Python file calls into the next: by import, so a path that was refactored away shows."""
    imports = {
        "broker/api/routes/submissions.py": "broker.desk.admission.admit",
        "broker/desk/service/desk.py": "broker.store import bookings",
        "broker/desk/ground/replica.py": "broker.core.calendar",
        "broker/desk/admission/admit.py": "broker.desk.planning.plan",
        "broker/desk/planning/plan.py": "broker.planners import PLANNERS",
        "broker/desk/ground/batch.py": "broker.store",
        "broker/api/routes/agents.py": "broker.fleet.assignments",
        "broker/fleet/reports.py": "broker.desk.lifecycle.transitions",
    }
    for file, wanted in imports.items():
        assert wanted in (ROOT / file).read_text(), f"{file} does not use {wanted} any more"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
    for name in re.findall(r"`((?:broker|tests|docs|migrations|api-spec)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_the_readme_fits_on_a_screen() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 62


def test_every_source_file_names_its_licence() -> None:
    missing = [
        name
        for name in _tracked()
        if name.endswith((".py", ".go", ".ts", ".tsx", ".css", ".mjs"))
        and not name.endswith("/schema.d.ts")  # generated as it stands: `make web` compares it with what would be now
        and (ROOT / name).stat().st_size
        and "SPDX-License-Identifier: Apache-2.0" not in (ROOT / name).read_text()[:300]
    ]
    assert missing == []
