# SPDX-License-Identifier: Apache-2.0
"""Where things are on a page, for tests of any view."""

from playwright.sync_api import Locator, Page, expect


def heading(page: Page) -> Locator:
    """The title of the view, which every view has."""
    return page.get_by_role("heading", level=1)


def settled(page: Page) -> None:
    """The view is there, and nothing on it loads any more. Not wait_for_function: it evaluates text, which the page's policy forbids."""
    heading(page).wait_for()
    main = page.get_by_role("main")
    expect(main.locator(".loading, [aria-busy]")).to_have_count(0, timeout=30_000)
