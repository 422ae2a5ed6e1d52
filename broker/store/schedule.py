# SPDX-License-Identifier: Apache-2.0
"""Transfers whose booked time touches a range, in order of their start: for a schedule."""

from dataclasses import dataclass

from sqlalchemy import and_, exists, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.transfer import LIVE
from broker.store.tables import ledger, transfers
from broker.store.transfers import SELECT, Transfer, from_row


@dataclass(frozen=True, slots=True)
class Part:
    """A filter of the schedule: transfers on a link, from or to a host, of a project."""

    link: str | None = None
    host: str | None = None
    project: str | None = None


async def page(
    connection: AsyncConnection, begin_us: int, end_us: int, part: Part, limit: int, after: tuple[int, str] | None
) -> list[Transfer]:
    """At most `limit` transfers behind `after` (start_us, id). Ended transfers count until their end, even if booked for longer."""
    t = transfers.c
    live = t.state.in_(sorted(LIVE))
    ended = t.state.not_in(sorted(LIVE))
    query = SELECT.where(t.start_us < end_us, or_(and_(live, t.finish_us > begin_us), and_(ended, t.actual_finish_us > begin_us)))
    if part.link is not None:
        booked = (
            ledger.c.transfer_id == t.id,
            ledger.c.link_id == part.link,
            ledger.c.end_us > begin_us,
            ledger.c.begin_us < end_us,
        )
        query = query.where(exists(select(1).where(*booked)))
    if part.host is not None:
        query = query.where(or_(t.source == part.host, t.destination == part.host))
    if part.project is not None:
        query = query.where(t.project == part.project)
    if after is not None:
        query = query.where(tuple_(t.start_us, t.id) > tuple_(*after))
    return [from_row(row) for row in await connection.execute(query.order_by(t.start_us, t.id).limit(limit))]
