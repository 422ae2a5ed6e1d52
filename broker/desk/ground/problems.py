# SPDX-License-Identifier: Apache-2.0
"""Refusals of the broker as data (RFC 9457). The API turns them into application/problem+json, with the HTTP status of each code."""

from dataclasses import dataclass, field
from typing import Any

from broker.core.request import DEFAULT_PLANNER

TYPE_PREFIX = "https://bandwidth-broker.invalid/problems/"


@dataclass(slots=True)
class Problem(Exception):
    """`code` is the stable last part of the type URI; `more` holds the machine fields that explain the refusal."""

    code: str
    detail: str
    more: dict[str, Any] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """With what was added to `more` since, for the way between processes."""
        return type(self), (self.code, self.detail, self.more)

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    def document(self) -> dict[str, Any]:
        """The members of RFC 9457 but for `status`, which is HTTP's (`broker.api.statuses`)."""
        title = self.code.replace("-", " ").capitalize()
        return {"type": TYPE_PREFIX + self.code, "title": title, "detail": self.detail, **self.more}

    @classmethod
    def of_field(cls, name: str, detail: str, code: str = "invalid") -> "Problem":
        """A refusal because of one field."""
        return cls(code, f"{name}: {detail}", {"errors": [{"field": name, "detail": detail}]})

    @classmethod
    def out_of_budget(cls, detail: str) -> "Problem":
        """Planning was given up."""
        advice = (
            f"ask again, with fewer paths or with a simpler planner, or book with {DEFAULT_PLANNER} and have it planned as a job"
            " by POST /v1/plans"
        )
        return cls("planning-budget", f"{detail}; nothing was booked: {advice}", {"retry_after_s": 2})
