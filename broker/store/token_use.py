# SPDX-License-Identifier: Apache-2.0
"""The amounts that each token has booked: updated in every desk transaction, so admission need not count. `audit` checks them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.allowance import NOTHING, Use
from broker.store import bulk
from broker.store.tables import token_use

# Ordered by owner, so that two desks that write several owners cannot deadlock.
ADD = """
    INSERT INTO token_use (owner, open, byte_us)
    SELECT owner, open, byte_us FROM unnest(%(owners)s::text[], %(opens)s::bigint[], %(byte_us)s::numeric[]) AS new(owner, open, byte_us)
    ON CONFLICT (owner) DO UPDATE SET open = token_use.open + excluded.open, byte_us = token_use.byte_us + excluded.byte_us
    RETURNING owner, open, byte_us"""


def parameters(changes: Mapping[str, Use]) -> dict[str, list[Any]]:
    """The parameters of `ADD`."""
    owners = sorted(changes)
    return {
        "owners": owners,
        "opens": [changes[owner].open for owner in owners],
        "byte_us": [str(changes[owner].byte_us) for owner in owners],
    }


def from_rows(rows: Iterable[Sequence[Any]]) -> dict[str, Use]:
    """The use per owner, from the rows that `ADD` returns."""
    return {owner: Use(count, int(byte_us)) for owner, count, byte_us in rows}


_READ = "SELECT owner, open, byte_us FROM token_use WHERE owner = ANY(%(owners)s::text[])"


async def read(connection: AsyncConnection, owners: Iterable[str]) -> dict[str, Use]:
    """The use of these owners; owners without a row are left out."""
    wanted = list(owners)
    found = from_rows(await bulk.execute(connection, _READ, {"owners": wanted}))
    return {owner: found.get(owner, NOTHING) for owner in wanted}


async def read_all(connection: AsyncConnection) -> dict[str, Use]:
    """The use of every owner."""
    rows = await connection.execute(select(token_use))
    return {row.owner: Use(row.open, int(row.byte_us)) for row in rows}
