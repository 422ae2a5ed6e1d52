# SPDX-License-Identifier: Apache-2.0
"""The exported contract, api-spec/openapi.yaml, in a form that diffs well and that clients can be generated from."""

import re
from collections.abc import Iterator
from typing import Any

import yaml
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from broker.api.callers import CSRF_HEADER, SESSION_COOKIE
from broker.api.contract import problems, streams
from broker.api.contract.parts import EVERY_ANSWER, HEADERS, Part

_SESSION = (
    f"Of POST /v1/session; over https it is called __Host-{SESSION_COOKIE}. What changes anything needs {CSRF_HEADER}: 1 with it."
)
_BEARER = "bwb_..., made by an administrator; an agent's is the answer to its enrolment."
_TAGS = {
    "transfers": "Book, change and watch transfers; quotes; planners.",
    "schedule": "Who sends when, and who has what of a link.",
    "links": "The network: links, capacity, windows, calendars.",
    "jobs": "Long work: re-optimisations and simulations.",
    "overview": "Is all well?",
    "events": "What happens, live; what happened; do the invariants hold?",
    "hosts": "Transfer hosts, and tokens with which they join.",
    "agents": "What agents call (docs/agent-protocol.md).",
    "tokens": "Who may do what, and how much of it.",
    "session": "Signing in with a browser.",
    "system": "Health and metrics, without a token.",
}
_ABOUT: dict[str, Any] = {
    "tags": [{"name": name, "description": about} for name, about in _TAGS.items()],
    "servers": [{"url": "/", "description": "The broker that shows this document at /docs."}],
    "contact": {"name": "The maintainers of the bandwidth broker"},
    "license_info": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def export(app: FastAPI) -> str:
    """The contract as YAML, keys in the order in which FastAPI gives them."""
    return "# SPDX-License-Identifier: Apache-2.0\n# Exported by `bwb openapi`; do not edit.\n" + yaml.safe_dump(
        describe(app), sort_keys=False, allow_unicode=True, width=120
    )


def describe(app: FastAPI) -> Part:
    """The contract as an OpenAPI 3.1 document."""
    described = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes, **_ABOUT)
    for path, item in described["paths"].items():
        for method, operation in item.items():
            _complete(method, path, operation)
    schemas = described["components"]["schemas"]
    for framework in ("HTTPValidationError", "ValidationError"):
        del schemas[framework]
    schemas |= streams.schemas()
    described["components"] |= {
        "headers": HEADERS,
        "responses": problems.responses(),
        "securitySchemes": {
            "token": {"type": "http", "scheme": "bearer", "description": _BEARER},
            "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE, "description": _SESSION},
        },
    }
    described["security"] = [{"token": []}, {"session": []}]
    names = _public_names(schemas)
    described["components"]["schemas"] = {names[name]: schemas[name] for name in sorted(schemas, key=names.__getitem__)}
    for part in ("paths", "components"):
        described[part] = _tidy(described[part], names)
    return described


def _complete(method: str, path: str, operation: Part) -> None:
    """Say of an operation what its route does not: how it may refuse, and the headers of every answer."""
    operation["summary"] = _words(operation["operationId"])
    if "agents" in operation["tags"] and "security" not in operation:
        operation["security"] = [{"token": []}]
    responses = operation["responses"]
    named = {int(status) for status, response in responses.items() if int(status) >= 400 and not response.get("content")}
    if "HTTPValidationError" in str(responses.get("422")):
        named.add(422)
    own = {int(status) for status in responses} - named
    responses |= {
        str(status): problems.refused_with(status) for status in (problems.statuses(method, path, operation) | named) - own
    }
    for response in responses.values():
        if "$ref" not in response:
            response["headers"] = response.get("headers", {}) | EVERY_ANSWER
            if response["description"] == "Successful Response":
                response["description"] = "Done."
    operation["responses"] = {status: responses[status] for status in sorted(responses)}


def _words(operation_id: str) -> str:
    """submitTransfer -> Submit transfer"""
    return re.sub(r"[A-Z]", lambda letter: f" {letter[0].lower()}", operation_id).capitalize()


def _public_names(schemas: Part) -> dict[str, str]:
    """`Out` tells our answers from our requests; outside it stays only where a request has the name."""
    return {name: short if (short := name.removesuffix("Out")) not in schemas else name for name in schemas}


def _tidy(node: Any, names: dict[str, str]) -> Any:
    """Without the titles that are only names again, with the width of numbers, and references by the public names."""
    if isinstance(node, list):
        return [_tidy(item, names) for item in node]
    if not isinstance(node, dict):
        return node
    return dict(_tidied(node, names))


def _tidied(node: Part, names: dict[str, str]) -> Iterator[tuple[str, Any]]:
    kind = node.get("type")
    for key, value in node.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "$ref" and value.startswith("#/components/schemas/"):
            yield key, f"#/components/schemas/{names[value.rpartition('/')[2]]}"
        elif key in _BOUNDS and kind == "integer":
            yield key, int(value)
        else:
            yield key, _tidy(value, names)
    if kind == "integer":
        yield "format", "int64"
    elif kind == "number":
        yield "format", "double"
