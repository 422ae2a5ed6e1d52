# SPDX-License-Identifier: Apache-2.0
"""What the progress bars compute from a plan."""

import io
from typing import Any

from rich.console import Console

from broker.cli.context import rate_at
from broker.cli.progress import Board, against, when_carried
from broker.core.units import parse_time

SEGMENTS: Any = [
    {"begin": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:10Z", "rate_bps": 800, "path": ["L"]},
    {"begin": "2026-01-01T00:00:20Z", "end": "2026-01-01T00:00:30Z", "rate_bps": 80, "path": ["L"]},
]
BEGIN = parse_time("2026-01-01T00:00:00Z")


def at(seconds: float) -> int:
    return BEGIN + round(seconds * 1_000_000)


def test_when_a_plan_has_carried_so_much() -> None:
    assert when_carried(SEGMENTS, 500) == at(5)
    assert when_carried(SEGMENTS, 1000) == at(10)
    assert when_carried(SEGMENTS, 1001) == at(20.1)  # behind the gap
    assert when_carried(SEGMENTS, 1100) == at(30)
    assert when_carried(SEGMENTS, 1101) is None
    assert when_carried(SEGMENTS, 100, from_us=at(9.5)) == at(25)


def test_the_rate_at_an_instant_is_half_open() -> None:
    transfer = {"plan": {"segments": SEGMENTS}}
    assert [rate_at(transfer, at(t)) for t in (-1, 0, 9.999, 10, 20, 30)] == [0, 800, 800, 0, 80, 0]


def test_finish_against_promise() -> None:
    assert against("2026-01-01T00:00:05Z", "2026-01-01T00:00:04Z") == " (1 s after the promise)"
    assert against("2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z") == " (1m 30s before the promise)"
    assert against(None, "2026-01-01T00:01:30Z") == ""


def test_a_terminal_shows_bars_and_a_pipe_shows_changes() -> None:
    transfer: Any = {
        "id": "tr_1", "label": "x [1/2]", "state": "ACTIVE", "paused": False, "unheard_since": None, "volume_bytes": 1000, "bytes_done": 500,
        "measured_bps": 790, "waiting_reason": None, "promised_finish": "2100-01-01T00:00:10Z", "actual_finish": None,
        "plan": {"segments": [SEGMENTS[0] | {"end": "2100-01-01T00:00:10Z"}]},
    }  # fmt: skip
    terminal, pipe = io.StringIO(), io.StringIO()
    with Board(Console(file=terminal, force_terminal=True, width=140)) as board:
        board.show([transfer])
    for word in ("x [1/2]", "50%", "800 b/s", "790 b/s", "before the promise", "━"):
        assert word in terminal.getvalue()
    with Board(Console(file=pipe, width=80)) as board:
        board.show([transfer])
        board.show([transfer])
        board.notice("away")
        board.notice("away")
    lines = pipe.getvalue().splitlines()
    assert len(lines) == 2
    assert "x [1/2]: ACTIVE, 50% of 1 kB, booked 800 b/s, measured 790 b/s, done about" in lines[0]
    assert lines[1] == "away"
