# SPDX-License-Identifier: Apache-2.0
"""The reports of an agent on a transfer (docs/agent-protocol.md)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class ReportKind(StrEnum):
    """A new kind needs a case in the `match` of broker/fleet/reports.py, which mypy enforces."""

    STARTED = "started"
    PROGRESS = "progress"
    SHORTFALL = "shortfall"  # the sender fell behind the booking
    SENT = "sent"
    FINISHED = "finished"
    FAILED = "failed"
    SIGNAL = "signal"  # the outcome of a start signal


@dataclass(frozen=True, slots=True)
class ReportDetail:
    """Details of some kinds besides the numbers: a `checksum` of the file, or an event as a `code` and in words."""

    checksum: str | None = None
    code: str | None = None
    detail: str | None = None

    @classmethod
    def parse(cls, document: Mapping[str, Any] | None) -> "ReportDetail":
        """Parse the JSON that the database keeps."""
        said = document or {}
        return cls(said.get("checksum"), said.get("code"), said.get("detail"))

    def document(self) -> dict[str, str] | None:
        """The details as JSON, or None if there are none."""
        return {name: value for name, value in asdict(self).items() if value is not None} or None
