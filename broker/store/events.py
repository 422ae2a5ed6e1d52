# SPDX-License-Identifier: Apache-2.0
"""Events: action, subject and actor, with the state before and after. Written in the transaction of the action itself."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
from sqlalchemy import ColumnElement, Row, Text, cast, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.store import bulk
from broker.store.tables import events, tokens, transfers


class Event(NamedTuple):
    """An event as it is written."""

    at_us: int
    actor: str
    action: str
    subject_kind: str  # transfer | link | window | host | token | enrolment_token | session | job
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Position(NamedTuple):
    """A position in the stream of events: they are read in this order, and no event commits behind a position that was already read.

    Transactions are numbered by the PostgreSQL cluster. Another cluster (or a copy, or one restored to an earlier time) starts with
    other numbers, so its events belong to the next epoch.
    """

    epoch: int
    txid: int
    seq: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.txid}-{self.seq}"

    @classmethod
    def parse(cls, given: str) -> "Position":
        """Parse the result of `str`, or one without the epoch, which means the first. Raises ValueError for anything else."""
        parts = given.split("-")
        if len(parts) not in (2, 3) or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
            raise ValueError("an event id looks like 1-1234-56")
        epoch, txid, seq = map(int, parts if len(parts) == 3 else ["1", *parts])
        if epoch >= 2**31 or max(txid, seq) >= 2**63:
            raise ValueError("an event id looks like 1-1234-56")
        return cls(epoch, txid, seq)


BEGINNING = Position(1, 0, 0)


class StoredEvent(NamedTuple):
    """An event with its position in the stream."""

    position: Position
    event: Event


async def append(connection: AsyncConnection, new: Sequence[Event]) -> None:
    """Write events in the current transaction."""
    await bulk.append(connection, *prepare_added(new))


def prepare_added(new: Sequence[Event]) -> bulk.Added:
    """New rows for `events`."""
    return bulk.Added(events, Event._fields, [(*event[:5], _json(event.before), _json(event.after)) for event in new])


def _json(value: dict[str, Any] | None) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


_POSITION = "epoch, CAST(CAST(txid AS text) AS bigint) AS txid, seq"
_COLUMNS = f"{_POSITION}, at_us, actor, action, subject_kind, subject, before, after"
# Transactions of an earlier epoch have ended; in this epoch, transactions older than the oldest open one have.
_SETTLED = """(epoch < (SELECT max(number) FROM event_epochs) OR txid < pg_snapshot_xmin(pg_current_snapshot()))"""
_GIVEN_TXID = "CAST(CAST(:txid AS text) AS xid8)"
_AFTER = f"""
    SELECT {_COLUMNS} FROM events
    WHERE (epoch, txid, seq) > (:epoch, {_GIVEN_TXID}, :seq) AND {_SETTLED} {{also}}
    ORDER BY epoch, txid, seq LIMIT :limit"""
_AFTER_ALL = text(_AFTER.format(also=""))
_AFTER_OF_SUBJECT = text(_AFTER.format(also="AND subject = :subject"))
_NEWEST = text(f"SELECT {_POSITION} FROM events WHERE {_SETTLED} ORDER BY epoch DESC, events.txid DESC, seq DESC LIMIT 1")
_KNOWN = text(f"SELECT EXISTS (SELECT FROM events WHERE epoch = :epoch AND (txid, seq) >= ({_GIVEN_TXID}, :seq))")


def _values(position: Position) -> dict[str, Any]:
    return position._asdict() | {"txid": str(position.txid)}


async def after(connection: AsyncConnection, position: Position, limit: int = 500, subject: str | None = None) -> list[StoredEvent]:
    """The next events behind `position`. Rows of transactions younger than the oldest open one are left for the next call."""
    values = _values(position) | {"limit": limit}
    if subject is None:
        return [_stored(row) for row in await connection.execute(_AFTER_ALL, values)]
    return [_stored(row) for row in await connection.execute(_AFTER_OF_SUBJECT, values | {"subject": subject})]


async def newest(connection: AsyncConnection) -> Position:
    """The position of the last event that is committed and in order."""
    row = (await connection.execute(_NEWEST)).one_or_none()
    return BEGINNING if row is None else Position(*row)


async def is_known(connection: AsyncConnection, position: Position) -> bool:
    """True if this database can continue behind `position`; False if it comes from a later state or from another database."""
    return position <= BEGINNING or bool((await connection.execute(_KNOWN, _values(position))).scalar_one())


_CLUSTER = text("""
    SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()), (SELECT timeline_id FROM pg_control_checkpoint()),
                     (SELECT oid FROM pg_database WHERE datname = current_database()))""")
_EPOCH = text("SELECT number, cluster FROM event_epochs ORDER BY number DESC LIMIT 1")
_NEW_EPOCH = text("INSERT INTO event_epochs (number, cluster) VALUES (:number, :cluster)")


async def begin_epoch(connection: AsyncConnection) -> None:
    """Number the events of this cluster after those from another cluster. Must be called on start, before anything is written."""
    cluster = (await connection.execute(_CLUSTER)).scalar_one()
    last = (await connection.execute(_EPOCH)).one_or_none()
    if last is not None and last.cluster == cluster:
        return
    await connection.execute(text("LOCK TABLE events IN ACCESS EXCLUSIVE MODE"))  # waits for all writers of the last epoch
    last = (await connection.execute(_EPOCH)).one_or_none()
    if last is not None and last.cluster == cluster:
        return  # another process was faster
    number = 2 if last is None else last.number + 1  # the first epoch holds the events from before there were epochs
    await connection.execute(_NEW_EPOCH, {"number": number, "cluster": cluster})
    await connection.execute(text(f"ALTER TABLE events ALTER COLUMN epoch SET DEFAULT {number:d}"))


async def of_subject(connection: AsyncConnection, subject: str, limit: int, after_seq: int = 0) -> list[StoredEvent]:
    """The history of one subject, oldest first."""
    return [
        _stored(row)
        for row in await connection.execute(
            text(f"SELECT {_COLUMNS} FROM events WHERE subject = :subject AND seq > :seq ORDER BY seq LIMIT :limit"),
            {"subject": subject, "seq": after_seq, "limit": limit},
        )
    ]


class Sought(NamedTuple):
    """The filter for events; None: no condition. [since, until) in microseconds."""

    exactly: str | None = None  # the subject, the actor or the action
    actor: str | None = None
    action: str | None = None
    subject_kind: str | None = None
    subject: str | None = None
    words: str | None = None  # part of any of these, of a name, or of the state before or after
    since_us: int | None = None
    until_us: int | None = None


async def newest_first(connection: AsyncConnection, limit: int, before_seq: int | None, sought: Sought) -> list[StoredEvent]:
    """The audit log, newest first."""
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
    values = tuple(row)
    return StoredEvent(Position(*values[:3]), Event(*values[3:]))
