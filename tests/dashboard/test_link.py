# SPDX-License-Identifier: Apache-2.0
"""The list of links, and one link: its picture, its windows, and what they do to promises."""

import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from broker.core.units import US_PER_S, format_time
from tests.dashboard.running import RunningBroker

pytestmark = pytest.mark.real_time

GIGA = 10**9
HOUR_US = 3600 * US_PER_S
Enter = Callable[..., Page]


def _lonely(broker: RunningBroker, name: str) -> str:
    """A link of 10 Gbit/s between two nodes that nothing else touches."""
    broker.ask("POST", "/v1/links", {"id": name, "source": f"{name}-a", "target": f"{name}-b", "capacity_bps": 10 * GIGA})
    return name


def _book(broker: RunningBroker, link: str, **more: Any) -> dict[str, Any]:
    """It takes all of the link for half an hour, from an hour from now on."""
    begin_us = time.time_ns() // 1000 + HOUR_US
    asked = {
        "source": f"{link}-a", "destination": f"{link}-b", "volume_bytes": 10 * GIGA * 1800 // 8, "not_before": format_time(begin_us),
        "deadline": format_time(begin_us + 2 * HOUR_US), "label": f"nightly copy on {link}", "project": "copies",
    }  # fmt: skip
    booked: dict[str, Any] = broker.ask("POST", "/v1/transfers", asked | more)
    return booked


def test_the_list_finds_sorts_and_leads_on(signed_in: Enter, broker: RunningBroker) -> None:
    page = signed_in("read", at="/links")
    table = page.get_by_role("region", name="Links")
    busiest = broker.seeded.carrying()
    page.get_by_label("Search links").fill(busiest)
    expect(table.get_by_role("row")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"search="))
    expect(table.get_by_role("meter")).to_be_visible()
    page.get_by_label("Search links").fill("cern513")
    expect(page).to_have_url(re.compile(r"search=cern513"))  # it waits for the end of typing
    table.get_by_role("button", name="Capacity").click()
    expect(page).to_have_url(re.compile(r"sort=capacity"))
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save Links as CSV").click()
    lines = saved.value.path().read_text().splitlines()
    assert "name" in lines[0] and len(lines) > 1 and all("cern513" in line for line in lines[1:])
    table.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("cern513")


def test_the_picture_names_who_holds_what_and_leads_there(signed_in: Enter, broker: RunningBroker) -> None:
    link = _lonely(broker, "picture")
    transfer = _book(broker, link)
    middle = int(time.time()) + 3600 + 900
    page = signed_in("read", at=f"/links/{link}?at={middle}")
    moment = page.get_by_role("region", name="Who holds what at one instant")
    expect(moment).to_contain_text("Held")
    expect(moment.get_by_role("listitem")).to_contain_text([re.compile(rf"{transfer['label']}.*10.Gbit/s")])
    # Stacked by project it is in the layer of its project.
    page.get_by_role("radio", name="By project").check()
    expect(page.get_by_role("list", name="Legend")).to_contain_text("copies")
    # A click holds another instant: before the transfer begins nothing is booked.
    area = page.locator(".u-over")
    box = area.bounding_box()
    assert box is not None
    for _ in range(10):  # the picture is drawn anew meanwhile, and a click on the old one is lost
        area.click(position={"x": 3, "y": box["height"] / 2})
        if "Nothing is booked then" in moment.inner_text():
            break
        page.wait_for_timeout(200)
    expect(moment).to_contain_text("Nothing is booked then")
    moment.get_by_role("button", name="Let go").click()
    expect(moment).to_contain_text("Now")
    # The same in words.
    page.get_by_role("tab", name="Transfers").click()
    page.get_by_role("region", name="Transfers on this link").get_by_role("link", name=transfer["label"]).click()
    expect(page).to_have_url(re.compile(f"/transfers/{transfer['id']}"))


def test_zooming_asks_again_and_keeps_the_old_picture(signed_in: Enter, broker: RunningBroker) -> None:
    page = signed_in("read", at=f"/links/{quote(broker.seeded.carrying(), safe='')}?span=7d")
    plot = page.get_by_role("application")
    expect(plot).to_be_visible()
    plot.focus()
    with page.expect_request(re.compile(r"/bookings\?")) as asked:
        for _ in range(6):
            page.keyboard.press("+")
    assert "points=" in asked.value.url
    expect(plot).to_be_visible()
    expect(page).to_have_url(re.compile(r"from=.*to="))
    page.keyboard.press("Home")
    expect(page).not_to_have_url(re.compile(r"from="))
    page.get_by_role("tab", name="Table").click()
    expect(page.get_by_role("region", name="Capacity, booked and measured rate").get_by_role("row").nth(1)).to_be_visible()


def test_a_window_says_what_it_breaks_and_then_breaks_it(signed_in: Enter, broker: RunningBroker) -> None:
    link = _lonely(broker, "window")
    late = _book(broker, link)
    page = signed_in("operate", at=f"/links/{link}?span=6h")
    page.get_by_role("button", name="New window").click()
    dialog = page.get_by_role("dialog", name="New window")
    dialog.get_by_label("Begin").fill(_input(page, 0.5))
    dialog.get_by_label("End").fill(_input(page, 5))
    dialog.get_by_label("Reason").fill("Splice <b>in</b> the tunnel")
    dialog.get_by_role("button", name="See what it breaks").click()
    expect(dialog).to_contain_text("1 promise would be broken")
    row = dialog.get_by_role("row", name=late["label"])
    expect(row).to_contain_text("broken")
    # Another end: what was seen no longer holds, and there is nothing to confirm.
    dialog.get_by_label("End").fill(_input(page, 6))
    expect(dialog.get_by_role("button", name="Create window")).to_have_count(0)
    dialog.get_by_role("button", name="See what it breaks").click()
    dialog.get_by_role("button", name="Create window").click()
    became = page.get_by_role("dialog", name="Window created")
    expect(became.get_by_role("row", name=late["label"])).to_contain_text(link)  # the reason names the link
    after = broker.ask("GET", f"/v1/transfers/{late['id']}")
    assert after["waiting_reason"]["limited_by"] == link, after
    expect(became).to_contain_text(after["waiting_reason"]["detail"])
    became.get_by_role("button", name="Close", exact=True).last.click()
    windows = page.get_by_role("region", name="Windows", exact=True)
    expect(windows).to_contain_text("Splice <b>in</b> the tunnel")

    windows.get_by_role("button", name=re.compile("Remove the maintenance window")).click()
    gone = page.get_by_role("dialog", name="Remove the maintenance window")
    expect(gone).to_contain_text("No transfer would lose its place")
    gone.get_by_role("button", name="Remove window").click()
    expect(page.get_by_text("No windows")).to_be_visible()
    assert broker.ask("GET", f"/v1/links/{link}")["windows"] == []


def test_the_hand_picks_a_window_on_the_plot(signed_in: Enter, broker: RunningBroker) -> None:
    link = _lonely(broker, "drag")
    page = signed_in("operate", at=f"/links/{link}?span=6h")
    area = page.locator(".u-over")
    area.wait_for()
    box = area.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + box["width"] * 0.5, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    dialog = page.get_by_role("dialog", name="New window")
    begin, end = dialog.get_by_label("Begin").input_value(), dialog.get_by_label("End").input_value()
    assert begin < end
    # Nobody is booked there: the window may be created even where promises are to be left alone.
    dialog.get_by_label("Transfers that lose their place").select_option("refuse")
    dialog.get_by_role("button", name="See what it breaks").click()
    expect(dialog).to_contain_text("No transfer would lose its place")
    dialog.get_by_role("button", name="Create window").click()
    expect(dialog).to_have_count(0)
    (window,) = broker.ask("GET", f"/v1/links/{link}")["windows"]
    assert window["bps"] == 0


def test_less_capacity_says_what_it_breaks(signed_in: Enter, broker: RunningBroker) -> None:
    link = _lonely(broker, "less")
    transfer = _book(broker, link, deadline=None)
    page = signed_in("operate", at=f"/links/{link}")
    page.get_by_role("button", name="Change capacity").click()
    dialog = page.get_by_role("dialog", name="Capacity of")
    expect(dialog.get_by_role("button", name="See what it breaks")).to_be_disabled()
    dialog.get_by_label("Capacity", exact=True).fill("5G")
    dialog.get_by_role("button", name="See what it breaks").click()
    expect(dialog.get_by_role("row", name=transfer["label"])).to_be_visible()
    # With promises left alone it would be refused, and the page says so before.
    dialog.get_by_label("Transfers that lose their place").select_option("refuse")
    expect(dialog.get_by_role("button", name="Change capacity")).to_be_disabled()
    dialog.get_by_label("Transfers that lose their place").select_option("replan")
    dialog.get_by_role("button", name="Change capacity").click()
    expect(page.get_by_role("dialog", name="Capacity changed")).to_contain_text(transfer["label"])
    assert broker.ask("GET", f"/v1/links/{link}")["capacity_bps"] == 5 * GIGA


def test_who_may_only_look_is_offered_no_change(signed_in: Enter, broker: RunningBroker) -> None:
    page = signed_in("submit", at=f"/links/{quote(broker.seeded.windows[0], safe='')}")
    expect(page.get_by_role("region", name="Windows", exact=True)).to_be_visible()
    for name in ("New window", "Change capacity"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("^Remove"))).to_have_count(0)


def test_a_link_that_is_not_there(signed_in: Enter) -> None:
    page = signed_in("read", at="/links/nowhere")
    expect(page.get_by_role("alert").filter(has_text="There is no such thing")).to_be_visible()


def _input(page: Page, hours: float) -> str:
    """So many hours from now, as an input for local time takes it."""
    written: str = page.evaluate(
        """(hours) => { const at = new Date(Date.now() + hours * 3.6e6);
        return new Date(at.getTime() - at.getTimezoneOffset() * 6e4).toISOString().slice(0, 19); }""",
        hours,
    )
    return written
