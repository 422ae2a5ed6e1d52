# SPDX-License-Identifier: Apache-2.0
"""Writing the decisions of one desk transaction, in as few round trips as possible, because the links stay locked meanwhile."""

from collections.abc import Mapping, Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.allowance import Use
from broker.store import bookings, bulk, events, token_use, transfers
from broker.store.bookings import LedgerRow
from broker.store.events import Event
from broker.store.tables import ledger
from broker.store.transfers import Transfer


async def append(
    connection: AsyncConnection,
    new: Sequence[Transfer],
    rows: Sequence[LedgerRow],
    heads: Mapping[str, int],
    changes: Mapping[str, Use],
    happened: Sequence[Event],
) -> dict[str, Use]:
    """Insert transfers, ledger rows and events, set the links' heads, and add `changes` to the tokens' use; returns their new use.

    A ledger row whose (link, version) already exists violates the primary key, and the transaction fails.
    """
    if not (new or rows or changes or happened):
        return {}
    moved = {row.link_id: heads[row.link_id] for row in rows}
    values = {"ids": list(moved), "versions": list(moved.values())} | token_use.parameters(changes)
    added = (transfers.prepare_added(new), bulk.Added(ledger, LedgerRow._fields, rows), events.prepare_added(happened))
    return token_use.from_rows(await bulk.append_all(connection, added, {"heads": bookings.MOVE_HEADS}, token_use.ADD, values))
