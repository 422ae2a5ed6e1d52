# SPDX-License-Identifier: Apache-2.0
import pytest

from broker.core.request import Request
from broker.core.units import MAX_RATE_BPS, MAX_VOLUME_BYTES

GOOD = {"id": "r", "source": "A", "destination": "B", "volume_bytes": 1, "not_before_us": 100}


def fields_of(**changes: object) -> list[str]:
    problems = list(Request(**(GOOD | changes)).problems())  # type: ignore[arg-type]
    assert all(problem.detail for problem in problems)
    return [problem.field for problem in problems]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"volume_bytes": MAX_VOLUME_BYTES, "rate_max_bps": MAX_RATE_BPS, "rate_min_bps": MAX_RATE_BPS},
        {"rate_max_bps": 1, "rate_min_bps": 1, "deadline_us": 101},
        {"volume_bytes": None, "duration_us": 1},
    ],
)
def test_sound_requests(changes: dict[str, object]) -> None:
    assert fields_of(**changes) == []


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("destination", {"destination": "A"}),
        ("volume_bytes", {"volume_bytes": None}),
        ("volume_bytes", {"duration_us": 1}),
        ("volume_bytes", {"volume_bytes": 0}),
        ("volume_bytes", {"volume_bytes": -1}),
        ("volume_bytes", {"volume_bytes": MAX_VOLUME_BYTES + 1}),
        ("duration_s", {"volume_bytes": None, "duration_us": 0}),
        ("rate_max_bps", {"rate_max_bps": 0}),
        ("rate_max_bps", {"rate_max_bps": MAX_RATE_BPS + 1}),
        ("rate_min_bps", {"rate_min_bps": -1}),
        ("rate_min_bps", {"rate_min_bps": 2, "rate_max_bps": 1}),
        ("deadline", {"deadline_us": 100}),
    ],
)
def test_problems_name_the_field(field: str, changes: dict[str, object]) -> None:
    assert fields_of(**changes) == [field]


def test_all_problems_are_told_at_once() -> None:
    assert fields_of(destination="A", volume_bytes=0, deadline_us=1) == ["destination", "volume_bytes", "deadline"]
