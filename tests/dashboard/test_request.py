# SPDX-License-Identifier: Apache-2.0
"""Request and what-if: from an empty form to a booked transfer, with and without a mouse, and what a refusal leads to."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.dashboard.running import RunningBroker

pytestmark = pytest.mark.real_time

GIGA, TERA = 10**9, 10**12
SOURCE, DESTINATION = "request-west", "request-east"
MAX_TABS = 60


@pytest.fixture(scope="module", autouse=True)
def link(broker: RunningBroker) -> None:
    """Nobody else uses it: what the planners answer is known."""
    broker.ask("POST", "/v1/links", {"id": "request-link", "source": SOURCE, "target": DESTINATION, "capacity_bps": 10 * GIGA})


def at(**form: Any) -> str:
    return "/request?" + urlencode({"source": SOURCE, "destination": DESTINATION} | form)


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def form_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def row(page: Page, planner: str) -> Locator:
    return page.get_by_role("table", name="Offers").get_by_role("row").filter(has_text=planner)


def tab_to(page: Page, wanted: Locator) -> None:
    for _ in range(MAX_TABS):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the Tab key does not come to {wanted}")


def test_from_an_empty_form_to_a_booked_transfer_by_keyboard_alone(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    page = signed_in("submit", at="/request")
    expect(page.get_by_text("Still missing: source, destination, volume.")).to_be_visible()
    form = page.get_by_role("form", name="Request")
    for label, written in (("Source", SOURCE), ("Destination", DESTINATION), ("Volume", "1.5 TB"), ("Label", "<b>by keyboard</b>")):
        tab_to(page, form.get_by_label(label, exact=True))
        page.keyboard.type(written)
        page.keyboard.press("Escape")  # closes the suggestions
    expect(row(page, "VBLS")).to_contain_text("10 Gbit/s")
    book = form.get_by_role("button", name="Book with VBLS")
    expect(book).to_be_enabled()
    tab_to(page, book)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/transfers/tr_"))
    booked = broker.ask("GET", "/v1/transfers/" + page.url.rsplit("/", 1)[1])
    assert (booked["source"], booked["destination"], booked["volume_bytes"]) == (SOURCE, DESTINATION, 3 * TERA // 2)
    assert booked["label"] == "<b>by keyboard</b>" and booked["state"] == "RESERVED"
    broker.ask("POST", f"/v1/transfers/{booked['id']}/cancel")


def test_a_deadline_moved_by_arrow_keys_changes_the_offer(signed_in: Callable[..., Page]) -> None:
    page = signed_in("submit", at=at(volume_bytes=TERA, deadline=in_seconds(7200), planner="alap"))
    finish = row(page, "ALAP").get_by_role("cell").nth(2)
    expect(finish).not_to_have_text("–")
    before, url = finish.inner_text(), page.url
    page.get_by_role("slider", name="Deadline").focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    expect(finish).not_to_have_text(before)
    assert form_of(page)["deadline"] < parse_qs(urlsplit(url).query)["deadline"], "the form follows, and the URL with it"
    offered = finish.locator("time").get_attribute("datetime")
    assert offered is not None and offered[:19] <= form_of(page)["deadline"][0][:19]


def test_a_refusal_says_what_binds_and_its_way_out_is_taken(signed_in: Callable[..., Page]) -> None:
    page = signed_in("submit", at=at(volume_bytes=TERA, deadline=in_seconds(300)))  # it takes 800 s
    expect(row(page, "VBLS")).to_contain_text("Refuses")
    expect(page.get_by_role("button", name="Book with VBLS")).to_be_disabled()
    instead = page.get_by_role("group", name=re.compile("Instead, with VBLS"))
    expect(page.get_by_role("link", name=f"{SOURCE} → {DESTINATION}").first).to_be_visible()
    instead.get_by_role("button", name=re.compile(r"^Deadline")).click()
    expect(row(page, "VBLS")).not_to_contain_text("Refuses")
    expect(page.get_by_role("button", name="Book with VBLS")).to_be_enabled()
    assert form_of(page)["deadline"][0] > in_seconds(700)


def test_the_url_holds_the_form(signed_in: Callable[..., Page]) -> None:
    page = signed_in("read", at=at(volume_bytes=TERA, rate_max_bps=2 * GIGA, compare="fbls", label="sent to you", project="atlas"))
    form = page.get_by_role("form", name="Request")
    expect(form.get_by_label("Label")).to_have_value("sent to you")
    expect(form.get_by_label("Volume", exact=True)).to_have_value(re.compile(r"1\sTB"))
    expect(row(page, "FBLS")).to_contain_text("2 Gbit/s")
    expect(row(page, "ALAP")).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("Book"))).to_have_count(0)
    expect(page.get_by_text("sign in with the scope submit")).to_be_visible()


def test_packets_are_observed_by_ports_that_the_source_host_allows(signed_in: Callable[..., Page]) -> None:
    observed = {"source": "dtn01.nersc", "destination": "dtn01.cern", "mode": "observed"}
    page = signed_in("submit", at=at(volume_bytes=TERA, compare="none", **observed))
    expect(page.get_by_text("Still missing: destination ports.")).to_be_visible()
    ports = page.get_by_role("form", name="Request").get_by_label("To ports")
    expect(ports).to_have_accessible_description("dtn01.nersc allows 1024-65535 of the other host")
    ports.fill("22")
    expect(ports).to_have_accessible_description(re.compile("by destination ports 1024-65535 only"))
    ports.fill("5001-5010")
    expect(row(page, "VBLS")).to_contain_text("dtn01.nersc → ")
    expect(ports).not_to_have_attribute("aria-invalid", "true")


def test_what_is_wrong_stands_at_its_field(signed_in: Callable[..., Page]) -> None:
    page = signed_in("submit", at=at(volume_bytes=TERA, rate_max_bps=GIGA, rate_min_bps=2 * GIGA))
    least = page.get_by_role("form", name="Request").get_by_label("At least")
    expect(least.or_(page.get_by_label("At most")).and_(page.locator("[aria-invalid]")).first).to_be_visible()
    page.goto(at(destination="nowhere", volume_bytes=TERA))
    expect(page.get_by_label("Destination", exact=True)).to_have_attribute("aria-invalid", "true")
