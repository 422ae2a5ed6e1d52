# SPDX-License-Identifier: Apache-2.0
"""What api-spec/openapi.yaml promises to whoever generates a client from it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

CONTRACT: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "api-spec/openapi.yaml").read_text())
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
