# SPDX-License-Identifier: Apache-2.0
"""The page is live, says when it is not, and misses nothing of the time between."""

import os
import signal
from collections.abc import Callable, Iterator

import httpx
import psutil
import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.chromium import Watch
from tests.dashboard.running import RunningBroker
from tests.dashboard.wire import Wire
from tests.embedded.running import until

pytestmark = pytest.mark.real_time


@pytest.fixture
def wire(broker: RunningBroker) -> Iterator[Wire]:
    wire = Wire(broker.url)
    yield wire
    wire.close()


@pytest.fixture
def kill_api(broker: RunningBroker) -> Iterator[Callable[[], None]]:
    """Kills the API process; `bwb up` starts another one on the same port."""

    def kill() -> None:
        before = broker.up.pid("api")
        os.kill(before, signal.SIGKILL)
        until(lambda: not psutil.pid_exists(before) or psutil.Process(before).status() == psutil.STATUS_ZOMBIE, 10)

    yield kill
    until(lambda: _ready(broker), 60, broker.up.said)


def _ready(broker: RunningBroker) -> bool:
    try:
        return broker.client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def book(broker: RunningBroker, label: str) -> str:
    body = {"source": "sacr-cr6", "destination": "sunn-cr6", "volume_bytes": 10**12, "rate_max_bps": 10**9, "label": label}
    return str(broker.ask("POST", "/v1/transfers", body)["id"])


def status(page: Page, text: str) -> None:
    expect(page.get_by_role("banner").get_by_text(text, exact=False).first).to_be_visible(timeout=30_000)


def test_what_happens_shows_without_a_reload(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    page = signed_in("read", at="/transfers?search=live-one")
    status(page, "Live")
    transfer = book(broker, "live-one")
    row = page.get_by_role("row").filter(has_text="live-one")
    expect(row).to_contain_text("Active")
    broker.ask("POST", f"/v1/transfers/{transfer}/cancel")
    expect(row).to_contain_text("Canceled")


def test_a_cut_wire_is_said_and_nothing_is_lost(
    signed_in: Callable[..., Page], broker: RunningBroker, watch: Watch, wire: Wire
) -> None:
    """What happens meanwhile comes with the stream that goes on behind the last event that was heard."""
    watch.allow("ERR_")
    page = signed_in("operate", at="/audit?kind=transfer&text=while-away", base_url=wire.url)
    status(page, "Live")
    wire.cut()
    status(page, "since")
    for number in range(3):
        book(broker, f"while-away {number}")
    with page.expect_request(lambda asked: asked.url.endswith("/v1/events") and "last-event-id" in asked.headers, timeout=30_000):
        wire.mend()
    status(page, "Live")
    for number in range(3):
        expect(page.get_by_role("link", name=f"while-away {number}").first).to_be_visible()


def test_the_api_dies_and_comes_back(
    signed_in: Callable[..., Page], broker: RunningBroker, watch: Watch, kill_api: Callable[[], None]
) -> None:
    watch.allow("ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|status of 503")
    page = signed_in("read", at="/transfers?search=through-death")
    book(broker, "through-death before")
    row = page.get_by_role("row").filter(has_text="through-death")
    expect(row).to_have_count(1)
    kill_api()
    status(page, "since")
    expect(row).to_have_count(1)  # what was known stays on the page
    until(lambda: _ready(broker), 60, broker.up.said)
    book(broker, "through-death after")
    status(page, "Live")
    expect(row).to_have_count(2)
