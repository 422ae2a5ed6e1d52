# SPDX-License-Identifier: Apache-2.0
"""What a browser is told on the way, and that the page lives under it: the strict policy, on the page and on every file of it."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Response

from tests.dashboard.chromium import Watch
from tests.dashboard.running import RunningBroker

pytestmark = pytest.mark.real_time

POLICY = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'", "font-src 'self'",
    "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
}  # fmt: skip


def test_every_answer_that_the_page_loads_is_strict(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    page = signed_in("read", at="about:blank")
    answers: list[Response] = []

    def heard(answer: Response) -> None:  # not answers.append: Playwright marks its handlers, and no built-in can be marked
        answers.append(answer)

    page.on("response", heard)
    page.goto("/")
    page.get_by_role("heading", level=1).wait_for()
    assert {answer.request.resource_type for answer in answers} >= {"document", "script", "stylesheet", "fetch"}
    for answer in answers:
        assert answer.url.startswith(broker.url + "/"), "nothing comes from another host"
        headers = answer.headers
        assert set(headers["content-security-policy"].split("; ")) == POLICY, answer.url
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "same-origin", answer.url
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin", answer.url
    assert all(answer.headers["cache-control"] == "no-store" for answer in answers if "/v1/" in answer.url)


def test_the_policy_is_in_force(signed_in: Callable[..., Page], watch: Watch) -> None:
    watch.allow("Content.Security.Policy")
    page = signed_in("read")
    ran = page.evaluate(
        """async () => {
          const script = document.createElement("script");
          script.textContent = "window.inline = true";
          document.body.append(script);
          const picture = document.createElement("div");
          picture.innerHTML = '<img src="/none" onerror="window.handler = true">';
          document.body.append(picture);
          const foreign = await fetch("http://127.0.0.1:9/").then(() => true, () => false);
          return [window.inline === true, window.handler === true, foreign];
        }"""
    )
    assert ran == [False, False, False]


@pytest.mark.parametrize("kept", ["localStorage", "sessionStorage"])
def test_nothing_is_kept_in_the_browser(signed_in: Callable[..., Page], kept: str) -> None:
    page = signed_in("admin", "operate")
    page.get_by_role("heading", level=1).wait_for()
    assert page.evaluate(f"{kept}.length") == 0
    cookies = {cookie["name"]: cookie for cookie in page.context.cookies()}
    session = cookies["bwb_session"]
    assert session["httpOnly"] and session["sameSite"] == "Strict" and session["path"] == "/"
    assert "bwb_session" not in page.evaluate("document.cookie")
