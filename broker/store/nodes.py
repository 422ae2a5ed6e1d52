# SPDX-License-Identifier: Apache-2.0
"""Names and map positions of nodes. Links may refer to nodes that have no row here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.store import bulk
from broker.store.tables import nodes


@dataclass(frozen=True, slots=True)
class Node:
    """A row of `nodes`. Degrees: north and east are positive."""

    id: str
    name: str | None = None
    latitude: float | None = None
    longitude: float | None = None


_COLUMNS = tuple(field.name for field in fields(Node))


async def read_all(connection: AsyncConnection) -> dict[str, Node]:
    """All stored nodes, by id."""
    rows = await connection.execute(select(*(nodes.c[name] for name in _COLUMNS)).order_by(nodes.c.id))
    return {row.id: Node(*row) for row in rows}


async def put(connection: AsyncConnection, given: Sequence[Node]) -> None:
    """Insert or update nodes to the given state."""
    await forget(connection, [node.id for node in given])
    await bulk.append(connection, nodes, _COLUMNS, [[getattr(node, name) for name in _COLUMNS] for node in given])


async def forget(connection: AsyncConnection, ids: Iterable[str]) -> None:
    """Delete the rows of nodes."""
    await connection.execute(delete(nodes).where(nodes.c.id == func.any(list(ids))))
