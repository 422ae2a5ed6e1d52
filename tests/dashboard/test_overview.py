# SPDX-License-Identifier: Apache-2.0
"""The overview: its numbers lead to what they count, the map moves in time and by keys, and what goes wrong shows without a reload."""

import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from broker.core.units import US_PER_S, format_time
from tests.dashboard.running import RunningBroker, sign_in

pytestmark = pytest.mark.real_time

QUARTER_S = 900


def network_map(page: Page) -> Locator:
    return page.get_by_role("group", name="Map of the network")


def opened(page: Page) -> Page:
    """The first view of a fresh browser: on a busy machine it may need longer than what follows."""
    expect(network_map(page)).to_be_visible(timeout=30_000)
    return page


def lane(page: Page, link: str) -> Locator:
    return page.locator(f'[data-thing="link {link}"]')


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_the_first_view_asks_everything_at_once_and_nothing_twice(
    new_context: Callable[..., BrowserContext], broker: RunningBroker
) -> None:
    questions = ["/v1/hosts", "/v1/links", "/v1/network/load", "/v1/network/load", "/v1/overview", "/v1/topology"]
    context = new_context()
    sign_in(context, broker.make_token("read")["token"])
    page = context.new_page()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/v1/events*", lambda _: None)  # held up for good: an event would have the view ask again
    page.route(re.compile(r"/v1/(hosts|links|network/load|overview|topology)\b"), hold)
    page.goto("/")
    # None of them is answered before all are asked.
    limit = time.monotonic() + 30
    while len(held) < len(questions):
        assert time.monotonic() < limit, [route.request.url for route in held]
        page.wait_for_timeout(20)
    for route in held:
        route.continue_()
    opened(page)
    expect(page.get_by_role("row", name="Reserved")).to_be_visible()
    assert sorted(urlsplit(route.request.url).path for route in held) == questions


def test_numbers_lead_to_what_they_count(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    page = opened(signed_in("read"))
    reserved = page.get_by_role("row", name="Reserved").get_by_role("link")
    expect(reserved).to_have_text(re.compile(r"^\d+$"))
    for name, promise in (("Promises kept", "kept"), ("At risk", "at_risk"), ("Broken", "broken")):
        expect(page.get_by_role("link", name=name)).to_have_attribute("href", re.compile(rf"^/transfers\?promise={promise}&"))
    counted = broker.ask("GET", "/v1/overview")["decisions"]
    expect(page.get_by_text("Not enough free capacity in time")).to_be_visible()
    expect(page.get_by_role("paragraph").filter(has_text=f"{counted['refused_day']} refused")).to_be_visible()
    reserved.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Transfers")
    assert query(page)["state"] == ["RESERVED"]


def test_every_link_is_on_the_map_and_hosts_are_in_their_node(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    page = opened(signed_in("read"))
    links = [link for link in broker.ask("GET", "/v1/links") if link["host"] is None]
    expect(page.locator(".lane")).to_have_count(len(links))
    nodes = {link["source"] for link in links} | {link["target"] for link in links}
    expect(page.locator(".dot")).to_have_count(len(nodes))
    # Other tests enrol and remove hosts: of those that are there now, one.
    host = broker.ask("GET", "/v1/hosts")[0]["name"]
    expect(page.get_by_label(re.compile(rf"hosts?:? .*{re.escape(host)}"))).to_have_count(1)
    busy = lane(page, broker.seeded.carrying())
    expect(busy).to_have_attribute("aria-label", re.compile(r"→.*% booked, .*bit/s of .*bit/s"))
    busy.dispatch_event("click")  # where lanes are dense, another one may lie above its middle
    expect(page).to_have_url(re.compile("/links/"))


def test_time_is_in_the_url_and_plays_when_asked(signed_in: Callable[..., Page]) -> None:
    page = opened(signed_in("read"))
    slider = page.get_by_role("slider", name="Time that the map shows")
    expect(slider).to_have_attribute("aria-valuetext", "Now")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(slider).to_have_value("3")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"\d\d:\d\d to (\w+ )?\d\d:\d\d, in \d"))
    at = int(query(page)["at"][0])
    assert at % QUARTER_S == 0 and 2 * QUARTER_S < at - time.time() <= 3 * QUARTER_S
    page.reload()
    opened(page)
    expect(slider).to_have_value("3")
    expect(page.locator(".lane").first).to_have_attribute("aria-label", re.compile("at most|nothing booked"))
    page.get_by_role("button", name="Play").click()
    expect(slider).to_have_value(re.compile(r"^([6-9]|\d\d)$"))
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Now").click()
    expect(slider).to_have_attribute("aria-valuetext", "Now")
    assert "at" not in query(page)


def test_the_map_by_keys_alone(signed_in: Callable[..., Page]) -> None:
    page = opened(signed_in("read"))
    stops = network_map(page).locator("[tabindex='0']")
    expect(stops).to_have_count(1)
    stops.focus()
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile("sight="))
    first = stops.get_attribute("data-thing")
    for key in ("ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    expect(stops).to_be_focused()
    expect(page.locator(".map-tip")).to_be_visible()
    assert stops.get_attribute("data-thing") != first
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("sight="))
    target = stops.get_attribute("href")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(re.escape(str(target))))


def test_an_outage_shows_without_a_reload(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    broker.ask("POST", "/v1/links", {"id": "overview-1", "source": "overview-a", "target": "overview-b", "capacity_bps": 10**10})
    page = opened(signed_in("read"))
    expect(lane(page, "overview-1")).to_have_class(re.compile("heat-0"))
    now_us = time.time_ns() // 1000
    begin, end = format_time(now_us), format_time(now_us + 3600 * US_PER_S)
    hostile = "<img src=x onerror=alert(1)>"
    body: dict[str, Any] = {"begin": begin, "end": end, "kind": "outage", "reason": hostile, "on_broken": "replan"}
    broker.ask("POST", "/v1/links/overview-1/windows", body)
    expect(lane(page, "overview-1")).to_have_class(re.compile("heat-closed"))
    concern = page.get_by_role("region", name="Needs attention").get_by_role("listitem").filter(has_text="overview-a → overview-b")
    expect(concern).to_contain_text(f"Closed: outage, {hostile}")
    concern.get_by_role("link").click()
    expect(page).to_have_url(re.compile("/links/overview-1"))


def test_a_failure_can_be_retried(signed_in: Callable[..., Page], watch: Any) -> None:
    watch.allow("ERR_FAILED")
    page = signed_in("read", at="/transfers")
    away = True

    def answer(route: Route) -> None:
        if away:
            route.abort()
        else:
            route.continue_()

    page.route("**/v1/overview", answer)
    page.get_by_role("navigation").get_by_role("link", name="Overview").click()
    expect(page.get_by_role("main").get_by_role("alert")).to_be_visible()
    away = False
    page.get_by_role("button", name="Try again").click()
    opened(page)


def test_who_may_not_read_is_told_so(signed_in: Callable[..., Page]) -> None:
    page = signed_in("read", at="/transfers")
    page.route("**/v1/overview", lambda route: route.fulfill(status=403, content_type="application/problem+json", body=DENIED))
    page.get_by_role("navigation").get_by_role("link", name="Overview").click()
    expect(page.get_by_text("You may not see this")).to_be_visible()


DENIED = '{"type": "https://bandwidth-broker.invalid/problems/forbidden", "title": "Forbidden", "status": 403, "detail": "needs the scope read"}'


def test_a_wall_screen_shows_it_all_at_once_and_large(signed_in: Callable[..., Page]) -> None:
    page = opened(signed_in("read", at="/?wall=1", viewport={"width": 2560, "height": 1440}))
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    # 10 arc minutes at three metres are 8.7 mm: on a screen 1.2 m wide 18 pixels.
    sizes = page.locator(".map-names text, .overview-concerns li, .figure-label").evaluate_all(
        "(all) => all.map((one) => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert sizes and min(sizes) >= 18, sizes
