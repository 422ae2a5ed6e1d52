# SPDX-License-Identifier: Apache-2.0
"""Hosts: how they are, what they can do and why, and what an operator does with them."""

import itertools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from broker.core.units import format_time
from tests.dashboard.forms import heading
from tests.dashboard.running import RunningBroker

pytestmark = pytest.mark.real_time

Enter = Callable[..., Page]
NODE = "lbnl59-cr6"
_numbers = itertools.count(1)
CAN_DO = {
    "modes": ["managed", "wrapped"],
    "mechanisms": [
        {"name": "pacing", "available": True},
        {"name": "htb", "available": False, "reason": "needs CAP_NET_ADMIN <b>here</b>"},
    ],
    "signals": {"direct": True, "forged": 0},
    "kernel": "6.12.0",
    "cpus": 16,
}
CLOCK = {"offset_us": -120, "error_us": 300, "adjtimex_error_us": 1500, "synchronised": True}


@dataclass
class Agent:
    """Speaks for a host as its agent does."""

    host: str
    client: httpx.Client

    def report(self, **more: Any) -> None:
        about = {"version": "0.5.0", "data_address": "192.0.2.7:7411", "tls_fingerprint": None, "capabilities": CAN_DO}
        answer = self.client.post(f"/v1/agents/{self.host}/reports", json={"clock": CLOCK, "agent": about, "reports": []} | more)
        assert answer.status_code == 200, answer.text

    def fetch(self) -> dict[str, Any]:
        answer = self.client.get(f"/v1/agents/{self.host}/assignments")
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document


def join(broker: RunningBroker, token: str, host: str) -> Agent:
    body = {"token": token, "data_address": "192.0.2.7:7411", "agent_version": "0.5.0", "capabilities": CAN_DO}
    answer = httpx.post(f"{broker.url}/v1/agents/enrol", json=body)
    assert answer.status_code == 201, answer.text
    return Agent(host, httpx.Client(base_url=broker.url, headers={"Authorization": f"Bearer {answer.json()['agent_token']}"}))


def new_host(broker: RunningBroker) -> Agent:
    """A host that nobody else uses."""
    host = f"dtn-test-{next(_numbers)}"
    made = broker.ask("POST", "/v1/hosts/enrolment-tokens", {"host": host, "node": NODE, "nic_bps": 10**10})
    return join(broker, made["token"], host)


def book(broker: RunningBroker, source: str, **more: Any) -> dict[str, Any]:
    body = {
        "source": source,
        "destination": "pppl-cr6",
        "volume_bytes": 10**12,
        "rate_max_bps": 10**9,
        "label": f"from {source}",
        "mode": "reserve",
    }
    made: dict[str, Any] = broker.ask("POST", "/v1/transfers", body | more)
    return made


def row(page: Page, host: str) -> Locator:
    return page.get_by_role("table", name="Hosts").get_by_role("row").filter(has=page.get_by_role("link", name=host, exact=True))


def test_the_list_says_how_each_host_is(signed_in: Enter, broker: RunningBroker) -> None:
    agent = new_host(broker)
    page = signed_in("read", at=f"/hosts?search={agent.host}")
    expect(row(page, agent.host)).to_contain_text("no plan yet")
    agent.report()
    agent.fetch()
    page.reload()
    found = row(page, agent.host)
    expect(found).to_contain_text(re.compile("Up.*0.5.0.*pacing.*−120.µs ± 300.µs.*as booked"))
    expect(page.get_by_role("button", name="Enrol a host")).to_have_count(0)
    found.get_by_role("link").click()
    expect(heading(page)).to_have_text(agent.host)
    mechanisms = page.get_by_role("table", name="Mechanisms")
    expect(mechanisms.get_by_role("row", name=re.compile("^htb"))).to_contain_text("needs CAP_NET_ADMIN <b>here</b>")
    expect(page.get_by_role("button", name="Drain")).to_have_count(0)


def test_an_older_plan_shows_until_the_agent_fetches_the_new_one(signed_in: Enter, broker: RunningBroker) -> None:
    agent, other = new_host(broker), new_host(broker)
    agent.fetch()
    page = signed_in("operate", at=f"/hosts/{agent.host}")
    expect(page.get_by_text("the newest")).to_be_visible()
    begin = format_time(time.time_ns() // 1000 + 3600 * 10**6)
    made = book(broker, agent.host, destination=other.host, mode="managed", payload={"path": "run7/x.h5"}, not_before=begin)
    expect(page.get_by_text(re.compile("It follows an older plan, .* behind what is booked"))).to_be_visible()
    agent.fetch()
    expect(page.get_by_text("the newest")).to_be_visible(timeout=15_000)
    page.get_by_role("tab", name="Transfers").click()
    expect(page.get_by_role("link", name=made["label"])).to_be_visible()


def test_a_host_is_enrolled_with_the_command_that_is_shown_once(signed_in: Enter, broker: RunningBroker) -> None:
    host = f"dtn-test-{next(_numbers)}"
    page = signed_in("operate", at="/hosts")
    page.get_by_role("button", name="Enrol a host").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(host)
    dialog.get_by_label("Node").fill("no-such-node")
    dialog.get_by_label("NIC").fill("100G")
    dialog.get_by_role("button", name="Make the command").click()
    expect(dialog.get_by_role("alert")).to_contain_text("no-such-node")
    dialog.get_by_label("Node").fill(NODE)
    dialog.get_by_role("button", name="Make the command").click()
    command = dialog.get_by_label("The command", exact=True).inner_text()
    script = rf"curl -fsS {re.escape(broker.url)}/v1/agents/install.sh \| "
    shell = r"BWB_ENROLMENT_TOKEN=(bwe_\S+) sudo --preserve-env=BWB_ENROLMENT_TOKEN sh -s -- "
    found = re.fullmatch(script + shell + rf"--advertise {host}:7411 --tls", command)
    assert found, command
    expect(dialog).to_contain_text(f"Waiting for {host}")
    join(broker, found[1], host)
    expect(dialog).to_contain_text(f"{host} has joined")
    dialog.get_by_role("button", name="Done").click()
    assert found[1] not in page.content()
    expect(row(page, host)).to_contain_text("Up")


def test_a_host_is_drained_and_taken_back(signed_in: Enter, broker: RunningBroker) -> None:
    agent = new_host(broker)
    made = book(broker, agent.host)
    page = signed_in("operate", at=f"/hosts/{agent.host}")
    page.get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("One live transfer goes on as booked")
    expect(dialog.get_by_role("link", name=made["label"])).to_be_visible()
    dialog.get_by_role("button", name="Drain the host").click()
    expect(page.get_by_text("It is drained: it finishes what it has")).to_be_visible()
    assert broker.ask("GET", f"/v1/hosts/{agent.host}")["drained"] is True
    page.get_by_role("button", name="Take transfers again").click()
    page.get_by_role("dialog").get_by_role("button", name="Take transfers again").click()
    expect(page.get_by_text("It is drained: it finishes what it has")).to_have_count(0)
    assert broker.ask("GET", f"/v1/hosts/{agent.host}")["drained"] is False
    page.get_by_role("tab", name="Log").click()
    expect(page.get_by_role("table", name=f"Log of {agent.host}")).to_contain_text("drained: false → true")


def test_a_host_is_removed_by_its_name_when_nothing_is_booked_on_it(signed_in: Enter, broker: RunningBroker) -> None:
    agent = new_host(broker)
    made = book(broker, agent.host)
    page = signed_in("operate", at=f"/hosts/{agent.host}")
    page.get_by_role("button", name="Remove").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It cannot be removed yet: one live transfer begins or ends here")
    expect(dialog.get_by_role("button", name="Remove the host")).to_be_disabled()
    broker.ask("POST", f"/v1/transfers/{made['id']}/cancel")
    confirmation = dialog.get_by_label(f"Type {agent.host} to confirm")
    confirmation.fill("something else")
    expect(dialog.get_by_role("button", name="Remove the host")).to_be_disabled()
    confirmation.fill(agent.host)
    dialog.get_by_role("button", name="Remove the host").click()
    expect(heading(page)).to_have_text("Hosts")
    expect(row(page, agent.host)).to_have_count(0)
    assert broker.client.get(f"/v1/hosts/{agent.host}").status_code == 404


def test_the_plan_of_a_host_is_drawn(signed_in: Enter, broker: RunningBroker) -> None:
    agent = new_host(broker)
    book(broker, agent.host)
    page = signed_in("read", at=f"/hosts/{agent.host}")
    expect(page.get_by_role("application", name=f"Booked from and to {agent.host}: 1 transfers over time")).to_be_visible()
    page.get_by_role("radio", name="In", exact=True).check(force=True)
    expect(page.get_by_text("Nothing is booked here")).to_be_visible()
