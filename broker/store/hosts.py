# SPDX-License-Identifier: Apache-2.0
"""Hosts with an agent, the revisions of their assignments, and the state that agents report."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.capabilities import Capabilities
from broker.store.tables import hosts


@dataclass(frozen=True, slots=True)
class Host:
    """A row of `hosts`; the fields are its columns, in their order."""

    name: str
    node: str
    nic_bps: int
    data_address: str
    tls_fingerprint: str | None
    agent_version: str | None
    capabilities: Capabilities
    clock: dict[str, Any] | None
    drained: bool
    revision: int
    enrolled_us: int
    last_seen_us: int | None
    fetched_revision: int | None = None
    goodbye_us: int | None = None
    applied_revision: int | None = None
    said_all_us: int | None = None


def _host(row: Row[Any]) -> Host:
    values = row._asdict()
    return Host(**{**values, "capabilities": Capabilities.parse(values["capabilities"])})


async def get(connection: AsyncConnection, name: str) -> Host | None:
    """The host, or None."""
    row = (await connection.execute(select(hosts).where(hosts.c.name == name))).one_or_none()
    return None if row is None else _host(row)


async def get_many(connection: AsyncConnection, names: Iterable[str] | None = None) -> dict[str, Host]:
    """Hosts by name: the named ones, or all."""
    query = select(hosts).order_by(hosts.c.name)
    if names is not None:
        query = query.where(hosts.c.name == func.any(list(names)))
    return {row.name: _host(row) for row in await connection.execute(query)}


async def get_revisions(connection: AsyncConnection, names: Iterable[str]) -> dict[str, int]:
    """The revision of the assignments of each existing host."""
    rows = await connection.execute(select(hosts.c.name, hosts.c.revision).where(hosts.c.name.in_(list(names))))
    return {row.name: row.revision for row in rows}


async def put(connection: AsyncConnection, host: Host) -> None:
    """Store a new host, or one that enrols again (the revision of its assignments continues)."""
    values = {name: getattr(host, name) for name in Host.__slots__} | {"capabilities": host.capabilities.document}
    await connection.execute(delete(hosts).where(hosts.c.name == host.name))
    await connection.execute(insert(hosts).values(**values))


async def remove(connection: AsyncConnection, name: str) -> None:
    """Delete a host's row."""
    await connection.execute(delete(hosts).where(hosts.c.name == name))


_BUMP = text("""
    UPDATE hosts SET revision = revision + 1
    WHERE name IN (SELECT name FROM hosts WHERE name = ANY(:names) ORDER BY name FOR UPDATE)""")


async def bump(connection: AsyncConnection, names: Iterable[str]) -> None:
    """Increase the revision of these hosts' assignments."""
    await connection.execute(_BUMP, {"names": sorted(names)})


async def mark_seen(connection: AsyncConnection, name: str, now_us: int, **values: Any) -> int | None:
    """Store a sign of life and the values that the agent reports; returns the revision of its assignments, None for an unknown host.

    A sign of life clears an earlier goodbye, unless it is one itself.
    """
    said = {"last_seen_us": now_us, "goodbye_us": None, **values}
    statement = update(hosts).where(hosts.c.name == name).values(**said).returning(hosts.c.revision)
    revision: int | None = (await connection.execute(statement)).scalar_one_or_none()
    return revision


async def mark_complete(connection: AsyncConnection, name: str, now_us: int) -> None:
    """Store that all reports of the agent up to `now_us` have been received and processed."""
    await connection.execute(update(hosts).where(hosts.c.name == name).values(said_all_us=now_us))


async def mark_fetched(connection: AsyncConnection, name: str, revision: int) -> None:
    """Store that the agent is about to receive its assignments of this revision."""
    await connection.execute(update(hosts).where(hosts.c.name == name).values(fetched_revision=revision))


async def find_drained(connection: AsyncConnection) -> frozenset[str]:
    """Names of the hosts that take no new transfers."""
    return frozenset((await connection.execute(select(hosts.c.name).where(hosts.c.drained))).scalars())


async def get_capabilities(connection: AsyncConnection) -> dict[str, Capabilities]:
    """The capabilities that each host's agent reports."""
    rows = await connection.execute(select(hosts.c.name, hosts.c.capabilities))
    return {row.name: Capabilities.parse(row.capabilities) for row in rows}


async def set_drained(connection: AsyncConnection, name: str, drained: bool) -> None:
    """Set whether a host takes no new transfers."""
    await connection.execute(update(hosts).where(hosts.c.name == name).values(drained=drained))
