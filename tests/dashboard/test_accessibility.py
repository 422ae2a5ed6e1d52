# SPDX-License-Identifier: Apache-2.0
"""axe-core finds nothing serious on any page, in either theme, with data; and the theme follows the system until it is chosen."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard import addresses
from tests.dashboard.forms import heading, settled
from tests.dashboard.running import ROOT, RunningBroker

pytestmark = pytest.mark.real_time

AXE = ROOT / "broker" / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"

# Everything that axe knows to be a fault; what it only asks people to review is not.
_RUN = "async (options) => (await axe.run(document, { resultTypes: ['violations'], ...options })).violations"
# What a theme can change: the rest of a page is the same in both.
_DARK = "rgb(15, 21, 27)"  # --ground in tokens.css
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.is_file():
        pytest.fail(f"{AXE.relative_to(ROOT)} is missing: `make dashboard` brings it")
    return Path(AXE).read_text()


@pytest.fixture(scope="session")
def pages(broker: RunningBroker) -> dict[str, str]:
    return addresses.of(broker)


def serious(page: Page, axe: str, **options: Any) -> list[str]:
    page.evaluate(axe)  # by the debugger, not as a script of the page: the policy stays as it is
    found: list[dict[str, Any]] = page.evaluate(_RUN, options)
    return [
        f"{violation['id']} ({violation['impact']}): {node['target']} {node.get('failureSummary', '')}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


def test_every_route_is_looked_at(pages: dict[str, str]) -> None:
    unseen = [pattern for pattern in addresses.patterns() if not any(addresses.matches(pattern, one) for one in pages.values())]
    assert unseen == []


def test_no_serious_violation(signed_in: Callable[..., Page], page: Page, pages: dict[str, str], axe: str) -> None:
    """In both themes. Colours change at once, without a transition in which their contrast would be another."""
    signed = signed_in("admin", "operate", at="/signin")
    found: dict[str, list[str]] = {}
    for name, address in pages.items():
        shown = page if name == "signin" else signed
        shown.emulate_media(color_scheme="light", reduced_motion="reduce")
        shown.goto(address)
        settled(shown)
        light = serious(shown, axe)
        shown.emulate_media(color_scheme="dark")
        expect(shown.locator("body")).to_have_css("background-color", _DARK)  # with the next frame
        if wrong := light + [f"dark: {one}" for one in serious(shown, axe, **COLOURS)]:
            found[name] = wrong
    assert found == {}


def test_the_dialogs_of_access(signed_in: Callable[..., Page], axe: str) -> None:
    page = signed_in("admin", at="/access")
    page.get_by_role("button", name="New token").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert serious(page, axe) == []


def test_the_keyboard_gets_everywhere(signed_in: Callable[..., Page]) -> None:
    """The first Tab offers to skip the navigation; every link of it is reached by Tab and shows that it has the focus."""
    page = signed_in("operate")
    settled(page)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the view")).to_be_focused()
    names = []
    for _ in range(12):
        page.keyboard.press("Tab")
        outline, name = page.evaluate("[getComputedStyle(document.activeElement).outlineStyle, document.activeElement.textContent]")
        assert outline != "none", name
        names.append(name)
    assert {"Overview", "Transfers", "Schedule", "Audit"} <= set(names)
    page.get_by_role("link", name="Hosts", exact=True).focus()
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("Hosts")
    expect(heading(page)).to_be_focused()


def test_the_theme_follows_the_system_until_it_is_chosen(signed_in: Callable[..., Page]) -> None:
    page = signed_in("read", color_scheme="dark")
    heading(page).wait_for()
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    assert dark != light
    page.get_by_role("button", name="Theme: as the system").click()
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate(ground) == dark
    page.reload()
    heading(page).wait_for()
    assert page.evaluate(ground) == dark
