# SPDX-License-Identifier: Apache-2.0
"""Transfers: one record class, and the queries that read and write it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Row, and_, func, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.allowance import NOTHING, Use, booked_ahead
from broker.core.reason import Reason
from broker.core.request import NO_OPTIONS, Options
from broker.core.segments import Segment, total_rates
from broker.core.transfer import LIVE, Mode, State
from broker.core.transfer_spec import Payload, StartSignal, TransferSpec
from broker.core.units import MICROBITS_PER_BYTE, US_PER_S
from broker.store import bulk
from broker.store.tables import transfers

Json = dict[str, Any]


@dataclass(slots=True)
class Transfer:
    """A row of `transfers`: the request (`spec`) and its outcome. The other fields, and those of the spec, are named like the columns.

    Mutable: the desk changes it and writes it back.
    """

    id: str
    spec: TransferSpec
    state: State
    mode: Mode
    booked_bytes: int
    released_us: int | None
    segments: tuple[Segment, ...]
    start_us: int | None
    finish_us: int | None
    promised_us: int | None
    plan_revision: int
    plan_from_us: int
    carried_bytes: int
    hold_until_us: int | None
    paused: bool
    bytes_done: int
    measured_bps: int | None
    actual_start_us: int | None
    actual_finish_us: int | None
    checksum: str | None
    reason: Reason | None
    owner: str
    revision: int
    created_us: int
    updated_us: int
    source_told: bool = False  # its agent got the transfer, and may act on it even if it is no longer heard
    destination_told: bool = False
    unheard_us: int | None = None  # since when expected reports of its agents are missing; the booking is kept
    assumed: bool = False  # the end was assumed: a late report corrects it

    @property
    def live(self) -> bool:
        """True if the transfer holds capacity."""
        return self.state in LIVE

    @property
    def use(self) -> Use:
        """The amounts that the transfer counts for the token that booked it."""
        if not self.live:
            return NOTHING
        return Use(1, 0 if self.paused else booked_ahead(self.booked_bytes, self.created_us, self.finish_us))

    def carried_by(self, instant_us: int) -> int:
        """Bytes of `booked_bytes` that the plan has carried by `instant_us`."""
        if instant_us < self.plan_from_us:
            # A change counted the volume up to its cut, which is still ahead: subtract the volume from `instant_us` to the cut.
            between = (
                segment.rate_bps * (min(segment.end_us, self.plan_from_us) - max(segment.begin_us, instant_us))
                for segment in self.segments
                if segment.begin_us < self.plan_from_us and segment.end_us > instant_us
            )
            return max(self.carried_bytes - -(-sum(between) // MICROBITS_PER_BYTE), 0)
        clipped = (
            segment.rate_bps * (min(segment.end_us, instant_us) - segment.begin_us)
            for segment in self.segments
            if self.plan_from_us <= segment.begin_us < instant_us
        )
        return min(self.carried_bytes + sum(clipped) // MICROBITS_PER_BYTE, self.booked_bytes)

    def cut_to(self, kept: tuple[Segment, ...], cut_us: int) -> None:
        """Drop all segments but `kept`, which end by the cut, and count the volume that they carry up to it."""
        if cut_us >= self.plan_from_us:  # otherwise an earlier change has already counted this volume: see carried_by
            self.segments = kept
        self.carried_bytes = self.carried_by(cut_us)
        self.segments, self.plan_from_us = kept, cut_us

    def held_by(self, instant_us: int) -> int:
        """Microseconds of `duration_us` (class 2) during which capacity was held by `instant_us`."""
        return sum(min(end, instant_us) - begin for begin, end, _ in total_rates(self.segments) if begin < instant_us)

    def complete_by(self, instant_us: int) -> bool:
        """True if the whole volume is carried, or the whole duration held, by `instant_us`."""
        if self.spec.duration_us is not None:
            return self.held_by(instant_us) >= self.spec.duration_us
        return self.carried_by(instant_us) >= self.booked_bytes

    def links(self) -> set[str]:
        """Ids of all links that the plan uses."""
        return {link_id for segment in self.segments for link_id in segment.path}

    def become(self, other: "Transfer") -> None:
        """Copy all fields of `other`, for callers that hold this record."""
        for field in fields(Transfer):
            setattr(self, field.name, getattr(other, field.name))


_RECORD = tuple(field.name for field in fields(Transfer) if field.name != "spec")
_SPEC = tuple(field.name for field in fields(TransferSpec))
COLUMNS = (*_RECORD, *_SPEC)
SELECT = select(*(transfers.c[name] for name in COLUMNS))
_values_of_record, _values_of_spec = attrgetter(*_RECORD), attrgetter(*_SPEC)
_OPTION_NAMES = tuple(field.name for field in fields(Options))


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _rows(segments: tuple[Segment, ...]) -> str:
    return _json([tuple(segment) for segment in segments])


def _special(options: Options) -> str | None:
    """The options that differ from the defaults, by name, as JSON; None if all are defaults."""
    if options is NO_OPTIONS:
        return None
    special = {name: value for name in _OPTION_NAMES if (value := getattr(options, name)) != getattr(NO_OPTIONS, name)}
    return _json(special) if special else None


def _options(kept: Json) -> Options:
    path = kept.get("path")
    return Options(**{**kept, "path": None if path is None else tuple(path)})


# Columns that differ from the field's value: (how to write it, how to read it). None stays None.
_FORMS: dict[str, tuple[Callable[[Any], str | None], Callable[[Any], object]]] = {
    "state": (str, State),
    "mode": (str, Mode),
    "segments": (_rows, lambda rows: tuple([Segment(begin, end, rate, tuple(path)) for begin, end, rate, path in rows])),
    "reason": (_json, Reason.parse),
    "payload": (_json, Payload.parse),
    "signal": (lambda signal: _json(signal.document()), StartSignal.parse),
    "metadata": (_json, dict),
    "options": (_special, _options),
}
_WRITTEN = tuple((COLUMNS.index(name), write) for name, (write, _) in _FORMS.items())
_READ = tuple((COLUMNS.index(name), read) for name, (_, read) in _FORMS.items())
_OPTIONS = COLUMNS.index("options")


def to_row(transfer: Transfer) -> list[Any]:
    """The values in the order of `COLUMNS`, JSON as text."""
    row = [*_values_of_record(transfer), *_values_of_spec(transfer.spec)]
    for index, write in _WRITTEN:
        if row[index] is not None:
            row[index] = write(row[index])
    return row


def from_row(row: Row[Any] | tuple[Any, ...]) -> Transfer:
    """The record of a row of `SELECT`."""
    values = list(row)
    for index, read in _READ:
        if values[index] is not None:
            values[index] = read(values[index])
    if values[_OPTIONS] is None:
        values[_OPTIONS] = NO_OPTIONS
    spec = TransferSpec(*values[len(_RECORD) :])
    return Transfer(values[0], spec, *values[1 : len(_RECORD)])


def prepare_added(new: Sequence[Transfer]) -> bulk.Added:
    """New rows for `transfers`."""
    return bulk.Added(transfers, COLUMNS, [to_row(transfer) for transfer in new])


async def update(connection: AsyncConnection, changed: Sequence[Transfer]) -> None:
    """Write changed records back, as whole rows."""
    await bulk.update(connection, transfers, "id", COLUMNS, [to_row(transfer) for transfer in changed])


async def get(connection: AsyncConnection, transfer_id: str) -> Transfer | None:
    """The transfer, or None."""
    row = (await connection.execute(SELECT.where(transfers.c.id == transfer_id))).one_or_none()
    return None if row is None else from_row(row)


async def get_many(connection: AsyncConnection, ids: Iterable[str], *, lock: bool = False) -> dict[str, Transfer]:
    """Transfers by id; with `lock`, their rows are locked in id order until the transaction ends."""
    query = SELECT.where(transfers.c.id == func.any(sorted(ids))).order_by(transfers.c.id)
    if lock:
        query = query.with_for_update()
    return {row.id: from_row(row) for row in await connection.execute(query)}


# Live successors of the named transfers, at any distance; and the predecessors of all these, up to the first that is no longer
# live.
_CHAINED = text("""
    WITH RECURSIVE behind(id) AS (
        SELECT unnest(CAST(:ids AS text[]))
        UNION
        SELECT t.id FROM transfers t JOIN behind b ON t.after = b.id
        WHERE t.state IN ('HELD', 'RESERVED', 'ACTIVE') AND t.after IS NOT NULL AND t.released_us IS NULL
    ), ahead(id) AS (
        SELECT id FROM behind
        UNION
        SELECT t.after FROM transfers t JOIN ahead a ON t.id = a.id
        WHERE t.state IN ('HELD', 'RESERVED', 'ACTIVE') AND t.after IS NOT NULL AND t.released_us IS NULL
    )
    SELECT id, true AS behind FROM behind UNION ALL SELECT id, false FROM ahead WHERE id NOT IN (SELECT id FROM behind)""")


class Chained(NamedTuple):
    """`behind`: the named transfers and their successors, at any distance; `ahead`: the predecessors of these."""

    behind: frozenset[str]
    ahead: frozenset[str]


async def find_chained(connection: AsyncConnection, ids: Iterable[str]) -> Chained:
    """All transfers that a change of the named ones can move, and all that those depend on."""
    rows = (await connection.execute(_CHAINED, {"ids": sorted(ids)})).all()
    return Chained(frozenset(row.id for row in rows if row.behind), frozenset(row.id for row in rows if not row.behind))


async def find_successors(connection: AsyncConnection, ids: Iterable[str]) -> list[Transfer]:
    """Live transfers that wait for one of these, in id order."""
    query = SELECT.where(
        transfers.c.after == func.any(sorted(ids)),
        transfers.c.state.in_([State.HELD, State.RESERVED, State.ACTIVE]),
        transfers.c.after.is_not(None),
        transfers.c.released_us.is_(None),
    ).order_by(transfers.c.id)
    return [from_row(row) for row in await connection.execute(query)]


async def find_unfinished(connection: AsyncConnection) -> list[Transfer]:
    """All live transfers."""
    query = SELECT.where(transfers.c.state.in_(sorted(LIVE))).order_by(transfers.c.id)
    return [from_row(row) for row in await connection.execute(query)]


async def find_assigned(connection: AsyncConnection, host: str) -> list[Transfer]:
    """Transfers of the agent on `host`: live ones, and those whose end is only assumed, which it may still carry out."""
    query = SELECT.where(
        or_(transfers.c.state.in_([State.RESERVED, State.ACTIVE]), transfers.c.assumed),
        transfers.c.mode != "reserve",
        # If the agents do not move the data themselves, the receiving agent has no part.
        or_(transfers.c.source == host, and_(transfers.c.destination == host, transfers.c.mode == "managed")),
    ).order_by(transfers.c.id)
    return [from_row(row) for row in await connection.execute(query)]


_TELL = text("""
    UPDATE transfers SET source_told = source_told OR source = :host, destination_told = destination_told OR destination = :host
    WHERE id IN (SELECT id FROM transfers WHERE id = ANY(:ids) AND (state IN ('RESERVED', 'ACTIVE') OR assumed) ORDER BY id FOR UPDATE)
    RETURNING id""")


async def mark_told(connection: AsyncConnection, host: str, ids: Iterable[str]) -> set[str]:
    """Mark transfers as handed to the agent on `host`, before this happens; returns those that may still be handed out.

    A withdrawal of transfers that were never handed out takes the same row locks, so one of the two comes first.
    """
    return set((await connection.execute(_TELL, {"host": host, "ids": sorted(ids)})).scalars())


class Due(StrEnum):
    """A time-driven action on a transfer."""

    RUN_OUT = "run_out"  # a hold that was not committed
    START = "start"  # a booking without an agent
    FINISH = "finish"
    WITHDRAW = "withdraw"  # a required agent never fetched it
    UNUSED = "unused"  # the command that it was booked for was not run, or its packets were not sent
    UNHEARD = "unheard"  # it was handed out, but expected reports are missing
    HEARD = "heard"
    LOST = "lost"  # unheard until its booking and the time of the fallback were over
    GIVE_BACK = "give_back"  # cancelled while unheard: its sender knows by now, or its booking is over


# `silent` refers to the sender's agent, which alone reports the begin of a transfer and the plan in use. For a transfer that should
# have begun, or whose booking is long over, a sign of life of the agent is not enough: it counts as heard only after a report on
# it.
_DUE = text("""
    SELECT id, what FROM (
        SELECT id, CASE
            WHEN state = 'HELD' AND hold_until_us <= :now THEN 'run_out'
            WHEN state = 'HELD' OR paused THEN NULL
            WHEN mode = 'reserve' AND finish_us <= :now THEN 'finish'
            WHEN mode = 'reserve' AND state = 'RESERVED' AND start_us <= :now THEN 'start'
            WHEN mode = 'reserve' THEN NULL
            WHEN state = 'RESERVED' AND start_us + :grace <= :now
                AND NOT (source_told AND (destination_told OR mode <> 'managed')) THEN 'withdraw'
            WHEN state = 'RESERVED' AND mode <> 'managed' AND start_us + :grace <= said_all_us THEN 'unused'
            WHEN unheard_us IS NOT NULL AND GREATEST(finish_us, unheard_us) + :lost <= :now THEN 'lost'
            WHEN state = 'RESERVED' AND start_us + :grace <= :now AND unheard_us IS NULL THEN 'unheard'
            WHEN unheard_us IS NULL AND (silent OR state = 'ACTIVE' AND GREATEST(finish_us, updated_us) + :silence <= :now) THEN 'unheard'
            WHEN unheard_us IS NOT NULL AND NOT silent
                AND CASE state WHEN 'ACTIVE' THEN finish_us + :silence > :now ELSE start_us + :grace > :now END
                THEN 'heard'
        END AS what
        FROM (
            SELECT t.*, h.said_all_us, t.source_told AND (h.last_seen_us IS NULL OR h.last_seen_us + :silence <= :now) AS silent
            FROM transfers t LEFT JOIN hosts h ON t.mode <> 'reserve' AND h.name = t.source
            WHERE t.state IN ('HELD', 'RESERVED', 'ACTIVE')) AS live
        UNION ALL
        SELECT t.id, 'give_back' FROM transfers t LEFT JOIN hosts h ON h.name = t.source
        WHERE t.state NOT IN ('HELD', 'RESERVED', 'ACTIVE') AND t.unheard_us IS NOT NULL AND NOT t.assumed
            AND (t.finish_us <= :now OR h.name IS NULL OR h.last_seen_us > t.updated_us AND h.applied_revision >= h.revision)
    ) AS found
    WHERE what IS NOT NULL ORDER BY id LIMIT :limit""")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the clock waits, in microseconds.

    `grace_us`: after the booked start, for a transfer that an agent has not fetched or not begun; `silence_us`: for an agent, until
    it counts as down; `lost_us`: after the end of the booking, for an unheard transfer: its agents may continue at the fallback
    rate that long.
    """

    grace_us: int = 60 * US_PER_S
    silence_us: int = 90 * US_PER_S
    lost_us: int = 3600 * US_PER_S


async def find_due(connection: AsyncConnection, now_us: int, patience: Patience, limit: int = 1000) -> list[tuple[str, Due]]:
    """(id, action) of transfers whose time has come."""
    values = {"grace": patience.grace_us, "silence": patience.silence_us, "lost": patience.lost_us}
    rows = await connection.execute(_DUE, {"now": now_us, "limit": limit, **values})
    return [(row.id, Due(row.what)) for row in rows]


_DISPLACEABLE = text("""
    SELECT id FROM transfers AS t
    WHERE state IN ('HELD', 'RESERVED', 'ACTIVE') AND best_effort AND NOT paused AND unheard_us IS NULL
        AND priority < :priority AND finish_us > :from_us
        AND EXISTS (SELECT 1 FROM ledger WHERE transfer_id = t.id AND link_id = ANY(:links) AND end_us > :from_us)
    ORDER BY priority, created_us DESC, id DESC LIMIT :limit""")


async def find_displaceable(
    connection: AsyncConnection, links: Iterable[str], priority: int, from_us: int, limit: int = 1000
) -> list[str]:
    """Live best-effort transfers below `priority` with ledger rows on any of the links after `from_us`: the least important first."""
    values = {"links": sorted(links), "priority": priority, "from_us": from_us, "limit": limit}
    return list((await connection.execute(_DISPLACEABLE, values)).scalars())


async def count_by_state(connection: AsyncConnection) -> dict[str, int]:
    """The number of transfers in each state."""
    rows = await connection.execute(select(transfers.c.state, func.count().label("number")).group_by(transfers.c.state))
    return {row.state: row.number for row in rows}


async def count_unheard(connection: AsyncConnection) -> int:
    """The number of live transfers that are unheard."""
    query = select(func.count()).where(transfers.c.unheard_us.is_not(None), transfers.c.state.in_(LIVE))
    return int((await connection.execute(query)).scalar_one())
