# SPDX-License-Identifier: Apache-2.0
"""Tokens: made, shown once, and ended with a word about what stops."""

from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.dashboard.forms import heading
from tests.dashboard.running import RunningBroker, sign_in

pytestmark = pytest.mark.real_time


def test_a_token_is_made_and_its_secret_shown_once(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    page = signed_in("admin", at="/access")
    page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog", name="New token")
    dialog.get_by_role("button", name="Create token").click()
    expect(dialog.get_by_text("Give it a name")).to_be_visible()
    dialog.get_by_label("Name").fill("nightly climate mirror")
    dialog.get_by_label("Submit").check()
    expect(dialog.get_by_label("Read (in Submit)")).to_be_checked()
    dialog.get_by_label("Expires").select_option("In 30 days")
    dialog.get_by_role("button", name="Create token").click()

    shown = page.get_by_role("dialog", name="Token nightly climate mirror")
    secret = shown.get_by_label("Secret").input_value()
    assert secret.startswith("bwb_") and secret not in page.url
    answer = broker.client.get("/v1/session", headers={"Authorization": f"Bearer {secret}"}).json()
    assert (answer["name"], answer["scopes"]) == ("nightly climate mirror", ["submit"])
    shown.get_by_role("button", name="I have stored it").click()
    expect(shown).to_have_count(0)
    row = page.get_by_role("row", name="nightly climate mirror")
    expect(row).to_contain_text("Submit")
    expect(row).to_contain_text("Valid")
    assert secret not in page.content()
    page.reload()
    expect(row).to_be_visible()
    assert secret not in page.content()


def test_revoking_says_what_stops(
    signed_in: Callable[..., Page], new_context: Callable[..., BrowserContext], broker: RunningBroker
) -> None:
    token = broker.make_token("submit", name="robot of the archive")
    book = {
        "source": "sacr-cr6",
        "destination": "sunn-cr6",
        "volume_bytes": 10**12,
        "rate_max_bps": 10**9,
        "label": "outlives its token",
    }
    broker.ask("POST", "/v1/transfers", book, headers={"Authorization": f"Bearer {token['token']}"})
    sign_in(new_context(), token["token"])
    page = signed_in("admin", at="/access?search=robot")
    page.get_by_role("button", name="Revoke robot of the archive").click()
    dialog = page.get_by_role("dialog", name="Revoke robot of the archive?")
    for consequence in (
        "1 other session of this page",
        "Every program and script that uses it is refused",
        "1 live transfer that was booked with it goes on",
    ):
        expect(dialog).to_contain_text(consequence)
    expect(dialog.get_by_role("button", name="Go back")).to_be_focused()
    dialog.get_by_role("button", name="Revoke token").click()
    expect(page.get_by_text("robot of the archive is revoked")).to_be_visible()
    expect(page.get_by_role("row", name="robot of the archive")).to_have_count(0)
    page.get_by_role("radio", name="Ended").check()
    expect(page.get_by_role("row", name="robot of the archive")).to_contain_text("Revoked")
    assert page.url.endswith("show=ended")
    refused = broker.client.get("/v1/session", headers={"Authorization": f"Bearer {token['token']}"})
    assert refused.status_code == 401


def test_an_agents_token_names_its_host(signed_in: Callable[..., Page]) -> None:
    page = signed_in("admin", at="/access?show=agents&search=dtn01.pppl")
    page.get_by_role("button", name="Revoke agent dtn01.pppl").click()
    expect(page.get_by_role("dialog")).to_contain_text("The agent on dtn01.pppl can no longer reach the broker")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Revoke agent dtn01.pppl")).to_be_focused()


def test_revoking_ones_own_token_signs_out(signed_in: Callable[..., Page]) -> None:
    page = signed_in("admin", at="/access")
    page.get_by_role("row", name="(you)").get_by_role("button").click()
    expect(page.get_by_role("dialog")).to_contain_text("you are signed out at once")
    page.get_by_role("button", name="Revoke token").click()
    expect(heading(page)).to_have_text("Sign in")
