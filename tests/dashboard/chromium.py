# SPDX-License-Identifier: Apache-2.0
"""The system's Chromium under Playwright, and what a page must not do while a test looks at it."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, sync_playwright

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip

# What the policy forbids shows on the console as an error too; this catches what a page would report only there.
_TELL_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`Content-Security-Policy: ${event.violatedDirective} forbids ${event.blockedURI || event.sample || "inline"}`));
"""


def executable() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def running() -> Iterator[Browser]:
    path = executable()
    assert path is not None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """Gathers what goes wrong in the pages of a context. A test that provokes something names it: `watch.allow("ERR_FAILED")`."""

    def __init__(self) -> None:
        self._wrong: list[str] = []
        self._allowed: list[str] = []

    def over(self, context: BrowserContext) -> None:
        context.add_init_script(_TELL_VIOLATIONS)
        context.on("console", self._heard)
        context.on("weberror", lambda error: self._wrong.append(f"uncaught: {error.error}"))
        context.on("page", self._over_page)

    def allow(self, pattern: str) -> None:
        self._allowed.append(pattern)

    def wrong(self) -> list[str]:
        return [said for said in self._wrong if not any(re.search(pattern, said) for pattern in self._allowed)]

    def _over_page(self, page: Page) -> None:
        page.on("dialog", self._opened)

    def _opened(self, dialog: Dialog) -> None:
        """Nothing of ours opens one: it would be a script of somebody's."""
        self._wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not _is_refusal(message):
            self._wrong.append(f"console: {message.text} ({message.location.get('url', '')})")


def _is_refusal(message: ConsoleMessage) -> bool:
    """Chromium calls every answer of 400 and above an error; of the API those below 500 are answers that the page shows."""
    path = urlsplit(message.location.get("url", "")).path
    return path.startswith("/v1/") and re.search(r"status of 4\d\d", message.text) is not None
