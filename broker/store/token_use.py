# SPDX-License-Identifier: Apache-2.0
"""How much each token has booked: kept up with every transaction of the desk, so that admission need not count. `audit` proves it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.allowance import NOTHING, Use
from broker.store import bulk
from broker.store.tables import token_use

# In order of the owners: two desks that write several of them wait for each other in no ring.
ADD = """
    INSERT INTO token_use (owner, open, byte_us)
    SELECT owner, open, byte_us FROM unnest(%(owners)s::text[], %(opens)s::bigint[], %(byte_us)s::numeric[]) AS new(owner, open, byte_us)
    ON CONFLICT (owner) DO UPDATE SET open = token_use.open + excluded.open, byte_us = token_use.byte_us + excluded.byte_us
    RETURNING owner, open, byte_us"""


def parameters(changes: Mapping[str, Use]) -> dict[str, list[Any]]:
    """Those of `ADD`."""
    owners = sorted(changes)
    return {
        "owners": owners,
        "opens": [changes[owner].open for owner in owners],
        "byte_us": [str(changes[owner].byte_us) for owner in owners],
    }


def from_rows(rows: Iterable[Sequence[Any]]) -> dict[str, Use]:
    """Of what `ADD` returns."""
    return {owner: Use(count, int(byte_us)) for owner, count, byte_us in rows}


_READ = "SELECT owner, open, byte_us FROM token_use WHERE owner = ANY(%(owners)s::text[])"


async def read(connection: AsyncConnection, owners: Iterable[str]) -> dict[str, Use]:
    """What these owners use; nothing of those without a row."""
    wanted = list(owners)
    found = from_rows(await bulk.execute(connection, _READ, {"owners": wanted}))
    return {owner: found.get(owner, NOTHING) for owner in wanted}


async def read_all(connection: AsyncConnection) -> dict[str, Use]:
    """What every owner uses."""
    rows = await connection.execute(select(token_use))
    return {row.owner: Use(row.open, int(row.byte_us)) for row in rows}
