# SPDX-License-Identifier: Apache-2.0
"""`bwb audit`: the invariants, checked by SQL alone. This module must not use code of the planners or calendars."""

from typing import Any

from sqlalchemy import insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.store.tables import audits

# capacity(t) in payload bit/s at every instant of a change, compared with the running sum of all deltas up to then. Only the
# present capacity function is stored, so instants before a link's last change are not checked: earlier audits did that.
# Payload at MTU m is (m - 40) / (m + 38) of the line rate, rounded down (docs/planning.md).
_OVER_CAPACITY = """
WITH changes AS (
    SELECT link_id, begin_us AS at_us, delta_bps AS change FROM ledger WHERE end_us > :since
    UNION ALL SELECT link_id, end_us, -delta_bps FROM ledger WHERE end_us > :since
    UNION ALL SELECT link_id, begin_us, 0 FROM link_steps
    UNION ALL SELECT link_id, begin_us, 0 FROM link_windows
    UNION ALL SELECT link_id, end_us, 0 FROM link_windows
    UNION ALL SELECT id, changed_us, 0 FROM links
), instants AS (
    SELECT link_id, at_us, sum(change) AS change FROM changes GROUP BY link_id, at_us
), levels AS (
    SELECT link_id, at_us, sum(change) OVER (PARTITION BY link_id ORDER BY at_us) AS booked FROM instants
), judged AS (
    SELECT l.id, v.at_us, v.booked,
        LEAST(
            COALESCE((SELECT s.bps FROM link_steps s WHERE s.link_id = l.id AND s.begin_us <= v.at_us ORDER BY s.begin_us DESC LIMIT 1),
                     l.capacity_bps),
            COALESCE((SELECT min(w.bps) FROM link_windows w WHERE w.link_id = l.id AND w.begin_us <= v.at_us AND v.at_us < w.end_us),
                     9223372036854775807)
        ) AS raw_bps, l.mtu_bytes
    FROM levels v JOIN links l ON l.id = v.link_id WHERE l.deleted_us IS NULL AND v.at_us >= GREATEST(:since, l.changed_us)
)
SELECT id AS link, at_us, booked, capacity FROM (
    SELECT *, CASE WHEN mtu_bytes IS NULL THEN raw_bps
              ELSE floor(raw_bps::numeric * (mtu_bytes - 40) / (mtu_bytes + 38)) END AS capacity FROM judged
) AS payload WHERE booked > capacity OR booked < 0 ORDER BY id, at_us LIMIT 50
"""

_LIVE = """
WITH live AS (
    SELECT * FROM transfers WHERE state IN ('HELD', 'RESERVED', 'ACTIVE')
), parts AS (
    SELECT t.id, (s->>0)::bigint AS begin_us, (s->>1)::bigint AS end_us, (s->>2)::bigint AS rate_bps, s->3 AS path, number
    FROM live t CROSS JOIN LATERAL jsonb_array_elements(t.segments) WITH ORDINALITY AS listed(s, number)
)
"""

_VOLUME = (
    _LIVE
    + """
SELECT t.id AS transfer, t.booked_bytes, t.carried_bytes + floor(COALESCE(sum(
        p.rate_bps::numeric * (p.end_us - p.begin_us)) FILTER (WHERE p.begin_us >= t.plan_from_us), 0) / 8000000) AS carried
FROM live t LEFT JOIN parts p ON p.id = t.id WHERE NOT t.paused
GROUP BY t.id, t.booked_bytes, t.carried_bytes
HAVING t.carried_bytes + floor(COALESCE(sum(
        p.rate_bps::numeric * (p.end_us - p.begin_us)) FILTER (WHERE p.begin_us >= t.plan_from_us), 0) / 8000000) < t.booked_bytes
LIMIT 50
"""
)

_TIMES = (
    _LIVE
    + """
SELECT t.id AS transfer, p.begin_us, p.end_us, t.not_before_us, t.deadline_us FROM live t JOIN parts p ON p.id = t.id
WHERE p.begin_us >= t.plan_from_us AND (p.begin_us < t.not_before_us OR p.end_us > t.deadline_us
   OR p.begin_us >= p.end_us OR p.rate_bps <= 0 OR p.rate_bps > t.rate_max_bps) LIMIT 50
"""
)

# At every instant the total rate over several paths is at most the requested maximum; and two simultaneous segments take different
# paths. (For one path at a time, the check above covers the rate.)
_SPLIT = (
    _LIVE
    + """
, several AS (
    SELECT p.* FROM parts p JOIN live t ON t.id = p.id WHERE (t.options->>'split')::boolean AND p.begin_us >= t.plan_from_us
), changes AS (
    SELECT id, begin_us AS at_us, rate_bps AS change FROM several UNION ALL SELECT id, end_us, -rate_bps FROM several
), levels AS (
    SELECT id, at_us, sum(sum(change)) OVER (PARTITION BY id ORDER BY at_us) AS rate_bps FROM changes GROUP BY id, at_us
)
SELECT v.id AS transfer, v.at_us, v.rate_bps, t.rate_max_bps FROM levels v JOIN live t ON t.id = v.id WHERE v.rate_bps > t.rate_max_bps
UNION ALL
SELECT id, begin_us, rate_bps, NULL FROM (
    SELECT p.*, max(p.end_us) OVER (
        PARTITION BY p.id, CASE WHEN (t.options->>'split')::boolean THEN p.path END ORDER BY p.begin_us, p.number
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until_us
    FROM parts p JOIN live t ON t.id = p.id WHERE p.begin_us >= t.plan_from_us) AS ordered
WHERE busy_until_us > begin_us LIMIT 50
"""
)

# Class 2 transfers hold capacity for their duration: the present plan has no gap and never falls below the requested minimum rate,
# and together with the time held before it is as long as requested.
_HOLDING = (
    _LIVE
    + """
, holding AS (
    SELECT p.*, p.begin_us >= t.plan_from_us AS present FROM parts p JOIN live t ON t.id = p.id WHERE t.duration_us IS NOT NULL AND NOT t.paused
), changes AS (
    SELECT id, present, begin_us AS at_us, rate_bps AS change FROM holding UNION ALL SELECT id, present, end_us, -rate_bps FROM holding
), levels AS (
    SELECT id, present, at_us, sum(sum(change)) OVER (PARTITION BY id, present ORDER BY at_us) AS rate_bps,
        lead(at_us) OVER (PARTITION BY id, present ORDER BY at_us) AS until_us
    FROM changes GROUP BY id, present, at_us
), spans AS (
    SELECT id, sum(until_us - at_us) FILTER (WHERE rate_bps > 0) AS held_us,
        min(at_us) FILTER (WHERE present AND rate_bps <= 0) AS gap_us, min(rate_bps) FILTER (WHERE present) AS min_bps
    FROM levels WHERE until_us IS NOT NULL GROUP BY id
)
SELECT t.id AS transfer, t.duration_us, s.held_us, s.gap_us, s.min_bps, t.rate_min_bps FROM live t LEFT JOIN spans s ON s.id = t.id
WHERE t.duration_us IS NOT NULL AND NOT t.paused
    AND (s.held_us IS NULL OR s.held_us < t.duration_us OR s.gap_us IS NOT NULL OR s.min_bps < t.rate_min_bps)
LIMIT 50
"""
)

# The ledger rows of a transfer on a link must match its segments: compared as running sums at every instant of either.
_LEDGER = (
    _LIVE
    + """
, said AS (
    SELECT p.id, link_id, p.begin_us, p.end_us, p.rate_bps FROM parts p CROSS JOIN LATERAL jsonb_array_elements_text(p.path) AS link_id
), changes AS (
    SELECT id, link_id, begin_us AS at_us, rate_bps AS change FROM said
    UNION ALL SELECT id, link_id, end_us, -rate_bps FROM said
    UNION ALL SELECT g.transfer_id, g.link_id, g.begin_us, -g.delta_bps FROM ledger g JOIN live ON live.id = g.transfer_id
    UNION ALL SELECT g.transfer_id, g.link_id, g.end_us, g.delta_bps FROM ledger g JOIN live ON live.id = g.transfer_id
), differences AS (
    SELECT id, link_id, at_us, sum(sum(change)) OVER (PARTITION BY id, link_id ORDER BY at_us) AS difference
    FROM changes GROUP BY id, link_id, at_us
)
SELECT id AS transfer, link_id AS link, at_us, difference FROM differences WHERE difference <> 0 AND at_us >= :since LIMIT 50
"""
)

# Ended transfers hold no capacity from the end of the slot in which they ended: the cut is rounded up on each link of a path in
# turn, so by less than the sum of their slots. Bookings are compared in bits, whose sum is zero if every booking was released.
_ENDED = """
WITH ended AS (
    SELECT t.id, GREATEST(:now, t.updated_us + sum(l.slot_us)) AS from_us
    FROM transfers t JOIN (SELECT DISTINCT transfer_id, link_id FROM ledger WHERE end_us > :now) AS used ON used.transfer_id = t.id
    JOIN links l ON l.id = used.link_id
    WHERE t.state NOT IN ('HELD', 'RESERVED', 'ACTIVE') GROUP BY t.id, t.updated_us
)
SELECT e.id AS transfer, g.link_id AS link, sum(g.delta_bps) AS still_booked
FROM ledger g JOIN ended e ON e.id = g.transfer_id WHERE g.end_us > e.from_us
GROUP BY e.id, g.link_id HAVING sum(g.delta_bps::numeric * (g.end_us - GREATEST(g.begin_us, e.from_us))) <> 0 LIMIT 50
"""
# The versions of links match the ledger.
_HEADS = """
SELECT l.id AS link, l.version, max(g.version) AS newest FROM links l JOIN ledger g ON g.link_id = l.id
GROUP BY l.id, l.version HAVING max(g.version) > l.version LIMIT 50
"""
_KEYS = """
SELECT answer->'result'->>0 AS transfer, count(*) AS keys FROM idempotency_keys
WHERE jsonb_typeof(answer->'result') = 'array' AND jsonb_array_length(answer->'result') = 1 AND jsonb_typeof(answer->'result'->0) = 'string'
GROUP BY 1 HAVING count(*) > 1 LIMIT 50
"""

# A transfer that waits for a signal is not booked before the planned finish of its predecessor; with clock, each keeps its time.
_CHAINS = """
SELECT s.id AS transfer, s.after, s.start_us, p.finish_us FROM transfers s JOIN transfers p ON p.id = s.after
WHERE s.state IN ('HELD', 'RESERVED') AND s.after IS NOT NULL AND s.released_us IS NULL AND NOT s.paused
    AND p.state IN ('HELD', 'RESERVED', 'ACTIVE') AND NOT p.paused
    AND s.signal->>'kind' <> 'clock' AND s.start_us < p.finish_us
UNION ALL
SELECT s.id, s.after, s.start_us, NULL FROM transfers s JOIN transfers p ON p.id = s.after
WHERE s.state IN ('HELD', 'RESERVED', 'ACTIVE') AND s.after IS NOT NULL AND s.released_us IS NULL
    AND (p.state NOT IN ('HELD', 'RESERVED', 'ACTIVE') OR p.paused) LIMIT 50
"""

# The stored use of each token equals the sum over its live transfers.
_USE = """
WITH counted AS (
    SELECT owner, count(*) AS open,
        COALESCE(sum(booked_bytes::numeric * GREATEST(finish_us - created_us, 0)) FILTER (WHERE NOT paused), 0) AS byte_us
    FROM transfers WHERE state IN ('HELD', 'RESERVED', 'ACTIVE') GROUP BY owner
)
SELECT COALESCE(c.owner, u.owner) AS owner, c.open, u.open AS kept, c.byte_us::text, u.byte_us::text AS byte_us_kept
FROM counted c FULL JOIN token_use u ON u.owner = c.owner
WHERE COALESCE(c.open, 0) <> COALESCE(u.open, 0) OR COALESCE(c.byte_us, 0) <> COALESCE(u.byte_us, 0) LIMIT 50
"""

CHECKS: dict[str, str] = {
    "over_capacity": _OVER_CAPACITY,
    "volume_not_carried": _VOLUME,
    "outside_the_times_asked": _TIMES,
    "paths_add_up_to_more": _SPLIT,
    "holding_time_broken": _HOLDING,
    "ledger_differs_from_plan": _LEDGER,
    "ended_but_booked": _ENDED,
    "head_behind_ledger": _HEADS,
    "key_used_twice": _KEYS,
    "successor_out_of_turn": _CHAINS,
    "token_use_differs": _USE,
}


async def find_violations(connection: AsyncConnection, now_us: int, since_us: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Rows that break an invariant, by check; empty lists mean no violation. All checks use one snapshot."""
    await connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
    found = {}
    for name, query in CHECKS.items():
        rows = (await connection.execute(text(query), _used(query, now_us, since_us))).mappings().all()
        found[name] = [{key: _plain(value) for key, value in row.items()} for row in rows]
    return found


def _used(query: str, now_us: int, since_us: int) -> dict[str, int]:
    return {name: value for name, value in (("now", now_us), ("since", since_us)) if f":{name}" in query.replace("::", "")}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | None) else int(value)


async def remember(connection: AsyncConnection, at_us: int, took_us: int, found: dict[str, list[dict[str, Any]]]) -> None:
    """Store the outcome of an audit: the violated checks of `found`."""
    broken = {name: rows for name, rows in found.items() if rows}
    await connection.execute(insert(audits).values(at_us=at_us, took_us=took_us, violations=broken))


async def newest(connection: AsyncConnection) -> tuple[int, dict[str, Any]] | None:
    """(time, violations by check) of the last stored audit."""
    row = (
        await connection.execute(select(audits.c.at_us, audits.c.violations).order_by(audits.c.id.desc()).limit(1))
    ).one_or_none()
    return None if row is None else (row.at_us, row.violations)
