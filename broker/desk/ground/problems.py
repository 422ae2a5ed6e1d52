# SPDX-License-Identifier: Apache-2.0
"""Refusals of the broker, as data: what RFC 9457 calls a problem. The API turns them into application/problem+json."""

from dataclasses import dataclass, field
from typing import Any

from broker.core.request import DEFAULT_PLANNER

TYPE_PREFIX = "https://bandwidth-broker.invalid/problems/"

STATUS = {
    "infeasible": 409,
    "no-path": 409,
    "unsupported": 422,
    "invalid": 422,
    "unknown-node": 422,
    "unknown-planner": 422,
    "not-found": 404,
    "conflict": 409,
    "exists": 409,
    "breaks-promises": 409,
    "idempotency-key-reused": 422,
    "precondition-failed": 412,
    "precondition-required": 428,
    "unauthorized": 401,
    "forbidden": 403,
    "csrf": 403,
    "too-many-attempts": 429,
    "limit-exceeded": 409,
    "beyond-limits": 422,
    "too-many-streams": 429,
    "too-many-requests": 429,
    "too-large": 413,
    "malformed": 400,
    "method-not-allowed": 405,
    "unsupported-media-type": 415,
    "unavailable": 503,
    "planning-budget": 503,
    "superseded": 409,
    "clock-uncertain": 409,
    "host-down": 409,
    "unheard": 409,
}


@dataclass(slots=True)
class Problem(Exception):
    """`code` is the stable last part of the type URI; `more` holds the machine fields that explain the refusal."""

    code: str
    detail: str
    more: dict[str, Any] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """With what was added to `more` since, for the way between processes."""
        return type(self), (self.code, self.detail, self.more)

    @property
    def status(self) -> int:
        return STATUS[self.code]

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    def document(self) -> dict[str, Any]:
        title = self.code.replace("-", " ").capitalize()
        return {"type": TYPE_PREFIX + self.code, "title": title, "status": self.status, "detail": self.detail, **self.more}

    @classmethod
    def of_field(cls, name: str, detail: str, code: str = "invalid") -> "Problem":
        return cls(code, f"{name}: {detail}", {"errors": [{"field": name, "detail": detail}]})

    @classmethod
    def out_of_budget(cls, detail: str) -> "Problem":
        """Planning was given up."""
        advice = (
            f"ask again, with fewer paths or with a simpler planner, or book with {DEFAULT_PLANNER} and have it planned as a job"
            " by POST /v1/plans"
        )
        return cls("planning-budget", f"{detail}; nothing was booked: {advice}", {"retry_after_s": 2})
