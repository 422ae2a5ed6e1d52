# SPDX-License-Identifier: Apache-2.0
"""The schedule: what is booked when, as a picture and as text, and how one moves in it."""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.dashboard.running import RunningBroker

pytestmark = pytest.mark.real_time

HOUR_S = 3600
Enter = Callable[..., Page]


def chart(page: Page) -> Locator:
    return page.get_by_role("application", name=re.compile("rows of booked transfers"))


def at_url(page: Page) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query).items()}


def rows_of(page: Page) -> int:
    label = chart(page).get_attribute("aria-label") or ""
    return int(label.split()[0])


def test_the_picture_and_the_table_show_the_same(signed_in: Enter, broker: RunningBroker) -> None:
    page = signed_in("read", at="/schedule?span=172800")
    expect(chart(page)).to_have_attribute("aria-label", re.compile("^[1-9]"), timeout=30_000)
    shown = rows_of(page)
    page.get_by_role("tab", name="Table").click()
    table = page.get_by_role("table", name="Booked transfers")
    expect(table).to_have_attribute("aria-rowcount", str(shown + 1))
    assert at_url(page)["show"] == "table"
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save Booked transfers as JSON").click()
    saved = json.loads(saving.value.path().read_text())
    names = {transfer["label"] for transfer in broker.seeded.transfers}
    assert len(saved) == shown and len(names & {row["transfer"] for row in saved}) > shown // 2


def test_one_link_alone(signed_in: Enter, broker: RunningBroker) -> None:
    link = broker.seeded.carrying()
    page = signed_in("read", at="/schedule?span=172800")
    expect(chart(page)).to_have_attribute("aria-label", re.compile("^[1-9]"), timeout=30_000)
    every = rows_of(page)
    page.get_by_label("On", exact=True).select_option(f"link {link}")
    expect(chart(page)).not_to_have_attribute("aria-label", re.compile(f"^{every} "))
    assert at_url(page)["link"] == link
    asked = broker.ask("GET", "/v1/schedule", params={"link": link, "limit": 10_000})
    assert 0 < rows_of(page) < every and asked["items"]
    page.get_by_label("Group by").select_option("project")
    page.get_by_role("tab", name="Table").click()
    expect(page.get_by_role("button", name="Group", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_label("Group by")).to_have_value("project")
    expect(page.get_by_label("On", exact=True)).to_have_value(f"link {link}")


def test_states_are_hidden_and_transfers_found(signed_in: Enter, broker: RunningBroker) -> None:
    page = signed_in("read", at="/schedule?span=172800")
    expect(chart(page)).to_have_attribute("aria-label", re.compile("^[1-9]"), timeout=30_000)
    before = rows_of(page)
    reserved = page.get_by_role("checkbox", name=re.compile("^Reserved"))
    reserved.uncheck()
    expect(chart(page)).not_to_have_attribute("aria-label", re.compile(f"^{before} "))
    assert at_url(page)["hide"] == "RESERVED"
    reserved.check()
    page.get_by_label("Find a transfer").fill("no such transfer at all")
    expect(page.get_by_text("Nothing is booked here")).to_be_visible()


def test_the_keyboard_alone_finds_a_transfer(signed_in: Enter) -> None:
    page = signed_in("read", at="/schedule?span=86400")
    expect(chart(page)).to_have_attribute("aria-label", re.compile("^[1-9]"), timeout=30_000)
    chart(page).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "+", "+"):
        page.keyboard.press(key)
    said = page.locator(".gantt [aria-live]")
    expect(said).to_contain_text(re.compile(r"Step \d+ of \d+: .+bit/s from .+ to "))
    expect(page).to_have_url(re.compile("from="))
    assert float(at_url(page)["span"]) < 86400
    name = said.inner_text().split(",")[0]
    page.keyboard.press("n")
    expect(page).not_to_have_url(re.compile("from="))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/transfers/tr_"))
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)


def test_the_pointer_moves_zooms_and_opens(signed_in: Enter) -> None:
    page = signed_in("read", at="/schedule?span=86400")
    expect(chart(page)).to_have_attribute("aria-label", re.compile("^[1-9]"), timeout=30_000)
    box = chart(page).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    expect(page).to_have_url(re.compile("from="))
    zoomed = at_url(page)
    assert float(zoomed["span"]) < 86400
    page.mouse.down()
    page.mouse.move(x - 100, y - 40, steps=4)
    page.mouse.up()
    expect(page).not_to_have_url(re.compile(f"from={zoomed['from']}"))
    moved = at_url(page)
    assert float(moved["from"]) > float(zoomed["from"]) and moved["span"] == zoomed["span"]
    assert urlsplit(page.url).path == "/schedule", "a drag is no click"
    page.mouse.move(box["x"] + 20, box["y"] + 60)
    expect(page.locator(".schedule-tip")).to_contain_text("bit/s")
    page.mouse.click(box["x"] + 20, box["y"] + 60)
    expect(page).to_have_url(re.compile("/transfers/tr_"))


def many(count: int, steps: int) -> Iterator[dict[str, Any]]:
    """Transfers as /v1/schedule answers them, one beginning every eight seconds."""
    now_us = time.time_ns() // 1000
    for number in range(count):
        begin_us = now_us + (number * 8 - HOUR_S) * 10**6
        segments = [
            [begin_us + step * 60 * 10**6, begin_us + (step + 1) * 60 * 10**6, (step % 7 + 1) * 10**9, 0] for step in range(steps)
        ]
        yield {
            "id": f"tr_{number}", "label": f"Number {number}", "project": None, "source": "a", "destination": "b", "state": "RESERVED",
            "mode": "reserve", "paused": False, "priority": 0, "volume_bytes": None, "start": None, "finish": None, "promised_finish": None,
            "deadline": None, "paths": [["ab"]], "segments": segments,
        }  # fmt: skip


# Texts drawn stand for the work of a frame; its time would measure what else this machine does.
_COUNT_TEXTS = """
() => {
  const draw = CanvasRenderingContext2D.prototype.fillText;
  window.drawn = 0;
  CanvasRenderingContext2D.prototype.fillText = function (...given) { window.drawn += 1; return draw.apply(this, given); };
}
"""


def test_ten_thousand_transfers_cost_what_is_seen(signed_in: Enter) -> None:
    page = signed_in("read")
    answer = json.dumps(
        {"begin": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z", "next": None, "items": list(many(10_000, 10))}
    )

    def serve(route: Route) -> None:
        route.fulfill(status=200, content_type="application/json", body=answer)

    page.route("**/v1/schedule?*", serve)
    page.goto("/schedule?span=172800")
    expect(chart(page)).to_have_attribute("aria-label", re.compile("^10000 "), timeout=30_000)
    page.evaluate(_COUNT_TEXTS)
    page.evaluate("() => document.querySelector('.gantt').scrollTo({ top: 150000 })")
    page.wait_for_function("() => window.drawn > 0")
    drawn = page.evaluate("() => window.drawn")
    assert drawn < 200, f"{drawn} texts drawn for one screen"
