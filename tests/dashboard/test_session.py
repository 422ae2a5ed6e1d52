# SPDX-License-Identifier: Apache-2.0
"""Signing in and out, what a role may see and do, and what becomes of a session that ends under the page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.dashboard.forms import heading
from tests.dashboard.running import RunningBroker, sign_in

pytestmark = pytest.mark.real_time


def enter(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_sign_in_goes_where_one_wanted_to(page: Page, broker: RunningBroker) -> None:
    page.goto("/transfers?state=RESERVED")
    expect(heading(page)).to_have_text("Sign in")
    enter(page, broker.make_token("read", name="a reader")["token"])
    expect(heading(page)).to_have_text("Transfers")
    assert page.url.endswith("/transfers?state=RESERVED")
    expect(page.get_by_text("a reader")).to_be_visible()
    page.reload()
    expect(heading(page)).to_have_text("Transfers")


def test_the_way_back_leads_to_this_page_only(page: Page, broker: RunningBroker) -> None:
    page.goto("/signin?next=//example.org/transfers")
    enter(page, broker.make_token("read")["token"])
    expect(heading(page)).not_to_have_text("Sign in")
    assert page.url.startswith(broker.url + "/")


@pytest.mark.parametrize("token", ["bwb_" + "x" * 43, "nonsense"])
def test_a_wrong_token_is_refused(page: Page, token: str) -> None:
    page.goto("/")
    enter(page, token)
    expect(page.get_by_role("alert").filter(has_text="unknown, revoked or has expired")).to_be_visible()
    expect(page.get_by_label("Token")).to_have_value("")
    assert "bwb_" not in page.url and page.context.cookies() == []


def test_an_agents_token_is_refused(page: Page, broker: RunningBroker) -> None:
    page.goto("/")
    enter(page, next(iter(broker.seeded.hosts.values())))
    expect(page.get_by_role("alert").filter(has_text="an agent's token")).to_be_visible()


def test_a_reader_changes_nothing(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    page = signed_in("read", at="/access")
    expect(page.get_by_text("You may not see this")).to_be_visible()
    expect(page.get_by_role("button", name="New token")).to_have_count(0)
    page.goto("/audit")
    expect(page.get_by_text("You may not see this")).to_be_visible()
    transfer = next(one for one in broker.seeded.transfers if one["state"] == "RESERVED")
    page.goto(f"/transfers/{transfer['id']}")
    expect(heading(page)).to_contain_text(transfer["label"])
    for action in ("Cancel", "Pause", "Extend", "Change"):
        expect(page.get_by_role("main").get_by_role("button", name=action)).to_have_count(0)


def test_who_may_submit_changes_no_links(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    page = signed_in("submit", at=f"/links/{broker.seeded.links[0]}".replace("#", "%23"))
    heading(page).wait_for()
    expect(page.get_by_role("main").get_by_role("button", name="window")).to_have_count(0)


def test_an_ended_session_leads_through_sign_in_and_back(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    page = signed_in("operate", at="/audit?kind=host")
    expect(page.get_by_role("cell", name="Host enrolled", exact=True).first).to_be_visible()
    page.context.clear_cookies()
    page.get_by_role("link", name="Hosts", exact=True).click()
    expect(heading(page)).to_have_text("Sign in")
    expect(page.get_by_text("Your session has ended")).to_be_visible()
    enter(page, broker.make_token("operate")["token"])
    expect(heading(page)).to_have_text("Hosts")


def test_revoking_a_token_ends_its_sessions_at_once(new_context: Callable[..., BrowserContext], broker: RunningBroker) -> None:
    context, token = new_context(), broker.make_token("operate")
    sign_in(context, token["token"])
    page = context.new_page()
    page.goto("/audit?action=host.enrolled")
    expect(page.get_by_role("cell", name="Host enrolled", exact=True).first).to_be_visible()
    broker.client.delete(f"/v1/tokens/{token['id']}")
    expect(heading(page)).to_have_text("Sign in", timeout=20_000)  # the stream of events ends, without a click
    expect(page.get_by_role("cell", name="Host enrolled", exact=True)).to_have_count(0)
    enter(page, broker.make_token("operate")["token"])
    expect(heading(page)).to_have_text("Audit log")
    assert page.url.endswith("/audit?action=host.enrolled")


def test_sign_out_leaves_nothing_behind(signed_in: Callable[..., Page]) -> None:
    page = signed_in("operate", at="/hosts")
    expect(page.get_by_text("dtn01.nersc").first).to_be_visible()
    page.get_by_role("link", name="Links", exact=True).click()
    expect(heading(page)).to_have_text("Links")
    page.get_by_role("button", name="Sign out").click()
    expect(heading(page)).to_have_text("Sign in")
    assert page.context.cookies() == []
    page.go_back()
    expect(heading(page)).to_have_text("Sign in")
    expect(page.get_by_text("dtn01.nersc")).to_have_count(0)


def test_a_change_without_the_header_is_refused(signed_in: Callable[..., Page]) -> None:
    page = signed_in("admin")
    heading(page).wait_for()
    bodies = page.evaluate(
        """async () => {
          const ask = async (headers) => {
            const answer = await fetch("/v1/tokens", {
              method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify({ name: "x", scopes: ["read"] }),
            });
            return [answer.status, (await answer.json()).type ?? ""];
          };
          return [await ask({}), await ask({ "X-BWB-CSRF": "1" })];
        }"""
    )
    assert bodies[0][0] == 403 and bodies[0][1].endswith("/csrf")
    assert bodies[1][0] == 201


def test_another_sites_page_cannot_act(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    """A form on a foreign page, posted with whatever cookies the browser would send along."""
    page = signed_in("admin")
    foreign = page.context.new_page()
    foreign.route(
        "http://elsewhere.test/**", lambda route: route.fulfill(content_type="text/html", body=_FORM.format(url=broker.url))
    )
    foreign.goto("http://elsewhere.test/")
    with foreign.expect_response(lambda answer: "/v1/tokens" in answer.url) as answered:
        foreign.get_by_role("button").click()
    assert answered.value.status in (401, 403)
    assert "cookie" not in answered.value.request.all_headers()


_FORM = """<form method="post" action="{url}/v1/tokens" enctype="text/plain">
<input name='{{"name": "stolen", "scopes": ["admin"], "x": "' value='"}}'><button>win</button></form>"""
