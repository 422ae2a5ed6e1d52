# SPDX-License-Identifier: Apache-2.0
"""The agent as a service and as a package: the unit is one that systemd takes, and the packages' scripts do the right thing at the right time.

Building deb and rpm takes a compiler for nfpm and is left to `make packages`.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "broker/api/install/bwb-agent.service"
AGENT = ROOT / "agents/bin/bwb-agent"
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="SKIPPED, whether systemd takes the unit and how tight it is: there is no systemd-analyze here",
)
EXPOSURE = 2.0  # of 10; systemd calls below 2 "OK", and most services have 9


def _analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60, check=False)
    if "unrecognized option" in ran.stderr:
        pytest.skip(f"SKIPPED: this systemd-analyze is too old for {arguments[0]}")
    return ran


@needs_systemd
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(
        UNIT.read_text().replace("/usr/bin/bwb-agent", "/bin/true")
    )  # that the program is there is not the unit's to say
    ran = _analyze("verify", str(unit))
    said = [line for line in ran.stderr.splitlines() if UNIT.name in line]
    assert ran.returncode == 0 and not said, ran.stderr


@needs_systemd
def test_the_unit_is_tight(tmp_path: Path) -> None:
    ran = _analyze("security", "--offline=true", f"--threshold={EXPOSURE * 10:.0f}", "--no-pager", str(UNIT))
    assert ran.returncode == 0, ran.stdout
    loose = tmp_path / UNIT.name
    loose.write_text("[Service]\nExecStart=/bin/true\n")
    assert _analyze("security", "--offline=true", f"--threshold={EXPOSURE * 10:.0f}", str(loose)).returncode != 0, (
        "the check checks nothing"
    )


def test_the_unit_leaves_what_the_agent_needs() -> None:
    settings = re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE)
    filters = [value for name, value in settings if name == "SystemCallFilter"]
    assert filters[-1] == "adjtimex", "the last word: the clock may be read"
    assert "ProtectClock" not in dict(settings), "it forbids adjtimex whatever the filter says"
    assert {"AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"} <= set(dict(settings)["RestrictAddressFamilies"].split())
    assert "ProcSubset" not in dict(settings), "congestion controls and routes are read below /proc/sys and /proc/net"
    assert dict(settings)["CapabilityBoundingSet"] == ""


def test_unit_and_configuration_speak_of_flags_and_folders_that_exist() -> None:
    configuration = (ROOT / "broker/api/install/bwb-agent.toml").read_text()
    exec_start = re.search(r"^ExecStart=/usr/bin/bwb-agent run --config (\S+)$", UNIT.read_text(), re.MULTILINE)
    assert exec_start is not None
    listed = {item["dst"]: item["src"] for item in yaml.safe_load((ROOT / "packaging/nfpm.yaml").read_text())["contents"]}
    assert listed[exec_start[1]] == "broker/api/install/bwb-agent.toml"
    for source in listed.values():
        assert source == "${BINARY}" or (ROOT / source).is_file(), source
    script = (ROOT / "packaging/scripts/after-install").read_text()
    for folder in re.findall(r'= "(/\S+)"', configuration):
        assert folder in script, f"{folder} is not made"
    if AGENT.exists():
        said = subprocess.run([AGENT, "run", "--help"], capture_output=True, text=True, check=True).stdout
        for key in re.findall(r"^([a-z-]+) =", configuration, re.MULTILINE):
            assert f"--{key} " in said


# -- scripts -------------------------------------------------------------------------------------------------------------------------


class Stage:
    """A root in which commands that change a system only write down that they were called."""

    def __init__(self, folder: Path, *, user: bool, enrolled: bool, systemd: bool) -> None:
        self.root = folder / "root"
        self._calls = folder / "calls"
        self._calls.touch()
        commands = folder / "commands"
        commands.mkdir()
        for name in ("useradd", "systemctl", "install", "getent"):
            answer = "exit 2" if name == "getent" and not user else "exit 0"
            (commands / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"{self._calls}"\n{answer}\n')
            (commands / name).chmod(0o755)
        for wanted, path in ((enrolled, "var/lib/bwb/credentials.json"), (systemd, "run/systemd/system/x"), (True, "srv/x")):
            if wanted:
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
                (self.root / path).touch()
        self._path = f"{commands}:{os.environ['PATH']}"

    def run(self, name: str, *arguments: str) -> tuple[list[str], str]:
        """(what was called, what was printed)."""
        self._calls.write_text("")
        script = re.sub(r"(?<= )/(run|var|srv)/", rf"{self.root}/\1/", (ROOT / "packaging/scripts" / name).read_text())
        assert not re.search(r"/(run|var|srv)/", script.replace(f"{self.root}/", "")), "this would touch the machine"
        ran = subprocess.run(
            ["sh", "-c", script, name, *arguments],
            env={"PATH": self._path},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        calls = [line for line in self._calls.read_text().splitlines() if not line.startswith("getent")]
        return calls, ran.stdout


def test_the_user_is_made_once(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    calls, _ = Stage(tmp_path / "1", user=False, enrolled=False, systemd=True).run("before-install", "install")
    assert len(calls) == 1 and calls[0].startswith("useradd --system ")
    (tmp_path / "2").mkdir()
    assert Stage(tmp_path / "2", user=True, enrolled=False, systemd=True).run("before-install", "upgrade", "0.1.0")[0] == []


@pytest.mark.parametrize("arguments", [("configure", ""), ("1",)], ids=["deb", "rpm"])
def test_nothing_starts_before_enrolment(arguments: tuple[str, ...], tmp_path: Path) -> None:
    calls, said = Stage(tmp_path, user=True, enrolled=False, systemd=True).run("after-install", *arguments)
    assert [call for call in calls if call.startswith("install")] and "systemctl enable --quiet bwb-agent.service" in calls
    assert not any(" start" in call or " restart" in call for call in calls)
    assert "not enrolled yet" in said and "bwb-agent enrol" in said


@pytest.mark.parametrize("arguments", [("configure", "0.0.9"), ("2",)], ids=["deb", "rpm"])
def test_an_upgrade_restarts_what_runs(arguments: tuple[str, ...], tmp_path: Path) -> None:
    calls, said = Stage(tmp_path, user=True, enrolled=True, systemd=True).run("after-install", *arguments)
    assert calls[-1] == "systemctl try-restart bwb-agent.service" and said == ""


@pytest.mark.parametrize(
    ("argument", "stops"),
    [("remove", True), ("0", True), ("upgrade", False), ("1", False)],
    ids=["deb", "rpm", "deb upgrade", "rpm upgrade"],
)
def test_only_a_removal_stops_it(argument: str, stops: bool, tmp_path: Path) -> None:
    calls, _ = Stage(tmp_path, user=True, enrolled=True, systemd=True).run("before-remove", argument)
    assert calls == (["systemctl disable --now --quiet bwb-agent.service"] if stops else [])


@pytest.mark.parametrize(("argument", "kept"), [("remove", True), ("0", True), ("upgrade", True), ("purge", False)])
def test_state_goes_with_a_purge_alone(argument: str, kept: bool, tmp_path: Path) -> None:
    stage = Stage(tmp_path, user=True, enrolled=True, systemd=True)
    stage.run("after-remove", argument)
    assert (stage.root / "var/lib/bwb/credentials.json").exists() == kept and (stage.root / "srv/x").exists()


@pytest.mark.parametrize("name", ["before-install", "after-install", "before-remove", "after-remove"])
def test_without_systemd_nothing_fails(name: str, tmp_path: Path) -> None:
    calls, _ = Stage(tmp_path, user=True, enrolled=True, systemd=False).run(name, "remove")
    assert not any(call.startswith("systemctl") for call in calls)
