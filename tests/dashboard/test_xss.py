# SPDX-License-Identifier: Apache-2.0
"""Whatever people may write is shown as text: on no page does it run, load or open anything. Names that have no business with such
characters are refused before they are stored."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.forms import settled
from tests.dashboard.running import RunningBroker

pytestmark = pytest.mark.real_time

PAYLOADS = (
    "<script>alert('script')</script>",
    "<img src=/xss-probe onerror=alert('image')>",
    "\"'><svg/onload=alert('svg')>",
    "javascript:alert('link')",
    "{{constructor.constructor('alert(1)')()}}",
    "</title><iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
)
EVERYTHING = " ".join(PAYLOADS)

# A page of ours has none of these; what was written as text must not have become one.
_FOREIGN = """document.querySelectorAll(
  "iframe, object, embed, base, svg[onload], [onerror], [onload], script:not([src]), a[href^='javascript']").length"""


@pytest.fixture(scope="module")
def written(broker: RunningBroker) -> Iterator[dict[str, Any]]:
    """Payloads in every text that the API takes."""
    link = {"id": "xss-link", "source": "xss-a", "target": "xss-b", "capacity_bps": 10**9}
    broker.ask("POST", "/v1/links", link)
    nodes = [
        {"id": "xss-a", "name": EVERYTHING, "latitude": 40.0, "longitude": -100.0},
        {"id": "xss-b", "latitude": 41.0, "longitude": -101.0},
    ]
    known = broker.ask("GET", "/v1/topology")
    broker.ask("PUT", "/v1/topology", {"links": known["links"], "nodes": [*known["nodes"], *nodes], "prune": False})
    transfer = broker.ask("POST", "/v1/transfers", {
        "source": "xss-a", "destination": "xss-b", "volume_bytes": 10**12, "rate_max_bps": 10**8,
        "label": EVERYTHING, "project": EVERYTHING, "metadata": {EVERYTHING: EVERYTHING},
    })  # fmt: skip
    window = {"begin": "2090-01-01T00:00:00Z", "end": "2090-01-02T00:00:00Z", "reason": EVERYTHING}
    broker.ask("POST", "/v1/links/xss-link/windows", window)
    secret = broker.ask("POST", "/v1/hosts/enrolment-tokens", {"host": "xss-host", "node": "xss-a", "nic_bps": 10**9})["token"]
    about = {
        "token": secret,
        "data_address": "xss.example.org:7411",
        "agent_version": EVERYTHING,
        "capabilities": {"mechanisms": [EVERYTHING], EVERYTHING: EVERYTHING},
    }
    broker.ask("POST", "/v1/agents/enrol", about)
    broker.make_token("read", name=EVERYTHING)
    yield {"transfer": transfer["id"]}
    broker.ask("POST", f"/v1/transfers/{transfer['id']}/cancel")


def test_written_texts_stay_texts(signed_in: Callable[..., Page], written: dict[str, Any]) -> None:
    page = signed_in("admin", "operate", at="/signin")
    probed: list[str] = []
    page.on("request", lambda asked: probed.append(asked.url) if "xss-probe" in asked.url else None)
    shown_on = [
        "/transfers?search=script",
        f"/transfers/{written['transfer']}",
        "/access?search=script",
        "/audit?text=svg",
        "/links/xss-link",
        "/hosts/xss-host",
    ]
    elsewhere = ["/", "/links", "/hosts", "/schedule?link=xss-link", "/request", "/jobs"]
    for address in shown_on + elsewhere:
        page.goto(address)
        settled(page)
        if address in shown_on[:4]:
            expect(page.get_by_text("<img src=/xss-probe onerror=alert('image')>").first).to_be_visible()
        assert page.evaluate(_FOREIGN) == 0, address
    assert probed == []  # and `watch` has seen no dialog


def test_details_of_the_log_stay_texts(signed_in: Callable[..., Page], written: dict[str, Any]) -> None:
    page = signed_in("operate", at=f"/audit?subject={written['transfer']}&action=transfer.admitted")
    page.get_by_role("button", name="Details").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("<svg/onload=alert('svg')>")
    assert page.evaluate(_FOREIGN) == 0


def test_addresses_do_not_run(signed_in: Callable[..., Page]) -> None:
    """All payloads in one value, and alone where only the beginning of a value could run: that of a link."""
    page = signed_in("admin", "operate", at="/signin")
    searches = [
        (path, parameter, EVERYTHING) for path, parameter in (("/transfers", "search"), ("/audit", "text"), ("/access", "search"))
    ]
    for path, parameter, payload in searches + [("/signin", "next", payload) for payload in PAYLOADS]:
        page.goto(f"{path}?{urlencode({parameter: payload})}")
        settled(page)
        assert page.evaluate(_FOREIGN) == 0, (path, payload)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_names_of_things_are_names(broker: RunningBroker, payload: str) -> None:
    link = {"source": "A", "target": "B", "capacity_bps": 1}
    for path, body in (
        ("/v1/links", {**link, "id": payload}),
        ("/v1/links", {**link, "id": "xss-other", "source": payload}),
        ("/v1/hosts/enrolment-tokens", {"host": payload, "node": "sunn-cr6", "nic_bps": 1}),
        ("/v1/transfers", {"source": payload, "destination": "sunn-cr6", "volume_bytes": 1}),
    ):
        assert broker.client.post(path, json=body).status_code == 422, (path, body)
