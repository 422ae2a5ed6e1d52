# SPDX-License-Identifier: Apache-2.0
"""Why a transfer waits, is slower than promised, or has ended: each such transfer has a reason (`waiting_reason` in REST)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Reason:
    """`code` is stable, `detail` is for people; `limited_by`: a link, host or transfer; `until_us`: the expected end, if known."""

    code: str
    detail: str
    limited_by: str | None = None
    until_us: int | None = None

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "Reason":
        """Parse the JSON object that the database keeps."""
        return cls(document["code"], document["detail"], document.get("limited_by"), document.get("until_us"))
