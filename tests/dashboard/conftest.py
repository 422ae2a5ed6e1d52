# SPDX-License-Identifier: Apache-2.0
"""Browser tests: a whole broker (`bwb up`) with the ESnet network and 500 transfers, and pages of the system's Chromium on it.

Playwright's loop runs in this thread for as long as a browser is open, so asynchronous tests cannot share the process at the same time: the
browser lives for this package only, and `make test` runs the package as a stage of its own.
"""

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.dashboard import chromium
from tests.dashboard.chromium import Watch
from tests.dashboard.running import ROOT, RunningBroker, running, sign_in

# What a test that failed leaves: NAME.png; with BWB_BROWSER_TRACE also NAME.zip (`playwright show-trace`), which slows all of them.
FAILED = ROOT / ".browser-tests"
TRACED = bool(os.environ.get("BWB_BROWSER_TRACE"))

# Two cores carry the browser, the broker, its database and its worker.
expect.set_options(timeout=20_000)

LAPTOP = {"width": 1366, "height": 768}
_STATES: dict[pytest.Item, bool] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.failed:
        _STATES[item] = True
    return report


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running(tmp_path_factory.mktemp("dashboard") / "state") as broker:
        yield broker


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if chromium.executable() is None:
        pytest.skip("no chromium on PATH: `.ci/browser` installs it as root")
    with chromium.running() as browser:
        yield browser


@pytest.fixture
def watch() -> Iterator[Watch]:
    """What went wrong in any page of the test; at its end there must be nothing."""
    watch = Watch()
    yield watch
    assert watch.wrong() == []


@pytest.fixture
def new_context(
    request: pytest.FixtureRequest, browser: Browser, broker: RunningBroker, watch: Watch
) -> Iterator[Callable[..., BrowserContext]]:
    """A browser of its own: cookies and all. Options are those of Playwright's `new_context`."""
    made: list[BrowserContext] = []

    def make(**options: Any) -> BrowserContext:
        context = browser.new_context(
            **({"base_url": broker.url, "viewport": LAPTOP, "locale": "en-GB", "timezone_id": "Europe/Zurich"} | options)
        )
        context.set_default_timeout(15_000)
        if TRACED:
            context.tracing.start(snapshots=True)
        watch.over(context)
        made.append(context)
        return context

    yield make
    for number, context in enumerate(made):
        if request.node in _STATES:
            _keep(context, f"{_name(request.node)}-{number}")
        context.close()


@pytest.fixture
def page(new_context: Callable[..., BrowserContext]) -> Page:
    """Nobody is signed in."""
    return new_context().new_page()


@pytest.fixture
def signed_in(new_context: Callable[..., BrowserContext], broker: RunningBroker) -> Callable[..., Page]:
    """signed_in("operate") -> a page with a session of a new token with these scopes, at the address `at`."""

    def enter(*scopes: str, at: str = "/", **options: Any) -> Page:
        context = new_context(**options)
        sign_in(context, broker.make_token(*(scopes or ("admin", "operate")))["token"])
        page = context.new_page()
        page.goto(at)
        return page

    return enter


def _keep(context: BrowserContext, name: str) -> None:
    FAILED.mkdir(exist_ok=True)
    for number, page in enumerate(context.pages):
        page.screenshot(path=FAILED / f"{name}-{number}.png")
    if TRACED:
        context.tracing.stop(path=FAILED / f"{name}.zip")


def _name(item: pytest.Item) -> str:
    return re.sub(r"[^a-z0-9]+", "-", item.name.lower()).strip("-")
