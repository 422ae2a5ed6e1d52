# SPDX-License-Identifier: Apache-2.0
"""No container engine runs where the tests do: so what the container files name is checked against what is there."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from broker.cli import app
from broker.cli.server.serve import DEFAULT_PORT

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "agents" / "bin" / "bwb-agent"
INSTRUCTIONS = {"FROM", "WORKDIR", "RUN", "COPY", "ENV", "ARG", "USER", "EXPOSE", "ENTRYPOINT", "CMD", "VOLUME"}


def _dockerfile() -> list[tuple[str, str]]:
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines if line and not line.startswith("#"))]


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


def _bwb_takes(words: list[str]) -> None:
    """Fails where the command line has no such sub-command or option; runs nothing."""
    command = typer.main.get_command(app.build(words[0]))
    context = command.make_context("bwb", words, resilient_parsing=True)
    name, sub, rest = command.resolve_command(context, words)  # type: ignore[attr-defined]
    assert sub is not None, name
    sub.make_context(name, list(rest), parent=context)


def _agent_takes(words: list[str]) -> None:
    if not AGENT.exists():
        pytest.skip("needs agents/bin/bwb-agent: make build")
    done = subprocess.run([AGENT, *words, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[a-z-]+", done.stdout))


def _there() -> set[str]:
    below = {str(path.relative_to(ROOT)) for folder in ("agents", "packaging") for path in (ROOT / folder).glob("*")}
    return below | {path.name for path in ROOT.iterdir()}


def test_dockerfile_names_what_is_there() -> None:
    stages: list[str] = []
    for word, rest in _dockerfile():
        assert word in INSTRUCTIONS, word
        if word == "FROM":
            image, _, stage = rest.partition(" AS ")
            assert "/" not in image, "no registry host"
            stages.append(stage)
        elif word == "COPY":
            *sources, _ = [part for part in shlex.split(rest) if not part.startswith("--")]
            if origin := re.search(r"--from=(\S+)", rest):
                assert origin[1] in stages[:-1], rest
            else:
                assert set(sources) <= _there(), rest
    assert stages[-2:] == ["agent", "broker"]


def test_dockerfile_pins_what_make_pins() -> None:
    dockerfile, setup, go_mod = ((ROOT / name).read_text() for name in ("Dockerfile", ".ci/setup", "agents/go.mod"))
    uv, go = re.search(r"^UV=(\S+)", setup, re.M), re.search(r"^go (\d+\.\d+)", go_mod, re.M)
    assert uv
    assert f"uv=={uv[1]}" in dockerfile
    assert go
    assert f"FROM golang:{go[1]}-" in dockerfile


def test_nothing_runs_as_root() -> None:
    users = [rest for word, rest in _dockerfile() if word == "USER"]
    assert users == ["65532:65532", "bwb"]


def test_commands_of_the_images_exist() -> None:
    commands = [yaml.safe_load(rest) for word, rest in _dockerfile() if word == "CMD"]
    assert len(commands) == 2
    _bwb_takes(commands[1])
    _agent_takes(commands[0])


@pytest.mark.parametrize("name", ["migrate", "api", "worker"])
def test_compose_commands_exist(name: str) -> None:
    _bwb_takes(_compose()["services"][name]["command"])


def test_compose_agent_exists() -> None:
    _agent_takes(_compose()["services"]["agent"]["command"])


def test_compose_hangs_together() -> None:
    compose = _compose()
    services, targets = compose["services"], {rest.partition(" AS ")[2] for word, rest in _dockerfile() if word == "FROM"}
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        assert "/" not in service["image"], "no registry host"
        if "build" in service:
            assert service["build"]["target"] in targets
        for volume in service.get("volumes", []):
            assert volume.startswith(("$", "./")) or volume.partition(":")[0] in compose["volumes"], volume
    assert services["api"]["ports"] == [f"{DEFAULT_PORT}:{DEFAULT_PORT}"]
    assert ("EXPOSE", str(DEFAULT_PORT)) in _dockerfile()
    assert sum("--beat" in service.get("command", []) for service in services.values()) == 1
