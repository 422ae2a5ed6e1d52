# SPDX-License-Identifier: Apache-2.0
"""A transfer followed on the page from its request to FINISHED: real agents, a real file over real TCP, and its checksum."""

import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agents.stack import AGENT, ROOT, wait_for
from tests.dashboard.running import RunningBroker
from tests.ports import free_port

pytestmark = pytest.mark.real_time

SIZE, RATE = 60_000_000, 80_000_000  # six seconds
HOSTS = {"follow-out": "follow-west", "follow-in": "follow-east"}


@pytest.fixture(scope="module")
def folders(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Two hosts with an agent each, a link between their nodes; the folders that the agents serve."""
    west, east = HOSTS.values()
    for source, target in ((west, east), (east, west)):
        broker.ask("POST", "/v1/links", {"id": f"{source}-{target}", "source": source, "target": target, "capacity_bps": RATE})
    found, agents = {}, []
    for host, node in HOSTS.items():
        home = tmp_path_factory.mktemp(host)
        found[host] = home / "files"
        found[host].mkdir()
        token = broker.ask("POST", "/v1/hosts/enrolment-tokens", {"host": host, "node": node, "nic_bps": 10**10})["token"]
        port = free_port()
        command = [str(AGENT), "run", "--state-dir", str(home / "state"), "--broker", broker.url, "--listen", f"127.0.0.1:{port}"]
        command += ["--advertise", f"127.0.0.1:{port}", "--serve", str(found[host]), "--receive", str(found[host])]
        with (home / "log").open("ab") as log:
            environment = {**os.environ, "BWB_ENROLMENT_TOKEN": token}
            agents.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log))
    wait_for(lambda: {host["name"] for host in broker.ask("GET", "/v1/hosts")} >= set(HOSTS), 30, "both agents are enrolled")
    yield found
    for agent in agents:
        agent.terminate()
    for agent in agents:
        agent.wait(20)


def test_from_the_request_to_the_file(signed_in: Callable[..., Page], broker: RunningBroker, folders: dict[str, Path]) -> None:
    out, into = HOSTS
    content = os.urandom(SIZE)
    (folders[out] / "run7.h5").write_bytes(content)
    page = signed_in("submit", at=f"/request?source={out}&destination={into}&volume_bytes={SIZE}&label=followed")
    form = page.get_by_role("form", name="Request")
    form.get_by_label("Mode").select_option("managed")
    form.get_by_label("File", exact=True).fill("run7.h5")
    book = form.get_by_role("button", name=re.compile("^Book"))
    expect(book).to_be_enabled()
    book.click()
    page.wait_for_url(re.compile(r"/transfers/tr_"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("followed")
    main = page.get_by_role("main")
    expect(main.get_by_text("Reserved").first).to_be_visible()
    expect(main.get_by_text("Active").first).to_be_visible(timeout=30_000)
    expect(main.get_by_text("Finished").first).to_be_visible(timeout=60_000)
    digest = hashlib.sha256(content).hexdigest()
    expect(main.get_by_text(re.compile(digest[:12])).first).to_be_visible()
    assert (folders[into] / "run7.h5").read_bytes() == content
    told = broker.ask("GET", "/v1/transfers/" + page.url.rsplit("/", 1)[1].split("?")[0])
    assert (told["state"], told["checksum"]) == ("FINISHED", f"sha256:{digest}")
