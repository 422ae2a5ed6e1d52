# SPDX-License-Identifier: Apache-2.0
"""Status of promises: one definition, in SQL, for the overview, for lists and for single transfers (in words: docs/operator.md).

A promise is `promised_us`: the finish in the first answer, or one agreed later.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.units import US_PER_S

# Agents begin within a second; a transfer that has not begun this long after its time counts as not begun.
_LATE_US = 10 * US_PER_S
# A host that is down endangers transfers that are to begin within this time.
_SOON_US = 3600 * US_PER_S

# The bytes that the plan carries after the newest report.
_STILL_BOOKED = """
    (SELECT COALESCE(sum(CAST(s ->> 2 AS float8) * (CAST(s ->> 1 AS bigint) - GREATEST(CAST(s ->> 0 AS bigint), t.updated_us))), 0) / 8e6
     FROM jsonb_array_elements(t.segments) AS s WHERE CAST(s ->> 1 AS bigint) > t.updated_us)"""

# Held, paused and cancelled transfers, and expired holds, have no promise and no row here. `reserve` is judged by the clock: the
# process that notes its end may do so a second later.
_PROMISE = f"""
    CASE
    WHEN t.state = 'FINISHED' THEN
        CASE WHEN t.mode = 'reserve' AND t.finish_us <= t.promised_us OR t.actual_finish_us <= t.promised_us THEN 'kept' ELSE 'late' END
    WHEN t.state = 'FAILED' THEN 'failed'
    WHEN t.state = 'EXPIRED' THEN 'withdrawn'
    WHEN t.finish_us > t.promised_us THEN 'booked_late'
    WHEN t.mode = 'reserve' THEN 'kept'
    WHEN t.unheard_us IS NOT NULL THEN 'unheard'
    WHEN t.promised_us < :now THEN 'overdue'
    WHEN t.start_us < :soon AND (t.source = ANY(:down) OR t.mode = 'managed' AND t.destination = ANY(:down)) THEN 'host_down'
    WHEN t.state = 'RESERVED' AND t.start_us < :late AND (t.after IS NULL OR t.released_us IS NOT NULL) THEN 'not_begun'
    WHEN t.state = 'ACTIVE' AND t.volume_bytes - t.bytes_done > {_STILL_BOOKED} THEN 'behind'
    ELSE 'kept' END"""  # fmt: skip
_PROMISED = """
    t.promised_us IS NOT NULL AND NOT t.paused AND t.state NOT IN ('HELD', 'CANCELED')
    AND (t.state <> 'EXPIRED' OR t.mode <> 'reserve' AND t.actual_finish_us >= t.start_us)"""

KEPT, AT_RISK, BROKEN = "kept", "at_risk", "broken"
STATUS = {
    "kept": KEPT,
    "unheard": AT_RISK,
    "host_down": AT_RISK,
    "not_begun": AT_RISK,
    "behind": AT_RISK,
    "booked_late": BROKEN,
    "overdue": BROKEN,
    "late": BROKEN,
    "failed": BROKEN,
    "withdrawn": BROKEN,
}


class Now(NamedTuple):
    """Input of the definition: the time, and the hosts whose agents are silent."""

    now_us: int
    down: Sequence[str]

    def values(self) -> dict[str, object]:
        """Parameters of the statements in this module."""
        return {"now": self.now_us, "soon": self.now_us + _SOON_US, "late": self.now_us - _LATE_US, "down": list(self.down)}


async def look(connection: AsyncConnection, now_us: int, silence_us: int) -> Now:
    """Read the hosts that are down. `silence_us`: how long an agent may be silent before it counts as down."""
    down = "SELECT name FROM hosts WHERE last_seen_us IS NULL OR last_seen_us <= :since OR goodbye_us IS NOT NULL"
    rows = await connection.execute(text(down), {"since": now_us - silence_us})
    return Now(now_us, list(rows.scalars()))


class Standing(NamedTuple):
    """Numbers of promises: of live transfers, and of those that ended since a given time."""

    live: dict[str, int]
    ended: dict[str, int]


_COUNT = text(f"""
    SELECT 'live' AS which, {_PROMISE} AS why, count(*) AS number FROM transfers t
    WHERE t.state IN ('HELD', 'RESERVED', 'ACTIVE') AND {_PROMISED} GROUP BY 2
    UNION ALL
    SELECT 'ended', {_PROMISE}, count(*) FROM transfers t
    WHERE t.state NOT IN ('HELD', 'RESERVED', 'ACTIVE') AND t.actual_finish_us >= :since AND {_PROMISED} GROUP BY 2""")


async def count(connection: AsyncConnection, now: Now, since_us: int) -> Standing:
    """The number of promises kept, at risk and broken: of live transfers, and of those that ended since `since_us`."""
    standing = Standing({KEPT: 0, AT_RISK: 0, BROKEN: 0}, {KEPT: 0, BROKEN: 0})
    for row in await connection.execute(_COUNT, {**now.values(), "since": since_us}):
        counts: dict[str, int] = getattr(standing, row.which)
        counts[STATUS[row.why]] += row.number
    return standing


class Endangered(NamedTuple):
    """A transfer whose promise is at risk."""

    id: str
    label: str | None
    project: str | None
    source: str
    destination: str
    state: str
    why: str
    promised_us: int
    finish_us: int
    priority: int


_ENDANGERED = text(f"""
    SELECT * FROM (
        SELECT id, label, project, source, destination, state, {_PROMISE} AS why, promised_us, finish_us, priority FROM transfers t
        WHERE t.state IN ('HELD', 'RESERVED', 'ACTIVE') AND {_PROMISED}) AS live
    WHERE why <> 'kept' ORDER BY priority DESC, promised_us, id LIMIT :limit""")


async def find_endangered(connection: AsyncConnection, now: Now, limit: int = 20) -> list[Endangered]:
    """Live transfers whose promise is broken or at risk, the most important first, then the most urgent."""
    return [Endangered(*row) for row in await connection.execute(_ENDANGERED, {**now.values(), "limit": limit})]


_OF = text(f"SELECT id, {_PROMISE} AS why FROM transfers t WHERE id = ANY(:ids) AND {_PROMISED}")


async def of(connection: AsyncConnection, ids: Iterable[str], now: Now) -> dict[str, str]:
    """Id -> reason for the status of its promise (a key of STATUS); transfers without a promise are left out."""
    return {row.id: row.why for row in await connection.execute(_OF, {**now.values(), "ids": list(ids)})}


def condition(wanted: Sequence[str]) -> TextClause:
    """A condition for lists: the promise of `transfers` has one of the `wanted` statuses; needs the parameters of `Now.values`."""
    whys = ", ".join(f"'{why}'" for why, status in STATUS.items() if status in wanted)
    return text(f"transfers.id IN (SELECT t.id FROM transfers t WHERE {_PROMISED} AND {_PROMISE} IN ({whys}))")
