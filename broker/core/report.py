# SPDX-License-Identifier: Apache-2.0
"""What an agent can report of a transfer (docs/agent-protocol.md)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class ReportKind(StrEnum):
    """A new kind is handled in broker/fleet/reports.py: without, mypy reports the `match` there."""

    STARTED = "started"
    PROGRESS = "progress"
    SHORTFALL = "shortfall"  # the sender fell behind what is booked
    SENT = "sent"
    FINISHED = "finished"
    FAILED = "failed"
    SIGNAL = "signal"  # what a start signal did


@dataclass(frozen=True, slots=True)
class ReportDetail:
    """What some kinds say beside the numbers: a `checksum` of the file, or what happened as a `code` and in words."""

    checksum: str | None = None
    code: str | None = None
    detail: str | None = None

    @classmethod
    def parse(cls, document: Mapping[str, Any] | None) -> "ReportDetail":
        """Of the JSON that the database keeps."""
        said = document or {}
        return cls(said.get("checksum"), said.get("code"), said.get("detail"))

    def document(self) -> dict[str, str] | None:
        """What is said of it, as JSON; None: nothing."""
        return {name: value for name, value in asdict(self).items() if value is not None} or None
