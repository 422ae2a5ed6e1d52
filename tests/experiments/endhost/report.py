# SPDX-License-Identifier: Apache-2.0
"""Puts tables and figures into docs/experiments."""

from collections.abc import Sequence
from pathlib import Path

from tests.experiments.endhost.figures import draw
from tests.experiments.endhost.required import Verdict
from tests.experiments.endhost.run import Record
from tests.experiments.endhost.tables import report

_PAGE = "endhost.md"
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"


def write(records: Sequence[Record], judged: Sequence[Verdict], docs: Path | None) -> str:
    """The tables; with `docs`, also between the marks of endhost.md there, and the figures beside it."""
    text = report(records, judged)
    if docs is not None:
        page = docs / _PAGE
        page.write_text(between(page.read_text(), text))
        for name, picture in draw(records).items():
            (docs / name).write_bytes(picture)
    return text


def between(page: str, text: str) -> str:
    """The page with new text between its marks. ValueError when it has none."""
    head, begin, rest = page.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"the page has no {_BEGIN} ... {_END}")
    return f"{head}{begin}\n\n{text}\n\n{end}{tail}"
