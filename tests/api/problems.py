# SPDX-License-Identifier: Apache-2.0
"""The form that all refusals have."""

from typing import Any

import httpx

from broker.api.contract.problems import ProblemOut

PREFIX = "https://bandwidth-broker.invalid/problems/"


def problem(response: httpx.Response, status: int, code: str | None = None, field: str | None = None) -> dict[str, Any]:
    """The document of a refusal, in the form that RFC 9457 gives it; it names `field`, or a part of it."""
    assert response.status_code == status, (response.status_code, response.text)
    assert response.headers["content-type"] == "application/problem+json"
    said: dict[str, Any] = response.json()
    ProblemOut.model_validate(said, strict=True)  # as the contract has it
    assert said["request_id"] == response.headers["x-request-id"]
    assert said["type"] == PREFIX + code if code else said["type"].startswith(PREFIX), said
    assert said["status"] == status and said["title"] and said["detail"]
    if field is not None:
        named = [error["field"] for error in said["errors"]]
        assert any(name == field or name.startswith((f"{field}.", f"{field}[")) for name in named), said
    return said
