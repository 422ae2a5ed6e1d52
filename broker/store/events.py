# SPDX-License-Identifier: Apache-2.0
"""Events: what happened, to what, by whom, with the state before and after. Written in the transaction that does it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
from sqlalchemy import ColumnElement, Row, Text, cast, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.store import bulk
from broker.store.tables import events, tokens, transfers


class Event(NamedTuple):
    at_us: int
    actor: str
    action: str
    subject_kind: str  # transfer | link | window | host | token | enrolment_token | session | job
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Position(NamedTuple):
    """A place in the stream of events: they are read in this order, and none commits behind a position that was read."""

    txid: int
    seq: int

    def __str__(self) -> str:
        return f"{self.txid}-{self.seq}"

    @classmethod
    def parse(cls, given: str) -> "Position":
        """ValueError for anything but what `str` gives."""
        txid, _, seq = given.partition("-")
        if not (txid.isascii() and txid.isdigit() and seq.isascii() and seq.isdigit() and len(txid) < 20 and len(seq) < 20):
            raise ValueError("an event id looks like 1234-56")
        position = cls(int(txid), int(seq))
        if max(position) >= 2**63:
            raise ValueError("an event id looks like 1234-56")
        return position


class StoredEvent(NamedTuple):
    position: Position
    event: Event


async def append(connection: AsyncConnection, new: Sequence[Event]) -> None:
    rows = [(*event[:5], _json(event.before), _json(event.after)) for event in new]
    await bulk.append(connection, events, Event._fields, rows)


def _json(value: dict[str, Any] | None) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


_COLUMNS = "CAST(CAST(txid AS text) AS bigint) AS txid, seq, at_us, actor, action, subject_kind, subject, before, after"
_AFTER = text(f"""
    SELECT {_COLUMNS} FROM events
    WHERE (txid, seq) > (CAST(CAST(:txid AS text) AS xid8), :seq) AND txid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY txid, seq LIMIT :limit""")
_NEWEST = text("SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)")


async def after(connection: AsyncConnection, position: Position, limit: int = 500) -> list[StoredEvent]:
    """The next events behind `position`. Rows of transactions younger than the oldest open one wait for the next call."""
    rows = await connection.execute(_AFTER, {"txid": str(position.txid), "seq": position.seq, "limit": limit})
    return [_stored(row) for row in rows]


async def now(connection: AsyncConnection) -> Position:
    """The position behind everything that is committed and visible in order."""
    return Position(int((await connection.execute(_NEWEST)).scalar_one()) - 1, 2**62)


async def of_subject(connection: AsyncConnection, subject: str, limit: int, after_seq: int = 0) -> list[StoredEvent]:
    """The history of one thing, oldest first."""
    return [
        _stored(row)
        for row in await connection.execute(
            text(f"SELECT {_COLUMNS} FROM events WHERE subject = :subject AND seq > :seq ORDER BY seq LIMIT :limit"),
            {"subject": subject, "seq": after_seq, "limit": limit},
        )
    ]


class Sought(NamedTuple):
    """What events must be to be found; None: anything. [since, until) in microseconds."""

    exactly: str | None = None  # the subject, the actor or the action
    actor: str | None = None
    action: str | None = None
    subject_kind: str | None = None
    subject: str | None = None
    words: str | None = None  # part of any of these, of a name, or of what was before or after
    since_us: int | None = None
    until_us: int | None = None


async def newest_first(connection: AsyncConnection, limit: int, before_seq: int | None, sought: Sought) -> list[StoredEvent]:
    """The audit log."""
    query = select(text(_COLUMNS)).select_from(events).order_by(events.c.seq.desc()).limit(limit)
    if before_seq is not None:
        query = query.where(events.c.seq < before_seq)
    for column in ("actor", "action", "subject_kind", "subject"):
        if (value := getattr(sought, column)) is not None:
            query = query.where(events.c[column] == value)
    if sought.exactly is not None:
        query = query.where(or_(*(column == sought.exactly for column in (events.c.subject, events.c.actor, events.c.action))))
    if sought.words is not None:
        query = query.where(_mentions(sought.words))
    if sought.since_us is not None:
        query = query.where(events.c.at_us >= sought.since_us)
    if sought.until_us is not None:
        query = query.where(events.c.at_us < sought.until_us)
    return [_stored(row) for row in await connection.execute(query)]


def _mentions(words: str) -> ColumnElement[bool]:
    written = (events.c.subject, events.c.actor, events.c.action, cast(events.c.before, Text), cast(events.c.after, Text))
    named = (
        events.c.subject.in_(select(transfers.c.id).where(transfers.c.label.icontains(words, autoescape=True))),
        events.c.actor.in_(select(tokens.c.id).where(tokens.c.name.icontains(words, autoescape=True))),
    )
    return or_(*(column.icontains(words, autoescape=True) for column in written), *named)


def _stored(row: Row[Any]) -> StoredEvent:
    return StoredEvent(Position(row.txid, row.seq), Event(*tuple(row)[2:]))
