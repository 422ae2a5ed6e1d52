# SPDX-License-Identifier: Apache-2.0
"""What api-spec/openapi.yaml promises to whoever generates a client from it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from broker.api.contract.streams import CONTROL, EVENTS

ROOT = Path(__file__).parents[2]
CONTRACT: dict[str, Any] = yaml.safe_load((ROOT / "api-spec/openapi.yaml").read_text())
SCHEMAS: dict[str, Any] = CONTRACT["components"]["schemas"]
INSTRUCTIONS = {"on_broken"}  # of a change: how to carry it out; nothing that the resource keeps


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in CONTRACT["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def body_of(operation: dict[str, Any]) -> dict[str, Any]:
    return resolve(operation["requestBody"]["content"]["application/json"]["schema"])


CHANGES = {path: body_of(operation) for method, path, operation in operations() if method == "patch"}


@pytest.mark.parametrize("path", CHANGES)
def test_what_a_change_leaves_out_stays(path: str) -> None:
    """A generated client sends the defaults of the contract: of a change that would reset what its caller did not name."""
    waiting = [CHANGES[path]]
    while waiting:
        for name, field in waiting.pop()["properties"].items():
            assert name in INSTRUCTIONS or "default" not in field, name
            if "properties" in (below := resolve(field)):
                waiting.append(below)


def schemas_in(node: Any) -> Iterator[dict[str, Any]]:
    """Every schema of the contract, at whatever depth."""
    if isinstance(node, dict):
        if isinstance(node.get("type"), str):
            yield node
        for value in node.values():
            yield from schemas_in(value)
    elif isinstance(node, list):
        for item in node:
            yield from schemas_in(item)


def test_numbers_have_64_bits() -> None:
    """Else generators for Go take float32, in which a rate of 100 Gbit/s is off by kilobits."""
    found = [schema for schema in schemas_in(CONTRACT) if schema["type"] in ("integer", "number")]
    assert len(found) > 100
    assert {(schema["type"], schema["format"]) for schema in found} == {("integer", "int64"), ("number", "double")}


def test_operation_ids_read_well() -> None:
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids)) and {"submitTransfer", "changeTransfer", "cancelTransfer", "streamEvents"} <= set(ids)
    assert [name for name in ids if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name)] == []


def test_refusals_are_problems() -> None:
    """Under application/problem+json, with what explains them; 429 and 503 say when to come again."""
    for method, path, operation in operations():
        for status, response in operation["responses"].items():
            refused = CONTRACT["components"]["responses"].get(response.get("$ref", "").rpartition("/")[2])
            if int(status) < 400 or (path, status) == ("/readyz", "503"):  # which is no refusal
                assert refused is None
                continue
            problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
            assert refused["content"] == {"application/problem+json": problem}, (method, path)
            assert ("Retry-After" in refused["headers"]) == (status in ("429", "503"))
    assert {"binding", "counter_offers", "errors", "request_id"} <= SCHEMAS["Problem"]["properties"].keys()


def test_times_are_times() -> None:
    """What is named like a time is one, in every answer."""
    names = {
        "begin",
        "end",
        "start",
        "finish",
        "deadline",
        "created",
        "updated",
        "expires",
        "at",
        "until",
        "last_seen",
        "server_time",
    }
    for schema, described in SCHEMAS.items():
        for name in names & described.get("properties", {}).keys():
            field = described["properties"][name]
            for kind in field.get("anyOf", [field]):
                assert kind["type"] in ("null", "integer", "array") or kind.get("format") == "date-time", (schema, name)


def test_every_event_is_named() -> None:
    """The contract lists the events that the code writes, all of them and no others."""
    kinds = "|".join(sorted({name.partition(".")[0] for name in EVENTS}))
    written = re.compile(rf'"((?:{kinds})\.[a-z_]+)"')
    sources = [path for path in (ROOT / "broker").rglob("*.py") if path.parent.name != "contract"]
    found = {name for path in sources for name in written.findall(path.read_text())}
    put_together = {"job.done", "job.failed", "job.canceled"}  # of the state that a job ends in (store/jobs.py)
    assert found | put_together == set(EVENTS)
    assert SCHEMAS["EventName"]["enum"] == [*EVENTS, *CONTROL]
