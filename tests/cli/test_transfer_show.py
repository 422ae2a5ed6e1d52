# SPDX-License-Identifier: Apache-2.0
"""What `bwb transfer show` says of how a promise was kept."""

from collections import defaultdict
from typing import Any

import pytest

from broker.cli.transfer.show import show_transfer


@pytest.mark.parametrize(
    ("state", "assumed", "expected"),
    [
        ("FINISHED", False, ["finished", "(1m 25s before the promise)"]),
        ("EXPIRED", False, ["ended", "00:00:05"]),
        ("FAILED", True, ["ended", "(assumed: a late report corrects it)"]),
    ],
)
def test_only_what_finished_has_kept_its_promise(
    state: str, assumed: bool, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shown: Any = defaultdict(lambda: None)
    shown |= {"id": "tr_1", "state": state, "assumed": assumed, "plan": {"segments": []}}
    shown |= {"actual_finish": "2026-01-01T00:00:05Z", "promised_finish": "2026-01-01T00:01:30Z"}
    show_transfer(shown)
    said = capsys.readouterr().out
    assert all(part in said for part in expected), said
    assert ("promise)" in said) == (state == "FINISHED"), "what never finished was not early"
