# SPDX-License-Identifier: Apache-2.0
"""Links, their ledgers and the topology: the rows that the desk locks, reads and appends."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.calendar import Step
from broker.core.capacity import Window
from broker.core.network import Link
from broker.core.scans import Int64Array
from broker.store import bulk
from broker.store.tables import ledger, link_steps, link_windows, links, topology


class LedgerRow(NamedTuple):
    """The booked rate of the link changes by `delta_bps` on [begin, end)."""

    link_id: str
    version: int
    transfer_id: str
    begin_us: int
    end_us: int
    delta_bps: int


class Head(NamedTuple):
    """The ledger version of a link, and the number of changes of the link itself."""

    version: int
    revision: int


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """A row of `link_windows`."""

    id: str
    link_id: str
    begin_us: int
    end_us: int
    bps: int
    kind: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """A link as planners see it, with the fields that the API and the desk need in addition."""

    link: Link
    host: str | None
    version: int
    revision: int
    windows: tuple[WindowRecord, ...]


class LinkExists(Exception):
    """A link with this id already exists."""

    def __init__(self, link_id: str) -> None:
        self.link_id = link_id
        super().__init__(f"there is a link {link_id!r} already")


class Locked(NamedTuple):
    """The result of `lock`: heads of the existing links, and the version of the topology."""

    topology_version: int
    heads: dict[str, Head]


_LOCK = """
    SELECT id, version, revision, (SELECT version FROM topology)
    FROM links WHERE id = ANY(%(ids)s) AND deleted_us IS NULL ORDER BY id FOR UPDATE"""


async def lock(connection: AsyncConnection, ids: Iterable[str]) -> Locked:
    """Lock the rows of `ids` in id order until the transaction ends, so that two desks cannot deadlock."""
    rows = await bulk.execute(connection, _LOCK, {"ids": sorted(ids)})
    version = rows[0][3] if rows else await topology_version(connection)
    return Locked(version, {row[0]: Head(row[1], row[2]) for row in rows})


async def topology_version(connection: AsyncConnection) -> int:
    """The version of the topology, which increases with every change of links, capacities and hosts."""
    return int((await connection.execute(select(topology.c.version))).scalar_one())


async def lock_topology(connection: AsyncConnection) -> None:
    """Allow one change of the network at a time: data read after this stays valid until the transaction ends."""
    await connection.execute(select(topology.c.version).with_for_update())


async def bump_topology(connection: AsyncConnection) -> int:
    """Increase the version of the topology and return it."""
    return int(
        (
            await connection.execute(update(topology).values(version=topology.c.version + 1).returning(topology.c.version))
        ).scalar_one()
    )


async def load_links(connection: AsyncConnection, ids: Sequence[str] | None = None) -> dict[str, LinkRecord]:
    """Live links (all, or the given ones) with their steps and windows."""
    query = select(links).where(links.c.deleted_us.is_(None)).order_by(links.c.id)
    if ids is not None:
        query = query.where(links.c.id == func.any(list(ids)))
    steps: dict[str, list[Step]] = {}
    for row in await connection.execute(select(link_steps).order_by(link_steps.c.link_id, link_steps.c.begin_us)):
        steps.setdefault(row.link_id, []).append((row.begin_us, row.bps))
    windows: dict[str, list[WindowRecord]] = {}
    for row in await connection.execute(select(link_windows).order_by(link_windows.c.begin_us, link_windows.c.id)):
        windows.setdefault(row.link_id, []).append(WindowRecord(*row))
    return {row.id: _record(row, steps.get(row.id, []), windows.get(row.id, [])) for row in await connection.execute(query)}


def _record(row: Any, steps: list[Step], windows: list[WindowRecord]) -> LinkRecord:
    link = Link(
        id=row.id,
        source=row.source,
        target=row.target,
        capacity_bps=row.capacity_bps,
        mtu_bytes=row.mtu_bytes,
        channel_bps=row.channel_bps,
        slot_us=row.slot_us,
        metric=row.metric,
        available=tuple(steps),
        windows=tuple(Window(window.begin_us, window.end_us, window.bps) for window in windows),
    )
    return LinkRecord(link, row.host, row.version, row.revision, tuple(windows))


_LINK_COLUMNS = ("id", "source", "target", "capacity_bps", "mtu_bytes", "channel_bps", "slot_us", "metric")


async def insert_links(connection: AsyncConnection, new: Sequence[Link], now_us: int, host: str | None = None) -> None:
    """Insert links; a link that was deleted before continues its old ledger version.

    Raises LinkExists for an id that is in use, even if another caller took it since the caller checked.
    """
    rows = [[*(getattr(link, name) for name in _LINK_COLUMNS), host, now_us, now_us] for link in new]
    columns = (*_LINK_COLUMNS, "host", "created_us", "changed_us")
    kept = ", ".join(f"{name} = excluded.{name}" for name in columns[1:])
    again = f"{kept}, deleted_us = NULL, revision = links.revision + 1"
    suffix = f"ON CONFLICT (id) DO UPDATE SET {again} WHERE links.deleted_us IS NOT NULL RETURNING id"
    created = {row[0] for row in await bulk.insert(connection, links, columns, rows, suffix)}
    for link in new:
        if link.id not in created:
            raise LinkExists(link.id)
    await _write_steps(connection, new)
    await bump_topology(connection)


async def update_links(connection: AsyncConnection, changed: Sequence[Link], now_us: int) -> None:
    """Update existing links to the given state. Their windows stay."""
    if not changed:
        return
    columns = (*_LINK_COLUMNS, "changed_us")
    rows = [[*(getattr(link, name) for name in _LINK_COLUMNS), now_us] for link in changed]
    await bulk.update(connection, links, "id", columns, rows)
    ids = [link.id for link in changed]
    await connection.execute(update(links).where(links.c.id == func.any(ids)).values(revision=links.c.revision + 1))
    await connection.execute(delete(link_steps).where(link_steps.c.link_id == func.any(ids)))
    await _write_steps(connection, changed)
    await bump_topology(connection)


async def _write_steps(connection: AsyncConnection, given: Iterable[Link]) -> None:
    rows = [(link.id, begin, bps) for link in given for begin, bps in link.available]
    await bulk.append(connection, link_steps, ("link_id", "begin_us", "bps"), rows)


async def delete_links(connection: AsyncConnection, ids: Sequence[str], now_us: int) -> None:
    """Mark links as deleted; their rows stay, their steps and windows are removed."""
    if not ids:
        return
    for table in (link_steps, link_windows):
        await connection.execute(delete(table).where(table.c.link_id == func.any(list(ids))))
    gone = update(links).where(links.c.id == func.any(list(ids)))
    await connection.execute(gone.values(deleted_us=now_us, revision=links.c.revision + 1))
    await bump_topology(connection)


async def insert_window(connection: AsyncConnection, window: WindowRecord, now_us: int) -> None:
    """Add a window of reduced capacity to a link."""
    await connection.execute(
        insert(link_windows).values(
            id=window.id, link_id=window.link_id, begin_us=window.begin_us, end_us=window.end_us,
            bps=window.bps, kind=window.kind, reason=window.reason,
        )
    )  # fmt: skip
    await _touch(connection, window.link_id, now_us)


async def delete_window(connection: AsyncConnection, link_id: str, window_id: str, now_us: int) -> None:
    """Remove a window of a link."""
    await connection.execute(delete(link_windows).where(link_windows.c.id == window_id, link_windows.c.link_id == link_id))
    await _touch(connection, link_id, now_us)


async def _touch(connection: AsyncConnection, link_id: str, now_us: int) -> None:
    await connection.execute(update(links).where(links.c.id == link_id).values(changed_us=now_us, revision=links.c.revision + 1))
    await bump_topology(connection)


MOVE_HEADS = """
    UPDATE links SET version = new.version
    FROM unnest(%(ids)s::text[], %(versions)s::bigint[]) AS new(id, version) WHERE links.id = new.id"""


class Bookings(NamedTuple):
    """Ledger rows of one link as arrays."""

    begins: Int64Array
    ends: Int64Array
    deltas: Int64Array


_SINCE = """
    SELECT have.position, begin_us, end_us, delta_bps
    FROM unnest(%(ids)s::text[], %(versions)s::bigint[], %(heads)s::bigint[]) WITH ORDINALITY AS have(link_id, version, head, position)
    JOIN ledger ON ledger.link_id = have.link_id AND ledger.version > have.version AND ledger.version <= have.head
    WHERE end_us > %(from_us)s"""


async def read_since(connection: AsyncConnection, spans: Mapping[str, tuple[int, int]], from_us: int) -> dict[str, Bookings]:
    """The ledger rows of each link after the first version and up to the second that end after `from_us`.

    The upper bound matters to callers without locks: rows appended while they read must not be counted both now and later.
    """
    ids = list(spans)
    versions, heads = zip(*spans.values(), strict=True)
    values = {"ids": ids, "versions": list(versions), "heads": list(heads), "from_us": from_us}
    rows = await bulk.integers(connection, _SINCE, values, columns=4)
    rows = rows[:, np.argsort(rows[0], kind="stable")]
    positions, firsts = np.unique(rows[0], return_index=True)
    parts = np.split(rows[1:], firsts[1:], axis=1)
    return {ids[position - 1]: Bookings(*part) for position, part in zip(positions, parts, strict=False)}


_HOLDERS = text("""
    SELECT transfer_id, max(end_us) AS until FROM ledger
    WHERE link_id = :link AND end_us > :begin AND begin_us < :end
    GROUP BY transfer_id HAVING sum(delta_bps * ((LEAST(end_us, :end) - GREATEST(begin_us, :begin)) / 1000000.0)) > 0
    ORDER BY until DESC LIMIT :limit""")


async def find_holders(connection: AsyncConnection, link_id: str, begin_us: int, end_us: int, limit: int = 20) -> list[str]:
    """Transfers that have something booked on the link in the interval."""
    rows = await connection.execute(_HOLDERS, {"link": link_id, "begin": begin_us, "end": end_us, "limit": limit})
    return [row.transfer_id for row in rows]


async def read_booked(connection: AsyncConnection, link_id: str, begin_us: int, end_us: int) -> Bookings:
    """Ledger rows of a link that touch [begin, end), past ones included: for the calendar shown to people."""
    result = await connection.execute(
        select(ledger.c.begin_us, ledger.c.end_us, ledger.c.delta_bps).where(
            ledger.c.link_id == link_id, ledger.c.end_us > begin_us, ledger.c.begin_us < end_us
        )
    )
    rows = result.all()
    return Bookings(*(np.array([row[index] for row in rows], np.int64) for index in range(3)))


# Released bookings are in the ledger, too: their rows sum to zero as rate times time. (Bits may exceed 64 bits.)
_ON = text("""
    SELECT DISTINCT transfer_id FROM (
        SELECT transfer_id FROM ledger WHERE link_id = ANY(:links) AND end_us > :from_us
        GROUP BY transfer_id, link_id HAVING sum(delta_bps::numeric * (end_us - GREATEST(begin_us, :from_us))) <> 0
    ) AS holding""")


async def find_transfers(connection: AsyncConnection, link_ids: Iterable[str], from_us: int) -> list[str]:
    """Transfers with anything booked on any of the links after `from_us`."""
    return list((await connection.execute(_ON, {"links": list(link_ids), "from_us": from_us})).scalars())


async def read_heads(connection: AsyncConnection) -> dict[str, int]:
    """The ledger version of every live link."""
    rows = await connection.execute(select(links.c.id, links.c.version).where(links.c.deleted_us.is_(None)))
    return {row.id: row.version for row in rows}
