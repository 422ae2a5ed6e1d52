# SPDX-License-Identifier: Apache-2.0
"""Long jobs from the page: a simulation to its figures, a re-optimisation to its bookings, and one that came too late."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.running import RunningBroker

pytestmark = pytest.mark.real_time

GIGA, TERA = 10**9, 10**12
JOB_MS = 120_000  # a worker's process has to start, on a machine that may be busy


def a_late_transfer(broker: RunningBroker, name: str) -> dict[str, Any]:
    """On a link of its own, booked as late as possible: it can move up, and nobody is in its way."""
    broker.ask("POST", "/v1/links", {"id": name, "source": f"{name}-west", "target": f"{name}-east", "capacity_bps": 10 * GIGA})
    deadline = (datetime.now(UTC) + timedelta(hours=3)).isoformat()
    request = {
        "source": f"{name}-west",
        "destination": f"{name}-east",
        "volume_bytes": TERA,
        "deadline": deadline,
        "planner": "alap",
        "label": f"late on {name}",
    }
    booked: dict[str, Any] = broker.ask("POST", "/v1/transfers", request)
    return booked


def re_optimise(page: Page, link: str) -> None:
    page.get_by_role("button", name="New re-optimisation").click()
    form = page.get_by_role("form", name="Re-optimisation")
    form.get_by_label("Objective").select_option(label="Earliest finishes")
    form.get_by_label("Transfers").select_option(label="Those booked on some links")
    form.get_by_label("Links", exact=True).fill(link)
    expect(page.get_by_role("list", name="Chosen: Links")).to_contain_text(f"{link}-west → {link}-east")
    page.get_by_role("button", name="Start re-optimisation").click()
    page.wait_for_url(re.compile("/jobs/plan/plan_"))
    expect(page.get_by_text("Nothing has been changed yet.")).to_be_visible(timeout=JOB_MS)


def test_a_simulation_to_its_figures_and_against_another(signed_in: Callable[..., Page]) -> None:
    page = signed_in("submit", at="/jobs?new=simulation&requests=50&planners=vbls&planners=fbls&planners=ps")
    page.get_by_role("button", name="Start simulation").click()
    page.wait_for_url(re.compile("/jobs/simulation/sim_"))
    results = page.get_by_role("table", name="Results by planner")
    expect(results.get_by_role("row")).to_have_count(4, timeout=JOB_MS)
    expect(page.get_by_role("img", name=re.compile("Plot of the simulation"))).to_have_js_property("complete", True)
    # The same again with another load, and the two side by side.
    page.get_by_role("link", name="Ask again, changed").click()
    page.get_by_label("Load", exact=True).fill("0.2")
    page.get_by_role("button", name="Start simulation").click()
    page.wait_for_url(re.compile("/jobs/simulation/sim_"))
    expect(results.get_by_role("row")).to_have_count(4, timeout=JOB_MS)
    page.get_by_label("Compare with").select_option(index=1)
    expect(page.get_by_role("table", name="This run against the other").get_by_role("row")).to_have_count(1 + 3 * 9)
    page.reload()
    expect(page.get_by_role("table", name="This run against the other")).to_be_visible()


def test_a_mistake_in_a_specification_stands_at_its_field(signed_in: Callable[..., Page]) -> None:
    page = signed_in("submit", at="/jobs?new=simulation&nodes=nowhere,elsewhere")
    page.get_by_role("button", name="Start simulation").click()
    expect(page.get_by_label("Nodes")).to_have_attribute("aria-invalid", "true")


def test_a_re_optimisation_is_looked_at_and_applied(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    before = a_late_transfer(broker, "jobs-applied")
    page = signed_in("operate", at="/jobs?kind=plan")
    re_optimise(page, "jobs-applied")
    expect(
        page.get_by_role("table", name="Changes by transfer").get_by_role("row").filter(has_text="late on jobs-applied")
    ).to_contain_text("earlier")
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("dialog").get_by_role("button", name="Move 1 transfer").click()
    expect(page.get_by_text(re.compile("Applied at .*1 transfer moved"))).to_be_visible()
    after = broker.ask("GET", f"/v1/transfers/{before['id']}")
    assert after["plan"]["finish"] < before["plan"]["finish"]


def test_a_result_that_is_overtaken_says_so(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    a_late_transfer(broker, "jobs-outdated")
    page = signed_in("operate", at="/jobs?kind=plan")
    re_optimise(page, "jobs-outdated")
    broker.ask("POST", "/v1/transfers", {"source": "jobs-outdated-west", "destination": "jobs-outdated-east", "volume_bytes": GIGA})
    expect(page.get_by_text("Outdated.")).to_be_visible()
    expect(page.get_by_text("on jobs-outdated-west → jobs-outdated-east since")).to_be_visible()
    expect(page.get_by_role("button", name="Apply")).to_have_count(0)
    expect(page.get_by_role("button", name="Compute it anew")).to_be_enabled()


@pytest.mark.parametrize(
    ("scope", "offered"), [("read", []), ("submit", ["New simulation"]), ("operate", ["New simulation", "New re-optimisation"])]
)
def test_what_a_role_may_ask_for(signed_in: Callable[..., Page], scope: str, offered: list[str]) -> None:
    page = signed_in(scope, at="/jobs")
    expect(page.get_by_role("tab", name="Simulations")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^New "))).to_have_text(offered)
