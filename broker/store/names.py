# SPDX-License-Identifier: Apache-2.0
"""Names for ids: the label of a transfer, the name of a token."""

from collections.abc import Iterable

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_NAMES = text("""
    SELECT id, label AS name FROM transfers WHERE id = ANY(:ids) AND label IS NOT NULL
    UNION ALL
    SELECT id, name FROM tokens WHERE id = ANY(:ids)""")


async def of(connection: AsyncConnection, ids: Iterable[str]) -> dict[str, str]:
    """id -> name, for ids that have one."""
    return {row.id: row.name for row in await connection.execute(_NAMES, {"ids": sorted(set(ids))})}
