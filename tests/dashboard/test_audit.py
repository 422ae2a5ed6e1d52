# SPDX-License-Identifier: Apache-2.0
"""The audit log: found by words, by kind, by who and by what; with what changed, and the way to it."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.forms import heading
from tests.dashboard.running import RunningBroker

pytestmark = pytest.mark.real_time


def test_filters_are_in_the_address_and_work_together(signed_in: Callable[..., Page]) -> None:
    page = signed_in("operate", at="/audit")
    page.get_by_label("About").select_option("Host")
    expect(page.get_by_role("cell", name="Host enrolled", exact=True).first).to_be_visible()
    page.get_by_label("Name, id, reason, value").fill("pppl")
    rows = page.get_by_role("row").filter(has=page.get_by_role("button", name="Details of"))
    expect(rows.filter(has_not_text="dtn01.pppl")).to_have_count(0)
    page.get_by_label("What happened").select_option("Host enrolled")
    expect(rows).to_have_count(1)
    assert "kind=host" in page.url and "action=host.enrolled" in page.url and "text=pppl" in page.url
    page.reload()
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="By agent dtn01.pppl").click()
    assert "actor=agent" in page.url
    page.get_by_role("button", name="By agent dtn01.pppl: take this filter away").click()
    assert "actor=" not in page.url
    page.get_by_label("From").fill("2100-01-01T00:00:00")
    expect(page.get_by_text("Nothing happened that fits")).to_be_visible()
    page.get_by_role("button", name="Take all filters away").click()
    expect(rows.first).to_be_visible()


def test_before_and_after(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    book = {
        "source": "sacr-cr6",
        "destination": "sunn-cr6",
        "volume_bytes": 10**12,
        "rate_max_bps": 10**9,
        "label": "raised in rank",
        "priority": 1,
    }
    transfer = broker.ask("POST", "/v1/transfers", book)
    broker.ask("PATCH", f"/v1/transfers/{transfer['id']}", {"priority": 7})
    page = signed_in("operate", at=f"/audit?subject={transfer['id']}&action=transfer.changed")
    expect(page.get_by_role("button", name="About raised in rank: take this filter away")).to_be_visible()
    page.get_by_role("button", name="Details of Transfer changed, raised in rank").click()
    dialog = page.get_by_role("dialog", name="Transfer changed")
    expect(dialog.get_by_role("row", name="Priority")).to_have_text("Priority17")
    expect(dialog.get_by_role("row", name="Volume")).to_have_count(0)
    dialog.get_by_label("Also what stayed").check()
    expect(dialog.get_by_role("row", name="Volume")).to_contain_text("1 TB")
    dialog.get_by_role("link", name="raised in rank").click()
    expect(heading(page)).to_contain_text("raised in rank")


def test_what_happens_appears_by_itself(signed_in: Callable[..., Page], broker: RunningBroker) -> None:
    page = signed_in("operate", at="/audit?kind=token")
    heading(page).wait_for()
    broker.make_token("read", name="appears by itself")
    expect(page.get_by_role("row", name="appears by itself").first).to_be_visible()


def test_export(signed_in: Callable[..., Page], tmp_path: Path) -> None:
    page = signed_in("operate", at="/audit?action=host.enrolled")
    page.get_by_role("cell", name="Host enrolled", exact=True).first.wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save Events, newest first as CSV").click()
    saved.value.save_as(tmp_path / "log.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "log.csv").read_text(encoding="utf-8-sig"))))
    assert len(rows) == 16 and {row["action"] for row in rows} == {"host.enrolled"}
    assert json.loads(rows[0]["changes"])["after"]["nic_bps"] > 0
    assert {row["subject"] for row in rows} >= {"dtn01.nersc", "dtn01.cern"}
