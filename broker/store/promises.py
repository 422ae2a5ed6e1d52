# SPDX-License-Identifier: Apache-2.0
"""Are promises being kept? One definition, as SQL, for the overview, for lists and for single transfers (docs/operator.md has it in words).

What was promised is `promised_us`: the finish that was first answered, or agreed since.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.units import US_PER_S

# Agents begin within a second; whoever has not begun so long after its time is waited for.
_LATE_US = 10 * US_PER_S
# A host that is down endangers what is to begin within this.
_SOON_US = 3600 * US_PER_S

# What of the plan lies behind the newest report carries so many bytes.
_STILL_BOOKED = """
    (SELECT COALESCE(sum(CAST(s ->> 2 AS float8) * (CAST(s ->> 1 AS bigint) - GREATEST(CAST(s ->> 0 AS bigint), t.updated_us))), 0) / 8e6
     FROM jsonb_array_elements(t.segments) AS s WHERE CAST(s ->> 1 AS bigint) > t.updated_us)"""

# Nothing is promised of what is held, paused or was taken back, nor of a hold that ran out: then there is no row. `reserve` is by the clock:
# whoever has to note its end may come a second later.
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
    """What the definition needs to know: the time, and the hosts whose agents are silent."""

    now_us: int
    down: Sequence[str]

    def values(self) -> dict[str, object]:
        """Parameters of the statements here."""
        return {"now": self.now_us, "soon": self.now_us + _SOON_US, "late": self.now_us - _LATE_US, "down": list(self.down)}


async def look(connection: AsyncConnection, now_us: int, silence_us: int) -> Now:
    """`silence_us`: how long an agent may be silent before it counts as down."""
    down = "SELECT name FROM hosts WHERE last_seen_us IS NULL OR last_seen_us <= :since OR goodbye_us IS NOT NULL"
    rows = await connection.execute(text(down), {"since": now_us - silence_us})
    return Now(now_us, list(rows.scalars()))


class Standing(NamedTuple):
    """How many promises: of live transfers, and of those that ended since a time."""

    live: dict[str, int]
    ended: dict[str, int]


_COUNT = text(f"""
    SELECT 'live' AS which, {_PROMISE} AS why, count(*) AS number FROM transfers t
    WHERE t.state IN ('HELD', 'RESERVED', 'ACTIVE') AND {_PROMISED} GROUP BY 2
    UNION ALL
    SELECT 'ended', {_PROMISE}, count(*) FROM transfers t
    WHERE t.state NOT IN ('HELD', 'RESERVED', 'ACTIVE') AND t.actual_finish_us >= :since AND {_PROMISED} GROUP BY 2""")


async def count(connection: AsyncConnection, now: Now, since_us: int) -> Standing:
    """How many promises are kept, at risk and broken: of live transfers, and of those that ended since `since_us`."""
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
    """Id -> why its promise stands as it does (a key of STATUS); without those of which nothing is promised."""
    return {row.id: row.why for row in await connection.execute(_OF, {**now.values(), "ids": list(ids)})}


def condition(wanted: Sequence[str]) -> TextClause:
    """For lists: the transfer (as `transfers`) stands like one of `wanted`; needs the parameters of `Now.values`."""
    whys = ", ".join(f"'{why}'" for why, status in STATUS.items() if status in wanted)
    return text(f"transfers.id IN (SELECT t.id FROM transfers t WHERE {_PROMISED} AND {_PROMISE} IN ({whys}))")
