# SPDX-License-Identifier: Apache-2.0
"""Reasons and reports: what the database keeps as JSON is a frozen type inside, and comes back as it was."""

from typing import get_args

import orjson
import pytest

from broker.api.agent_schemas import AgentReport
from broker.core.reason import Reason
from broker.core.report import ReportDetail, ReportKind


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
