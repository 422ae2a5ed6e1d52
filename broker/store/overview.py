# SPDX-License-Identifier: Apache-2.0
"""Counts for the overview. Each uses an index over live or recent rows, so its cost does not grow with the history."""

from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_STATES = text("""
    SELECT state, count(*) AS number FROM transfers WHERE state IN ('HELD', 'RESERVED', 'ACTIVE') GROUP BY state
    UNION ALL
    SELECT state, count(*) FROM transfers
    WHERE state NOT IN ('HELD', 'RESERVED', 'ACTIVE') AND actual_finish_us >= :since GROUP BY state""")


async def count_by_state(connection: AsyncConnection, since_us: int) -> dict[str, int]:
    """The number of live transfers, and of those that ended since `since_us`, by state."""
    return {row.state: row.number for row in await connection.execute(_STATES, {"since": since_us})}


class Hour(NamedTuple):
    """The number of requests admitted and refused in one hour."""

    begin_us: int
    admitted: int
    refused: int


_HOURS = text("""
    SELECT hour, CAST(sum(admitted) AS bigint), CAST(sum(refused) AS bigint) FROM (
        SELECT (created_us - :since) / :span AS hour, count(*) AS admitted, 0 AS refused FROM transfers WHERE created_us >= :since GROUP BY 1
        UNION ALL
        SELECT (at_us - :since) / :span, 0, sum(number) FROM refusals WHERE at_us >= :since GROUP BY 1) AS asked
    GROUP BY hour""")


async def read_decisions(connection: AsyncConnection, since_us: int, span_us: int, number: int) -> list[Hour]:
    """Admissions and refusals in `number` spans of time from `since_us` on."""
    found = {row[0]: row for row in await connection.execute(_HOURS, {"since": since_us, "span": span_us})}
    return [
        Hour(since_us + index * span_us, *((found[index][1], found[index][2]) if index in found else (0, 0)))
        for index in range(number)
    ]


class Agents(NamedTuple):
    """The number of agents that are up, late and down."""

    up: int
    late: int
    down: int


_AGENTS = text("""
    SELECT count(*) FILTER (WHERE heard_us > :late), count(*) FILTER (WHERE heard_us <= :late AND heard_us > :lost),
        count(*) FILTER (WHERE heard_us IS NULL OR heard_us <= :lost)
    FROM (SELECT CASE WHEN goodbye_us IS NULL THEN last_seen_us END AS heard_us FROM hosts) AS heard""")


async def count_agents(connection: AsyncConnection, late_us: int, lost_us: int) -> Agents:
    """`late`: not heard of since `late_us`; `down`: not since the earlier `lost_us`, or stopped."""
    return Agents(*(await connection.execute(_AGENTS, {"late": late_us, "lost": lost_us})).one())
