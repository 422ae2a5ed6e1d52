# SPDX-License-Identifier: Apache-2.0
"""Hosts with an agent, their assignments' revisions, and the agents' reports."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.store import bulk
from broker.store.tables import hosts, reports


@dataclass(frozen=True, slots=True)
class Host:
    """A row of `hosts`; the fields are its columns, in their order."""

    name: str
    node: str
    nic_bps: int
    data_address: str
    tls_fingerprint: str | None
    agent_version: str | None
    capabilities: dict[str, Any] | None
    clock: dict[str, Any] | None
    drained: bool
    revision: int
    enrolled_us: int
    last_seen_us: int | None
    fetched_revision: int | None = None
    goodbye_us: int | None = None
    applied_revision: int | None = None
    said_all_us: int | None = None


class Report(NamedTuple):
    """One report of an agent on one transfer; `detail` holds checksum, code and text where there are any."""

    transfer_id: str
    host: str
    sequence: int
    at_us: int
    received_us: int
    kind: str
    bytes: int | None
    rate_bps: int | None
    applied_rate_bps: int | None
    detail: dict[str, Any] | None


async def get(connection: AsyncConnection, name: str) -> Host | None:
    row = (await connection.execute(select(hosts).where(hosts.c.name == name))).one_or_none()
    return None if row is None else Host(*row)


async def get_many(connection: AsyncConnection, names: Iterable[str] | None = None) -> dict[str, Host]:
    query = select(hosts).order_by(hosts.c.name)
    if names is not None:
        query = query.where(hosts.c.name == func.any(list(names)))
    return {row.name: Host(*row) for row in await connection.execute(query)}


async def revisions(connection: AsyncConnection, names: Iterable[str]) -> dict[str, int]:
    """Of the assignments of those hosts that there are."""
    rows = await connection.execute(select(hosts.c.name, hosts.c.revision).where(hosts.c.name.in_(list(names))))
    return {row.name: row.revision for row in rows}


async def put(connection: AsyncConnection, host: Host) -> None:
    """A new host, or one that enrols again (its assignments' revision goes on)."""
    values = {name: getattr(host, name) for name in Host.__slots__}
    await connection.execute(delete(hosts).where(hosts.c.name == host.name))
    await connection.execute(insert(hosts).values(**values))


async def remove(connection: AsyncConnection, name: str) -> None:
    await connection.execute(delete(hosts).where(hosts.c.name == name))


_BUMP = text("""
    UPDATE hosts SET revision = revision + 1
    WHERE name IN (SELECT name FROM hosts WHERE name = ANY(:names) ORDER BY name FOR UPDATE)""")


async def bump(connection: AsyncConnection, names: Iterable[str]) -> None:
    """The assignments of these hosts changed."""
    await connection.execute(_BUMP, {"names": sorted(names)})


async def seen(connection: AsyncConnection, name: str, now_us: int, **values: Any) -> int | None:
    """Note a sign of life, and whatever the agent says of itself; returns the revision of its assignments, None for an unknown host.

    A sign of life takes back a goodbye, unless it is one.
    """
    said = {"last_seen_us": now_us, "goodbye_us": None, **values}
    statement = update(hosts).where(hosts.c.name == name).values(**said).returning(hosts.c.revision)
    revision: int | None = (await connection.execute(statement)).scalar_one_or_none()
    return revision


async def said_all(connection: AsyncConnection, name: str, now_us: int) -> None:
    """Its agent has told all that it had to tell by then, and that is taken."""
    await connection.execute(update(hosts).where(hosts.c.name == name).values(said_all_us=now_us))


async def fetched(connection: AsyncConnection, name: str, revision: int) -> None:
    """Its agent is being given its assignments of this revision."""
    await connection.execute(update(hosts).where(hosts.c.name == name).values(fetched_revision=revision))


async def drained(connection: AsyncConnection) -> frozenset[str]:
    return frozenset((await connection.execute(select(hosts.c.name).where(hosts.c.drained))).scalars())


async def capabilities(connection: AsyncConnection) -> dict[str, dict[str, Any] | None]:
    """What each host's agent says it can do."""
    rows = await connection.execute(select(hosts.c.name, hosts.c.capabilities))
    return {row.name: row.capabilities for row in rows}


async def set_drained(connection: AsyncConnection, name: str, drained: bool) -> None:
    await connection.execute(update(hosts).where(hosts.c.name == name).values(drained=drained))


async def insert_reports(connection: AsyncConnection, new: Sequence[Report]) -> set[tuple[str, int]]:
    """Keep reports; returns (transfer, sequence) of those that were not known yet."""
    rows = [(*report[:-1], None if report.detail is None else orjson.dumps(report.detail).decode()) for report in new]
    taken = await bulk.insert(connection, reports, Report._fields, rows, "ON CONFLICT DO NOTHING RETURNING transfer_id, sequence")
    return {(transfer_id, sequence) for transfer_id, sequence in taken}


async def measured(connection: AsyncConnection, transfer_id: str, limit: int = 5000) -> list[Report]:
    """The reports on one transfer in order of time."""
    query = select(reports).where(reports.c.transfer_id == transfer_id).order_by(reports.c.at_us, reports.c.sequence).limit(limit)
    return [Report(*row) for row in await connection.execute(query)]


class Reached(NamedTuple):
    """Of one report of a sender: the rate that it measured, and the one that it applied (never 0)."""

    at_us: int
    rate_bps: int
    applied_bps: int


_REACHED = text("""
    SELECT t.id, r.at_us, r.rate_bps, r.applied_rate_bps
    FROM transfers t CROSS JOIN LATERAL (
        SELECT at_us, rate_bps, applied_rate_bps, sequence FROM reports
        WHERE transfer_id = t.id AND host = t.source AND kind = 'progress' AND rate_bps IS NOT NULL AND applied_rate_bps > 0
        ORDER BY sequence DESC LIMIT :limit) AS r
    WHERE t.id = ANY(:ids) ORDER BY t.id, r.sequence DESC""")


async def reached(connection: AsyncConnection, ids: Sequence[str], limit: int = 30) -> dict[str, list[Reached]]:
    """The last reports of each transfer's sender, the newest first."""
    found: dict[str, list[Reached]] = {}
    for row in await connection.execute(_REACHED, {"ids": list(ids), "limit": limit}):
        found.setdefault(row.id, []).append(Reached(*row[1:]))
    return found
