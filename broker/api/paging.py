# SPDX-License-Identifier: Apache-2.0
"""Cursors: opaque to the caller; to us the order of a list, and key and id of the last row. One is good for its own order only."""

import base64
import binascii
from typing import Annotated, TypeVar

import orjson
from fastapi import Query

from broker.desk.ground.problems import Problem

Limit = Annotated[int, Query(ge=1, le=1000, description="items a page")]
Cursor = Annotated[str | None, Query(max_length=1000, description="`next` of the page before")]

Key = TypeVar("Key", bound=int | str)


def encode(order: str, key: int | str, row_id: str) -> str:
    """A cursor behind the row with this key."""
    return base64.urlsafe_b64encode(orjson.dumps([order, key, row_id])).decode().rstrip("=")


def decode(cursor: str | None, order: str, kind: type[Key]) -> tuple[Key, str] | None:
    """(key, id); the key is of the type that this order sorts by, and can be compared with it in the database. Raises Problem."""
    if cursor is None:
        return None
    try:
        given, key, row_id = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (TypeError, ValueError, binascii.Error):
        given = key = row_id = None
    # Exactly this type: to Python, true is an integer as well.
    if given != order or type(key) is not kind or not _storable(key) or not isinstance(row_id, str) or not _storable(row_id):
        raise Problem.of_field("cursor", "is not a cursor that this broker gave for this list and order; start without one")
    return key, row_id


def _storable(value: int | str) -> bool:
    return "\0" not in value if isinstance(value, str) else abs(value) < 2**63
