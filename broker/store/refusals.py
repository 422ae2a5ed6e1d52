# SPDX-License-Identifier: Apache-2.0
"""Counts of refused requests: a refusal leaves no transfer, and operators need to see which requests are refused and why."""

from collections.abc import Mapping

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.store import bulk
from broker.store.tables import refusals


async def append(connection: AsyncConnection, now_us: int, counted: Mapping[tuple[str, str], int]) -> None:
    """`counted`: (planner, reason) -> number. One row each, so that no two transactions wait for each other."""
    if counted:
        rows = [(now_us, planner, reason, number) for (planner, reason), number in counted.items()]
        await bulk.append(connection, refusals, ("at_us", "planner", "reason", "number"), rows)


_BY_REASON = text("""
    SELECT reason, sum(number) FILTER (WHERE at_us >= :hour) AS hour, sum(number) AS day
    FROM refusals WHERE at_us >= :day GROUP BY reason ORDER BY day DESC, reason""")


async def count_by_reason(connection: AsyncConnection, hour_us: int, day_us: int) -> dict[str, tuple[int, int]]:
    """Reason -> (number since `hour_us`, number since the earlier `day_us`), the most frequent first."""
    rows = await connection.execute(_BY_REASON, {"hour": hour_us, "day": day_us})
    return {row.reason: (int(row.hour or 0), int(row.day)) for row in rows}
