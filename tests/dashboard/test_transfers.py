# SPDX-License-Identifier: Apache-2.0
"""The list of transfers, and one of them: found, followed, and changed with a look at what the change would do."""

import itertools
import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from broker.core.units import US_PER_S, format_time
from tests.dashboard.running import RunningBroker

pytestmark = pytest.mark.real_time

HOUR_S = 3600
_numbers = itertools.count(1)


def book(broker: RunningBroker, client: httpx.Client | None = None, **more: Any) -> dict[str, Any]:
    """A transfer that begins in an hour, under a name of its own."""
    body = {
        "source": "lbnl59-cr6",
        "destination": "pppl-cr6",
        "volume_bytes": 10**12,
        "rate_max_bps": 10**10,
        "label": f"browser test {next(_numbers)}",
        "not_before": format_time(time.time_ns() // 1000 + HOUR_S * US_PER_S),
    }
    answer = (client or broker.client).post("/v1/transfers", json=body | more)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def present(broker: RunningBroker, transfer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = broker.ask("GET", f"/v1/transfers/{transfer['id']}")
    return found


def rows(page: Page) -> Locator:
    return page.get_by_role("table", name="Transfers").locator("tbody tr:not(.gap)")


def asked(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def act(page: Page, button: str) -> Locator:
    """Open the dialog of an action."""
    page.get_by_role("button", name=button, exact=True).click()
    return page.get_by_role("dialog")


def typed(time_us: int) -> str:
    """As <input type=datetime-local> takes it, in the zone of the browser."""
    return datetime.fromtimestamp(time_us // US_PER_S, ZoneInfo("Europe/Zurich")).strftime("%Y-%m-%dT%H:%M:%S")


def test_filter_search_and_sort_are_done_by_the_server_and_kept_in_the_url(
    signed_in: Callable[..., Page], broker: RunningBroker
) -> None:
    page = signed_in("read", at="/transfers")
    page.locator("label", has_text=re.compile("^Canceled$")).click()
    canceled = broker.ask("GET", "/v1/transfers?state=CANCELED&count=true&limit=1")["total"]
    expect(page.get_by_text(f"{canceled} transfers", exact=True)).to_be_visible()
    assert asked(page) == {"state": ["CANCELED"]}
    assert set(rows(page).locator("td:nth-child(2)").all_inner_texts()) == {"Canceled"}

    page.get_by_role("columnheader", name="Volume").get_by_role("button").click()
    page.get_by_role("columnheader", name="Volume").get_by_role("button").click()
    largest = broker.ask("GET", "/v1/transfers?state=CANCELED&sort=-volume&limit=1")["items"][0]
    expect(rows(page).first).to_contain_text(largest["label"])
    assert asked(page) == {"state": ["CANCELED"], "sort": ["-volume"]}

    page.get_by_role("searchbox").fill(largest["label"])
    expect(rows(page)).to_have_count(
        broker.ask("GET", f"/v1/transfers?state=CANCELED&search={largest['label']}&count=true")["total"]
    )
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value(largest["label"])
    expect(page.get_by_role("checkbox", name="Canceled")).to_be_checked()

    page.get_by_role("searchbox").fill("there is no such transfer")
    page.get_by_text("No transfer matches").wait_for()
    page.get_by_role("button", name="Clear filters").last.click()
    expect(rows(page).nth(20)).to_be_visible()


def test_rows_stay_under_the_pointer_until_they_are_let_go(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    first = book(broker)
    page = signed_in("read", at="/transfers?search=browser+test")
    expect(rows(page).first).to_contain_text(first["label"])
    rows(page).first.hover()
    second = book(broker)
    waits = page.get_by_role("button", name="changes of order wait")
    waits.wait_for()
    expect(rows(page).first).to_contain_text(first["label"])
    waits.click()
    expect(rows(page).first).to_contain_text(second["label"])


def test_a_transfer_is_cancelled_with_the_keyboard_alone(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    transfer = book(broker)
    page = signed_in("operate", at=f"/transfers/{transfer['id']}")
    cancel = page.get_by_role("button", name="Cancel", exact=True)
    cancel.wait_for()
    tab_to(page, cancel)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Cancel this transfer")
    expect(dialog.get_by_role("button", name="Go back")).to_be_focused()
    expect(dialog.get_by_role("status", name="Preview")).to_contain_text(re.compile("Goes back.*TB booked"))
    tab_to(page, dialog.get_by_role("button", name="Cancel transfer"))
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("It is over: nothing of it can be changed any more.")).to_be_visible()
    assert present(broker, transfer)["state"] == "CANCELED"


def tab_to(page: Page, target: Locator) -> None:
    for _ in range(40):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the Tab key does not reach {target}")


def test_pause_resume_and_extend_show_first_what_they_would_do(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    transfer = book(broker, deadline=format_time(time.time_ns() // 1000 + 24 * HOUR_S * US_PER_S))
    page = signed_in("operate", at=f"/transfers/{transfer['id']}")

    dialog = act(page, "Pause")
    expect(dialog.get_by_role("status", name="Preview")).to_contain_text("It stands still until it is resumed")
    expect(dialog.get_by_role("status", name="Preview")).to_contain_text("Goes back")
    assert not present(broker, transfer)["paused"], "a preview changes nothing"
    dialog.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_text("Paused", exact=True).first).to_be_visible()
    assert present(broker, transfer)["paused"]

    dialog = act(page, "Resume")
    expect(dialog.get_by_role("status", name="Preview")).to_contain_text("It would be booked anew")
    dialog.get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    assert not present(broker, transfer)["paused"]

    dialog = act(page, "Deadline…")
    expect(dialog.get_by_role("button", name="Change deadline")).to_be_disabled()
    dialog.get_by_role("button", name="1 day later").click()
    expect(dialog.get_by_role("status", name="Preview")).to_contain_text("It would finish when it does now")
    dialog.get_by_role("button", name="Change deadline").click()
    expect(dialog).to_have_count(0)
    assert present(broker, transfer)["deadline"][:10] > transfer["deadline"][:10]
    expect(page.get_by_role("table", name="Plans", exact=True).locator("tbody tr")).to_have_count(
        present_revisions(broker, transfer)
    )


def test_who_waits_for_a_transfer_is_named_before_it_is_slowed_down(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    hosts: dict[str, Any] = {"source": "dtn01.pppl", "destination": "dtn02.nersc", "payload": {"path": "x"}}
    first = book(broker, **hosts)
    second = book(broker, **hosts, after=first["id"])
    page = signed_in("operate", at=f"/transfers/{first['id']}")
    dialog = act(page, "Rate limits…")
    dialog.get_by_label("Highest rate").fill("4G")
    shown = dialog.get_by_role("status", name="Preview")
    expect(shown).to_contain_text("Another transfer waits for this one and would move with it")
    expect(shown.get_by_role("link", name=second["label"])).to_be_visible()
    assert present(broker, second)["plan"] == second["plan"], "a preview changes nothing"
    dialog.get_by_role("button", name="Change limits").click()
    expect(dialog).to_have_count(0)
    assert present(broker, second)["plan"]["finish"] > second["plan"]["finish"]


def present_revisions(broker: RunningBroker, transfer: dict[str, Any]) -> int:
    events = broker.ask("GET", f"/v1/transfers/{transfer['id']}/events")
    return len({event["after"]["plan_revision"] for event in events})


def test_a_refusal_names_the_link_and_an_offer_is_taken_with_one_click(
    signed_in: Callable[..., Page], broker: RunningBroker
) -> None:
    transfer = book(broker, volume_bytes=10**13)
    page = signed_in("operate", at=f"/transfers/{transfer['id']}")
    dialog = act(page, "Deadline…")
    early_us = time.time_ns() // 1000 + 2 * HOUR_S * US_PER_S
    dialog.get_by_label("Deadline", exact=True).fill(typed(early_us))
    expect(dialog.get_by_role("alert")).to_contain_text("Infeasible")
    expect(dialog.get_by_role("button", name="Change deadline")).to_be_disabled()
    dialog.get_by_role("group", name="What could be had instead").get_by_role("button", name="Only").click()
    expect(dialog).to_contain_text("Also: volume")
    expect(dialog.get_by_role("status", name="Preview")).to_contain_text("earlier")
    dialog.get_by_role("button", name="Change deadline").click()
    expect(dialog).to_have_count(0)
    now = present(broker, transfer)
    assert now["deadline"][:19] == format_time(early_us)[:19] and now["volume_bytes"] < transfer["volume_bytes"]


def test_a_change_by_somebody_else_is_explained_and_read_again(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    transfer = book(broker)
    page = signed_in("operate", at=f"/transfers/{transfer['id']}")

    dialog = act(page, "Priority…")
    dialog.get_by_label("Priority").fill("7")
    expect(dialog.get_by_role("status", name="Preview")).to_be_visible()
    meanwhile = iter(({"project": "somebody else's"},))

    def interfere(route: Route) -> None:
        if route.request.method == "PATCH" and (change := next(meanwhile, None)):
            broker.ask("PATCH", f"/v1/transfers/{transfer['id']}", change)
        route.continue_()

    page.route(f"**/v1/transfers/{transfer['id']}", interfere)
    dialog.get_by_role("button", name="Change priority").click()
    expect(dialog).to_contain_text("Somebody else changed this transfer meanwhile")
    assert present(broker, transfer)["priority"] == 0
    expect(dialog.get_by_role("status", name="Preview")).to_be_visible()
    dialog.get_by_role("button", name="Change priority").click()
    expect(dialog).to_have_count(0)
    now = present(broker, transfer)
    assert (now["priority"], now["project"]) == (7, "somebody else's")


def test_what_one_may_not_do_is_not_offered_and_says_why(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    transfer = book(broker)
    page = signed_in("submit", at=f"/transfers/{transfer['id']}")
    expect(page.get_by_text("It was submitted with another token")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_have_count(0)
    expect(page.get_by_role("heading", name="Audit log")).to_have_count(0)

    # With a session the owner is the token behind it: what this page books is its own.
    own = page.evaluate(
        """body => fetch("/v1/transfers", {method: "POST", body: JSON.stringify(body),
             headers: {"Content-Type": "application/json", "X-BWB-CSRF": "1"}}).then(answer => answer.json())""",
        {"source": "lbnl59-cr6", "destination": "pppl-cr6", "volume_bytes": 10**12, "rate_max_bps": 10**9, "label": "my own"},
    )
    page.goto(f"/transfers/{own['id']}")
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()


def test_what_people_wrote_is_shown_as_text(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    label, project = '<img src="/x" onerror="alert(1)">', "<script>alert(2)</script>"
    metadata = {"<b>key</b>": '"><svg onload=alert(3)>'}
    transfer = book(broker, label=label, project=project, metadata=metadata)
    page = signed_in("admin", "operate", at="/transfers")
    page.get_by_role("searchbox").fill("onerror")
    expect(rows(page)).to_have_count(1)
    expect(rows(page).first).to_contain_text(label)
    rows(page).first.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(label)
    for said in (project, *metadata, *metadata.values()):
        expect(page.get_by_text(said, exact=True).first).to_be_visible()
    assert page.evaluate("document.querySelectorAll('main img, main b, main script').length") == 0
    assert page.title().startswith(label) and transfer["label"] == label
