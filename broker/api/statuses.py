# SPDX-License-Identifier: Apache-2.0
"""The HTTP status of each refusal. The rooms that refuse know codes only."""

from typing import Any

from broker.desk.ground.problems import TYPE_PREFIX, Problem

Json = dict[str, Any]

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

_FAULT = 500


def status_of(problem: Problem) -> int:
    """The status with which the problem is answered."""
    return STATUS[problem.code]


def problem_document(problem: Problem) -> Json:
    """The problem as application/problem+json."""
    return with_status(problem.document())


def with_status(document: Json) -> Json:
    """A problem document that was kept without its status, with it; a fault of ours, `about:blank`, has no code."""
    status = STATUS.get(document["type"].removeprefix(TYPE_PREFIX), _FAULT)
    return {"type": document["type"], "title": document["title"], "status": status, **document}
