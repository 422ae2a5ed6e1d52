# SPDX-License-Identifier: Apache-2.0
"""Waiting transfers that might finish earlier after capacity was freed."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.request import NO_OPTIONS

# Waiting: not begun, or (with :begun) begun but not complete. Transfers that already finish as early as their own limits allow are
# excluded.
_WAITING = """
    (state = 'RESERVED' AND start_us > :after OR :begun AND state IN ('RESERVED', 'ACTIVE') AND finish_us > :after)
    AND NOT paused AND unheard_us IS NULL AND planner = ANY(:planners)
    AND CASE WHEN start_us <= :after THEN TRUE
        WHEN duration_us IS NOT NULL THEN start_us > GREATEST(not_before_us, :after)
        ELSE finish_us > GREATEST(not_before_us, :after) + COALESCE(CAST(booked_bytes AS numeric) * 8000000 / rate_max_bps, 0) END"""

_ENDS = text(f"""
    SELECT source, destination, max(COALESCE(CAST(options ->> 'paths' AS integer), :paths)) AS paths FROM transfers
    WHERE {_WAITING} GROUP BY source, destination""")

_NEXT = text(f"""
    SELECT id, best_effort, -priority AS rank, created_us FROM transfers
    WHERE {_WAITING}
        AND ((source, destination) IN (SELECT * FROM unnest(CAST(:sources AS text[]), CAST(:destinations AS text[])))
            OR jsonb_exists_any(options -> 'path', CAST(:links AS text[])))
        AND (best_effort, -priority, created_us, id) > (:best_effort, :rank, :created_us, :id)
    ORDER BY best_effort, -priority, created_us, id LIMIT :limit""")


class Ends(NamedTuple):
    """A pair of hosts with waiting transfers that may take the `paths` shortest paths."""

    source: str
    destination: str
    paths: int


class Place(NamedTuple):
    """A position in the order in which transfers are pulled forward: best effort last, otherwise by priority, then by age."""

    best_effort: bool
    rank: int  # the negative priority
    created_us: int
    id: str


FIRST = Place(False, -(2**31), -(2**63), "")


async def find_ends(connection: AsyncConnection, planners: Collection[str], after_us: int, *, begun: bool) -> list[Ends]:
    """The pairs of hosts with waiting transfers that could begin after `after_us`."""
    values = {"planners": sorted(planners), "after": after_us, "begun": begun, "paths": NO_OPTIONS.paths}
    return [Ends(*row) for row in await connection.execute(_ENDS, values)]


async def find_candidates(
    connection: AsyncConnection,
    between: Sequence[Ends],
    links: Iterable[str],
    planners: Iterable[str],
    after_us: int,
    place: Place,
    limit: int,
    *,
    begun: bool,
) -> list[Place]:
    """At most `limit` transfers behind `place` that wait between these hosts, or have a fixed path over one of `links`."""
    values = {
        "planners": sorted(planners),
        "after": after_us,
        "begun": begun,
        "sources": [pair.source for pair in between],
        "destinations": [pair.destination for pair in between],
        "links": sorted(links),
        "limit": limit,
        **place._asdict(),
    }
    return [Place(row.best_effort, row.rank, row.created_us, row.id) for row in await connection.execute(_NEXT, values)]
