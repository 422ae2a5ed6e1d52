# SPDX-License-Identifier: Apache-2.0
"""Agents from the broker itself: the binaries, their checksums, and the install script run for real in a scratch root."""

import asyncio
import hashlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from broker.fleet import agent_files
from broker.fleet.agent_files import PLATFORMS, AgentFiles
from tests.api.problems import problem
from tests.live import Live, live_server
from tests.service import Service, client_of

AGENT = Path(__file__).parents[2] / "agents" / "bin" / "bwb-agent"
needs_agent = pytest.mark.skipif(not AGENT.exists(), reason=f"{AGENT} is not built: run make build")
CONTENT = os.urandom(300_000)


@pytest.fixture
def folder(tmp_path: Path, service: Service) -> Path:
    """The folder that the service hands agents out from, empty."""
    service.app.state.broker.agent_files = AgentFiles(str(tmp_path))
    return tmp_path


async def test_an_agent_is_handed_out_to_anybody(folder: Path, service: Service) -> None:
    (folder / "bwb-agent-linux-arm64").write_bytes(CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    stranger = client_of(service.app, "")
    answer = await stranger.get("/v1/agents/download/linux-arm64")
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["content-length"] == str(len(CONTENT)) and answer.headers["x-checksum-sha256"] == digest
    assert answer.headers["content-type"] == "application/octet-stream"
    tag = answer.headers["etag"]
    again = await stranger.get("/v1/agents/download/linux-arm64", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert (await stranger.get("/v1/agents/download/linux-arm64.sha256")).text == f"{digest}  bwb-agent-linux-arm64\n"
    (folder / "bwb-agent-linux-arm64").write_bytes(CONTENT + b"new")
    later = await stranger.get("/v1/agents/download/linux-arm64", headers={"If-None-Match": tag})
    assert later.status_code == 200 and later.headers["etag"] != tag, "a new file under an old name"


async def test_what_is_not_there_says_what_to_do(folder: Path, service: Service) -> None:
    for suffix in ("", ".sha256"):
        said = problem(await service.client.get(f"/v1/agents/download/linux-arm64{suffix}"), 404, "not-found")
        assert "make packages" in said["detail"] and "BWB_AGENT_FILES" in said["detail"]
    said = problem(await service.client.get("/v1/agents/download/plan9-mips"), 404, "not-found")
    assert all(platform in said["detail"] for platform in PLATFORMS)


@pytest.mark.parametrize(
    "name", ["..%2Fsecret", "%2e%2e%2fsecret", "linux-amd64%00", "linux-amd64%2F..%2F..%2Fsecret", ".", "%2Fetc%2Fpasswd"]
)
async def test_nothing_else_is_handed_out(name: str, folder: Path, service: Service) -> None:
    (folder.parent / "secret").write_text("secret")
    for suffix in ("", ".sha256"):
        answer = await service.client.get(f"/v1/agents/download/{name}{suffix}")
        assert answer.status_code == 404 and "secret" not in answer.text.replace("..", "").replace("secret'", ""), answer.text


def test_the_build_of_this_machine_will_do_for_its_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_files, "_HERE", "linux-amd64")
    (tmp_path / "bwb-agent").write_bytes(b"native")
    files = AgentFiles(str(tmp_path))
    found = files.find("linux-amd64")
    assert found is not None and found.path.name == "bwb-agent" and files.find("linux-arm64") is None
    (tmp_path / "bwb-agent-linux-amd64").write_bytes(b"packaged")
    found = files.find("linux-amd64")
    assert found is not None and found.path.name == "bwb-agent-linux-amd64", "the one that is named so comes first"


async def test_the_script_names_the_address_it_was_asked_at(service: Service) -> None:
    for host in ("broker.example.org:7410", "[2001:db8::7]:7410"):
        answer = await service.client.get("/v1/agents/install.sh", headers={"Host": host})
        assert f"broker=${{BWB_BROKER:-http://{host}}}" in answer.text
    for host in ("evil;x", "$(evil)", "`evil`", "evil}", "e evil", 'e"evil', "evil\\"):
        answer = await service.client.get("/v1/agents/install.sh", headers={"Host": host})
        assert answer.status_code == 400 or (answer.status_code == 200 and "evil" not in answer.text), (host, answer.text)


# -- the script, run -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def live(database_url: str, tmp_path: Path) -> Iterator[Live]:
    with live_server(database_url, tmp_path / "state") as (running, _):
        yield running


def _token(live: Live, host: str) -> str:
    headers = {"Authorization": f"Bearer {live.token}"}
    link = {"id": "A-B", "source": "A", "target": "B", "capacity_bps": 10**9}
    httpx.post(f"{live.url}/v1/links", json=link, headers=headers)
    body = {"host": host, "node": "A", "nic_bps": 10**9}
    made = httpx.post(f"{live.url}/v1/hosts/enrolment-tokens", json=body, headers=headers)
    assert made.status_code == 201, made.text
    return str(made.json()["token"])


def _install(live: Live, root: Path, *options: str, token: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """The one line of the documentation, below `root`."""
    line = f'curl -fsS {live.url}/v1/agents/install.sh | sh -s -- "$@"'
    given = live.environment | {"BWB_ROOT": str(root), "BWB_ENROLMENT_TOKEN": token} | environment
    return subprocess.run(["sh", "-c", line, "sh", *options], env=given, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.real_time
@needs_agent
@pytest.mark.agents
def test_one_line_installs_and_enrols(live: Live, tmp_path: Path, unused_tcp_port_factory: Callable[[], int]) -> None:
    root, token, port = tmp_path / "root", _token(live, "dtn-a"), unused_tcp_port_factory()
    ran = _install(live, root, "--listen", f"127.0.0.1:{port}", f"--advertise=127.0.0.1:{port}", "--tls", token=token)
    assert ran.returncode == 0, ran.stderr
    assert "enrolled as dtn-a" in ran.stdout and "no systemd" in ran.stderr
    assert token not in ran.stdout + ran.stderr
    installed = root / "usr/local/bin/bwb-agent"
    assert installed.read_bytes() == AGENT.read_bytes() and os.access(installed, os.X_OK)
    credentials = root / "var/lib/bwb/credentials.json"
    assert credentials.stat().st_mode & 0o777 == 0o600 and (root / "var/lib/bwb").stat().st_mode & 0o777 == 0o700

    # Again, without a token: brings the binary up to date and leaves what is there.
    configuration = root / "etc/bwb-agent.toml"
    configuration.write_text(configuration.read_text() + "# mine\n")
    before = credentials.read_bytes()
    ran = _install(live, root)
    assert ran.returncode == 0, ran.stderr
    assert credentials.read_bytes() == before and configuration.read_text().endswith("# mine\n")

    # What it says to run, runs.
    command = ran.stderr.strip().splitlines()[-1].removeprefix("bwb-agent:").split()
    agent = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        headers, deadline = {"Authorization": f"Bearer {live.token}"}, time.monotonic() + 20
        while httpx.get(f"{live.url}/v1/hosts/dtn-a", headers=headers).json()["clock"] is None:
            assert time.monotonic() < deadline and agent.poll() is None, "the agent does not report"
            time.sleep(0.05)
    finally:
        agent.terminate()
        agent.wait(20)


@needs_agent
@pytest.mark.agents
def test_what_can_go_wrong_is_said_and_leaves_nothing_half_done(live: Live, tmp_path: Path) -> None:
    root = tmp_path / "root"
    ran = _install(live, root, "--advertise", "127.0.0.1:1", token="bwe_wrong")
    assert ran.returncode != 0 and "unauthorized" in ran.stderr and "the host is not enrolled" in ran.stderr
    other = tmp_path / "other"
    ran = _install(live, other, BWB_BROKER="http://127.0.0.1:9")
    assert ran.returncode != 0 and "cannot download http://127.0.0.1:9/v1/agents/download/" in ran.stderr
    assert not other.exists()
    # Somebody on the way changes the binary.
    forged = tmp_path / "curl"
    forged.write_text('#!/bin/sh\nfor last; do :; done\ncase "$last" in *sha256) exec /usr/bin/env PATH="$REAL" curl "$@" ;; esac\n'
                      'while [ "$1" != -o ]; do shift; done; echo forged >"$2"\n')  # fmt: skip
    forged.chmod(0o755)
    script = httpx.get(f"{live.url}/v1/agents/install.sh").text
    path = os.environ["PATH"]
    given = live.environment | {"BWB_ROOT": str(other), "PATH": f"{tmp_path}:{path}", "REAL": path}
    ran = subprocess.run(["sh"], input=script, env=given, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode != 0 and "SHA-256 is not the one" in ran.stderr, ran.stderr
    assert not other.exists()


async def test_a_script_that_is_cut_off_does_nothing(service: Service, tmp_path: Path) -> None:
    """A connection that breaks while the shell reads: all that happens happens in the last line."""
    script = checked_text(await service.client.get("/v1/agents/install.sh"))
    lines = script.splitlines(keepends=True)
    for end in range(0, len(lines), 7):
        given = {"BWB_ROOT": str(tmp_path / "root"), "PATH": os.environ["PATH"]}
        process = await asyncio.create_subprocess_exec("sh", stdin=-1, stdout=-1, stderr=-1, env=given)
        await process.communicate("".join(lines[:end]).encode())
    assert not (tmp_path / "root").exists()


def checked_text(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return response.text
