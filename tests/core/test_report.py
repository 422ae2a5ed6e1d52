# SPDX-License-Identifier: Apache-2.0
"""Reasons and reports: what the database keeps as JSON is a frozen type inside, and comes back as it was."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import orjson
import pytest

from broker.api.agent_schemas import AgentReport
from broker.core.reason import Reason
from broker.core.report import ReportDetail, ReportKind

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("reason", [Reason("paused", "paused by me"), Reason("capacity_lowered", "late", "L1", 7)])
def test_a_reason_is_kept_as_an_object_of_its_fields(reason: Reason) -> None:
    kept = orjson.loads(orjson.dumps(reason))
    assert list(kept) == ["code", "detail", "limited_by", "until_us"]
    assert Reason.parse(kept) == reason


@pytest.mark.parametrize("detail", [ReportDetail(), ReportDetail("sha256:00"), ReportDetail(code="timeout", detail="no word")])
def test_of_a_report_only_what_is_said_is_kept(detail: ReportDetail) -> None:
    document = detail.document()
    assert document is None or None not in document.values()
    assert ReportDetail.parse(document) == detail


def test_the_api_takes_every_kind_of_report() -> None:
    assert set(get_args(AgentReport.model_fields["kind"].annotation)) == {str(kind) for kind in ReportKind}


def test_a_kind_that_nobody_handles_is_a_type_error(tmp_path: Path) -> None:
    """Add one, and mypy names each `match` that must say something about it."""
    kinds = ROOT / "broker/core/report.py"
    with_one_more = tmp_path / "report.py"
    with_one_more.write_text(re.sub(r"( +)SIGNAL = .*\n", r'\g<0>\1STALLED = "stalled"\n', kinds.read_text()))
    sources = [kinds, ROOT / "broker/store/reports.py", ROOT / "broker/fleet/reports.py"]
    alone = [
        "--config-file=",
        "--cache-dir=/dev/null",
        "--follow-imports=skip",
    ]  # without what they import: a second instead of twenty

    def check(*more: str) -> list[str]:
        command = [sys.executable, "-m", "mypy", *alone, *more, *map(str, sources)]
        said = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT).stdout
        return [line for line in said.splitlines() if "error:" in line]

    assert check() == []
    wrong = check("--shadow-file", str(kinds), str(with_one_more))
    assert len(wrong) == 2 and all("broker/fleet/reports.py" in line and "STALLED" in line for line in wrong), wrong
