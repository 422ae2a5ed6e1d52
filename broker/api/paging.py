# SPDX-License-Identifier: Apache-2.0
"""Cursors: opaque to the caller, (time, id) of the last row to us."""

import base64
import binascii
from typing import Annotated

from fastapi import Query

from broker.desk.problems import Problem

Limit = Annotated[int, Query(ge=1, le=1000, description="items a page")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the page before")]


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
