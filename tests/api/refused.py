# SPDX-License-Identifier: Apache-2.0
"""The one format that all refusals have."""

from typing import Any

import httpx


def problem(response: httpx.Response, status: int, code: str | None = None, field: str | None = None) -> dict[str, Any]:
    """The problem document (RFC 9457) of a refusal."""
    assert response.status_code == status, (response.status_code, response.text)
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["request_id"] == response.headers["x-request-id"]
    assert document["status"] == status and document["title"] and document["detail"]
    assert code is None or document["type"].endswith(f"/problems/{code}"), document
    named = [error["field"] for error in document.get("errors", ())]
    assert field is None or any(name.startswith(field) for name in named), (field, document)
    return document
