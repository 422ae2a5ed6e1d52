# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md is true: its recipes name what is there, its commands exist, and the version stands in one place."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from broker.main import VERSION

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_names_what_is_there(recipe: str) -> None:
    named = [name for name in re.findall(r"`([\w./*-]+)`", RECIPES[recipe]) if "/" in name and not name.startswith("/")]
    assert named
    for name in named:
        assert list(ROOT.glob(name.replace("NAME", "*"))), f"{recipe}: there is no {name}"
    assert re.search(r"^Shown by .*`(tests|agents|broker)/", RECIPES[recipe], re.M), f"no test shows {recipe!r}"


def test_the_five_recipes() -> None:
    assert list(RECIPES) == ["Add a planner", "Add a REST field", "Add a report kind", "Add a mechanism", "Add a dashboard column"]


def test_its_commands_are_targets_of_the_makefile() -> None:
    asked = set(re.findall(r"\bmake ([a-z-]+)", PAGE))
    assert asked >= {"build", "test", "check", "quick"}
    assert asked <= TARGETS


def test_the_hooks_and_the_public_forge_call_the_same_commands() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    for hook in hooks:
        command = hook["entry"].split()
        assert command[-1] in TARGETS if command[0] == "make" else (ROOT / command[0]).exists()
    steps = [
        step["run"]
        for workflow in ("ci", "release")
        for job in _workflow(workflow)["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    assert [re.sub(r" TAG=.*", "", step) for step in steps] == [
        "sudo --preserve-env=CI .ci/run",
        "make release-check",
        "make packages",
    ]


def _workflow(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())
    return found


@pytest.mark.parametrize(
    ("subject", "good"),
    [
        ("desk: move its modules into rooms", True),
        ("api, cli: say which field", True),
        ("Move modules", False),
        ("desk: ends with a full stop.", False),
        ("desk: " + "x" * 70, False),
        ("desk:no space", False),
        ('Revert "desk: move"', True),
    ],
)
def test_subjects_of_commits(subject: str, good: bool, tmp_path: Path) -> None:
    message = tmp_path / "message"
    message.write_text(f"{subject}\n\nWhy.\n")
    assert (subprocess.run([ROOT / ".ci/subject", message], check=False, capture_output=True).returncode == 0) == good


def test_the_version_stands_in_one_place() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version == VERSION
    assert subprocess.check_output([ROOT / "packaging/version"], text=True).strip() == version
    built = subprocess.check_output([ROOT / "packaging/version", "--build"], text=True).strip()
    assert re.fullmatch(re.escape(version) + r"(\+g[0-9a-f]{8,}(\.dirty)?)?", built)
    assert yaml.safe_load((ROOT / "api-spec/openapi.yaml").read_text())["info"]["version"] == version
    assert "version" not in json.loads((ROOT / "broker/dashboard/package.json").read_text())
    assert re.match(
        rf"# Changelog\n\n## {re.escape(version)} \((unreleased|\d{{4}}-\d\d-\d\d)\)\n", (ROOT / "CHANGELOG.md").read_text()
    )


def _release_check(root: Path, tag: str) -> str:
    done = subprocess.run([root / "packaging/release-check", tag], check=False, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else f"refused {done.stderr}"


def test_a_release_is_the_version_and_has_its_section(tmp_path: Path) -> None:
    (tmp_path / "packaging").mkdir()
    for name in ("version", "release-check"):
        (tmp_path / "packaging" / name).write_text((ROOT / "packaging" / name).read_text())
        (tmp_path / "packaging" / name).chmod(0o755)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    changes = tmp_path / "CHANGELOG.md"
    changes.write_text("# Changelog\n\n## 1.2.3 (2026-12-01)\n\n- One thing.\n\n## 1.2.2 (2026-11-01)\n\n- Another.\n")
    assert "may be released" in _release_check(tmp_path, "v1.2.3")
    assert "the tag is v1.2.4" in _release_check(tmp_path, "v1.2.4")
    changes.write_text("# Changelog\n\n## 1.2.3 (unreleased)\n\n- One thing.\n")
    assert "want '## 1.2.3 (YYYY-MM-DD)'" in _release_check(tmp_path, "v1.2.3")
    changes.write_text("# Changelog\n\n## 1.2.3 (2026-12-01)\n\n## 1.2.2 (2026-11-01)\n\n- Another.\n")
    assert "says nothing" in _release_check(tmp_path, "v1.2.3")
