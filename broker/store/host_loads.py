# SPDX-License-Identifier: Apache-2.0
"""The current load of hosts: live transfers, and their booked, applied and measured rates."""

from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.units import US_PER_S

# An older report does not count as a current rate.
_FRESH_US = 10 * US_PER_S


class HostLoad(NamedTuple):
    """Rates in bit/s, of the host as a sender, except `receiving_bps`."""

    transfers: int = 0
    booked_bps: int = 0
    applied_bps: int = 0
    sending_bps: int = 0
    receiving_bps: int = 0


_LOADS = text("""
    WITH live AS (
        SELECT t.source, t.destination, t.state,
            (SELECT COALESCE(sum(CAST(s ->> 2 AS bigint)), 0) FROM jsonb_array_elements(t.segments) AS s
             WHERE t.mode <> 'reserve' AND t.state <> 'HELD' -- that no agent carries out
                 AND CAST(s ->> 0 AS bigint) <= :now AND CAST(s ->> 1 AS bigint) > :now) AS booked,
            COALESCE(r.applied_rate_bps, 0) AS applied, COALESCE(r.rate_bps, 0) AS rate
        FROM transfers t LEFT JOIN LATERAL (
            SELECT applied_rate_bps, rate_bps FROM reports
            WHERE t.state = 'ACTIVE' AND transfer_id = t.id AND host = t.source AND at_us > :fresh ORDER BY sequence DESC LIMIT 1) AS r ON true
        WHERE t.state IN ('HELD', 'RESERVED', 'ACTIVE'))
    SELECT host, CAST(sum(number) AS bigint), CAST(sum(booked) AS bigint), CAST(sum(applied) AS bigint), CAST(sum(sending) AS bigint),
        CAST(sum(receiving) AS bigint)
    FROM (
        SELECT source AS host, 1 AS number, booked, applied, rate AS sending, 0 AS receiving FROM live
        UNION ALL
        SELECT destination, 1, 0, 0, 0, rate FROM live) AS ends
    WHERE CAST(:host AS text) IS NULL OR host = :host
    GROUP BY host""")


async def of(connection: AsyncConnection, now_us: int, host: str | None = None) -> dict[str, HostLoad]:
    """host -> its load, for all hosts with live transfers, or for one host."""
    rows = await connection.execute(_LOADS, {"now": now_us, "fresh": now_us - _FRESH_US, "host": host})
    return {row[0]: HostLoad(*row[1:]) for row in rows}
