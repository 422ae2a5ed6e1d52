# SPDX-License-Identifier: Apache-2.0
"""The pages' examples, run in order on a fresh broker: what a page shows is what happens. And its tables are those of the code.

In a console block `$ ` begins a command and `> ` continues it; a command that ends in `# exits N` must. The other lines are what it
prints: in that order, with `...` for what changes from run to run. Blocks marked `sh` are not run.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from broker.api.statuses import STATUS
from broker.core.transfer import TRANSITIONS
from broker.settings import Settings
from tests.live import Live, live_server

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "@@ ended with "


@dataclass
class Command:
    text: str
    shown: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        found = re.search(r"# exits (\d+)$", self.text)
        return int(found[1]) if found else 0


def commands(page: str) -> Iterator[Command]:
    for kind, block in _BLOCK.findall(page):
        if kind == "python":
            yield Command(f"{shlex.quote(sys.executable)} -c {shlex.quote(block)}")
            continue
        command: Command | None = None
        for line in block.splitlines():
            if line.startswith("$ "):
                if command is not None:
                    yield command
                command = Command(line[2:])
            elif line.startswith("> ") and command is not None and not command.shown:
                command.text += "\n" + line[2:]
            elif command is not None:
                command.shown.append(line)
        if command is not None:
            yield command


def matches(shown: list[str], printed: str) -> bool:
    """Each shown line is a printed one, in order; runs of blanks are one blank, as columns move with their contents."""
    lines = iter(" ".join(line.split()) for line in printed.splitlines())
    for wanted in shown:
        if wanted == "...":
            continue
        pattern = ".*".join(re.escape(part) for part in " ".join(wanted.split()).split("..."))
        if not any(re.fullmatch(pattern.replace(r"\ .*\ ", " .*"), line) for line in lines):
            return False
    return True


@pytest.fixture
def live(database_url: str, tmp_path: Path) -> Iterator[Live]:
    with live_server(database_url, tmp_path / "state") as (running, _):
        yield running


@pytest.mark.parametrize("name", ["user.md", "operator.md"])
def test_the_examples_do_what_the_page_shows(name: str, live: Live, tmp_path: Path) -> None:
    listed = list(commands((DOCS / name).read_text()))
    assert len(listed) >= 8
    script = "".join(f"{{ {command.text}\n}} 2>&1\nprintf '\\n{_MARK}%s\\n' $?\n" for command in listed)
    environment = live.environment | {"BWB_URL": live.url, "BWB_TOKEN": live.token}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False
    )
    printed = re.split(rf"^{_MARK}(\d+)$\n", ran.stdout, flags=re.MULTILINE)
    assert len(printed) == 2 * len(listed) + 1, ran.stdout + ran.stderr
    for command, output, code in zip(listed, printed[0::2], printed[1::2], strict=False):
        assert int(code) == command.code, (command.text, output)
        assert matches(command.shown, output), (command.text, command.shown, output)
        assert live.token not in output


def test_the_states_of_the_user_page_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| ([A-Z]+) \| ([a-z]+) \| ([A-Z]+) \|$", (DOCS / "user.md").read_text(), re.MULTILINE)
    assert rows == [(str(state), str(action), str(after)) for (state, action), after in TRANSITIONS.items()]


def test_the_refusals_of_the_user_page_are_those_of_the_code() -> None:
    section = (DOCS / "user.md").read_text().split("| last part of `type` |")[1].split("\n\n")[0]
    for row in section.splitlines()[2:]:
        codes, statuses = row.split("|")[1:3]
        for code in re.findall(r"`([a-z-]+)`", codes):
            assert str(STATUS[code]) in statuses, code


def test_the_metrics_of_the_operator_page_are_those_of_the_broker(live: Live) -> None:
    import httpx

    text = httpx.get(f"{live.url}/metrics").text
    exposed = {
        name.removesuffix("_total")
        for name in re.findall(r"^# TYPE (bwb_\w+) ", text, re.MULTILINE)
        if not name.endswith("_created")
    }
    documented = set(re.findall(r"^\| `(bwb_\w+)", (DOCS / "operator.md").read_text(), re.MULTILINE))
    assert {name.removesuffix("_total") for name in documented} == exposed


def test_the_settings_of_the_operator_page_have_those_defaults() -> None:
    rows = re.findall(r"^\| `BWB_(\w+)` \| (\d+) \|", (DOCS / "operator.md").read_text(), re.MULTILINE)
    assert len(rows) >= 6
    for name, default in rows:
        assert Settings.model_fields[name.lower()].default == int(default), name
