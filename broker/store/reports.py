# SPDX-License-Identifier: Apache-2.0
"""The reports of agents on transfers, stored once each, by (transfer, host, sequence)."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.report import ReportDetail, ReportKind
from broker.store import bulk
from broker.store.tables import reports


class Report(NamedTuple):
    """One report of an agent on one transfer."""

    transfer_id: str
    host: str
    sequence: int
    at_us: int
    received_us: int
    kind: ReportKind
    bytes: int | None
    rate_bps: int | None
    applied_rate_bps: int | None
    detail: ReportDetail


def _json(detail: ReportDetail) -> str | None:
    document = detail.document()
    return None if document is None else orjson.dumps(document).decode()


def _from_row(row: Row[Any]) -> Report:
    said: Report = Report._make(row)
    return said._replace(kind=ReportKind(row.kind), detail=ReportDetail.parse(row.detail))


async def insert(connection: AsyncConnection, new: Sequence[Report]) -> set[tuple[str, int]]:
    """Store reports; returns (transfer, sequence) of the new ones."""
    rows = [(*report[:-1], _json(report.detail)) for report in new]
    taken = await bulk.insert(connection, reports, Report._fields, rows, "ON CONFLICT DO NOTHING RETURNING transfer_id, sequence")
    return {(transfer_id, sequence) for transfer_id, sequence in taken}


_KNOWN = text("""
    SELECT r.transfer_id, r.sequence FROM reports r
    JOIN unnest(CAST(:ids AS text[]), CAST(:sequences AS bigint[])) AS asked(id, sequence)
      ON r.transfer_id = asked.id AND r.sequence = asked.sequence
    WHERE r.host = :host""")


async def find_known(connection: AsyncConnection, host: str, asked: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """Those of `asked` (transfer, sequence) that the host has reported before."""
    pairs = list(asked)
    values = {"ids": [transfer_id for transfer_id, _ in pairs], "sequences": [sequence for _, sequence in pairs], "host": host}
    return {(row.transfer_id, row.sequence) for row in await connection.execute(_KNOWN, values)}


_PROGRESS = text("""
    UPDATE transfers SET bytes_done = GREATEST(bytes_done,
            CASE WHEN mode = 'managed' THEN LEAST(:bytes, volume_bytes) ELSE :bytes END),
        measured_bps = CASE WHEN destination = :host OR mode <> 'managed' OR measured_bps IS NULL
            THEN :rate ELSE measured_bps END,
        updated_us = :now
    WHERE id = :id AND state IN ('RESERVED', 'ACTIVE')""")


async def note_progress(connection: AsyncConnection, given: Iterable[Report], now_us: int) -> None:
    """Write the progress of reports, at most one per transfer, to the transfers' rows.

    The receiver's count is the arrived volume; the sender's count is used while the receiver is silent. Progress never decreases.
    Only for a file is it certain that no more than its volume can arrive.
    """
    for report in sorted(given, key=lambda one: one.transfer_id):  # the order in which all transactions lock transfers
        values = {"bytes": report.bytes or 0, "rate": report.rate_bps, "host": report.host, "now": now_us, "id": report.transfer_id}
        await connection.execute(_PROGRESS, values)


async def read_measured(connection: AsyncConnection, transfer_id: str, limit: int = 5000) -> list[Report]:
    """The reports on one transfer, ordered by time."""
    query = select(reports).where(reports.c.transfer_id == transfer_id).order_by(reports.c.at_us, reports.c.sequence).limit(limit)
    return [_from_row(row) for row in await connection.execute(query)]


class Reached(NamedTuple):
    """From one report of a sender: the measured rate and the applied rate (never 0)."""

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


async def read_rates(connection: AsyncConnection, ids: Sequence[str], limit: int = 30) -> dict[str, list[Reached]]:
    """The last reports of each transfer's sender, the newest first."""
    found: dict[str, list[Reached]] = {}
    for row in await connection.execute(_REACHED, {"ids": list(ids), "limit": limit}):
        found.setdefault(row.id, []).append(Reached(*row[1:]))
    return found
