# SPDX-License-Identifier: Apache-2.0
"""Puts tables, figures and every single run into docs/experiments."""

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from tests.experiments.endhost.analysis import deficiency
from tests.experiments.endhost.figures import draw
from tests.experiments.endhost.required import Verdict
from tests.experiments.endhost.run import Record, Run
from tests.experiments.endhost.tables import report

_PAGE = "endhost.md"
_COLUMNS = (
    *("strategy", "rtt_ms", "repetition", "completion_s", "ideal_s", "above_ideal", "gap_ms"),
    *("retransmitted_bytes", "dropped_packets", "emulator_late_us", "stolen", "discarded"),
)
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"


def write(records: Sequence[Record], judged: Sequence[Verdict], docs: Path | None) -> str:
    """The tables; with `docs`, also between the marks of endhost.md there, and the figures and the runs beside it."""
    text = report(records, judged)
    if docs is not None:
        page = docs / _PAGE
        page.write_text(between(page.read_text(), text))
        for name, picture in draw(records).items():
            (docs / name).write_bytes(picture)
        (docs / "endhost.csv").write_text(sheet(records))
    return text


def sheet(records: Sequence[Record]) -> str:
    """A line for each run, those that were discarded too."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_COLUMNS)
    for run in records:
        if isinstance(run, Run):
            gap = "" if run.gap_us is None else f"{run.gap_us / 1000:.3f}"
            lines.writerow(
                [
                    *(run.strategy, f"{run.rtt_us / 1000:g}", run.repetition, f"{run.completion_us / 1e6:.6f}"),
                    *(f"{run.ideal_us / 1e6:.6f}", f"{deficiency(run):.5f}", gap, run.retransmitted_bytes),
                    *(run.dropped_packets, run.lateness_us, f"{run.stolen:.4f}", run.discarded or ""),
                ]
            )
    return text.getvalue()


def between(page: str, text: str) -> str:
    """The page with new text between its marks. ValueError when it has none."""
    head, begin, rest = page.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"the page has no {_BEGIN} ... {_END}")
    return f"{head}{begin}\n\n{text}\n\n{end}{tail}"
