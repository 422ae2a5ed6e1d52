# SPDX-License-Identifier: Apache-2.0
"""The bookings of a link by transfer, and the rates measured on it: for plots."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.scans import Int64Array
from broker.store.tables import transfers

_ROWS = text("""
    SELECT transfer_id, begin_us, end_us, delta_bps FROM ledger
    WHERE link_id = :link AND end_us > :begin AND begin_us < :end ORDER BY transfer_id""")


@dataclass(frozen=True, slots=True)
class Rows:
    """Ledger rows of one link in a time range, grouped by transfer: transfer i has rows starts[i] to starts[i + 1] (excluded)."""

    ids: list[str]
    starts: list[int]
    begins: Int64Array
    ends: Int64Array
    deltas: Int64Array


async def rows(connection: AsyncConnection, link_id: str, begin_us: int, end_us: int) -> Rows:
    """All ledger rows of a link that touch [begin, end), by transfer."""
    found = (await connection.execute(_ROWS, {"link": link_id, "begin": begin_us, "end": end_us})).all()
    ids: list[str] = []
    starts: list[int] = []
    for index, row in enumerate(found):
        if not ids or row[0] != ids[-1]:
            ids.append(row[0])
            starts.append(index)
    columns = np.array([row[1:] for row in found], np.int64).reshape(-1, 3)
    return Rows(ids, [*starts, len(found)], columns[:, 0], columns[:, 1], columns[:, 2])


class Named(NamedTuple):
    """The fields by which people recognise a transfer."""

    id: str
    label: str | None
    project: str | None
    state: str
    source: str
    destination: str


async def read_names(connection: AsyncConnection, ids: Iterable[str]) -> dict[str, Named]:
    """These fields of transfers, by id."""
    query = select(*(transfers.c[name] for name in Named._fields)).where(transfers.c.id == func.any(list(ids)))
    return {row.id: Named(*row) for row in await connection.execute(query)}


# Each sender's mean rate in each span, summed over the transfers. (A transfer that left the link for another path still counts.)
_MEASURED = text("""
    SELECT span, CAST(LEAST(sum(rate), 9223372036854775807) AS bigint) FROM (
        SELECT (r.at_us - :begin) / :span AS span, avg(r.rate_bps) AS rate
        FROM reports r JOIN transfers t ON t.id = r.transfer_id AND t.source = r.host
        WHERE r.transfer_id = ANY(:ids) AND r.at_us >= :begin AND r.at_us < :end AND r.kind = 'progress' AND r.rate_bps IS NOT NULL
        GROUP BY r.transfer_id, 1) AS of_transfers
    GROUP BY span""")


async def read_measured(
    connection: AsyncConnection, ids: Sequence[str], begin_us: int, span_us: int, number: int
) -> list[int | None]:
    """The total bit/s measured by the senders of these transfers, in each of `number` spans; None without a report."""
    values = {"ids": list(ids), "begin": begin_us, "end": begin_us + span_us * number, "span": span_us}
    rates: list[int | None] = [None] * number
    for span, rate in await connection.execute(_MEASURED, values):
        rates[span] = rate
    return rates
