# SPDX-License-Identifier: Apache-2.0
"""Cursors: opaque to the caller, (time, id) of the last row to us."""

import base64
import binascii
from typing import Annotated

import orjson
from fastapi import Query

from broker.desk.problems import Problem

Limit = Annotated[int, Query(ge=1, le=1000, description="items a page")]
Cursor = Annotated[str | None, Query(max_length=1000, description="`next` of the page before")]


def encode_key(order: str, key: int | str, row_id: str) -> str:
    """Of a list in one of several orders: the cursor is good for this one only."""
    return base64.urlsafe_b64encode(orjson.dumps([order, key, row_id])).decode().rstrip("=")


def decode_key(cursor: str | None, order: str) -> tuple[int | str, str] | None:
    if cursor is None:
        return None
    try:
        given, key, row_id = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        fits = given == order and isinstance(row_id, str) and "\0" not in row_id
        if not fits or not ((isinstance(key, str) and "\0" not in key) or (isinstance(key, int) and abs(key) < 2**63)):
            raise ValueError
        return key, row_id
    except (TypeError, ValueError, binascii.Error):
        raise Problem.of_field("cursor", "is not a cursor that this broker gave for this order; start without one") from None


def encode(time_us: int, row_id: str) -> str:
    return base64.urlsafe_b64encode(f"{time_us} {row_id}".encode()).decode().rstrip("=")


def decode(cursor: str | None) -> tuple[int, str] | None:
    if cursor is None:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        time_us, row_id = text.split(" ", 1)
        if not (time_us.isascii() and time_us.isdigit() and len(time_us) < 19) or "\0" in row_id:
            raise ValueError
        return int(time_us), row_id
    except (ValueError, binascii.Error):
        raise Problem.of_field("cursor", "is not a cursor that this broker gave; start without one") from None
