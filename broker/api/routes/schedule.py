# SPDX-License-Identifier: Apache-2.0
"""/v1/schedule: all transfers over time; /v1/links/{link_id}/bookings: the bookings of a link, and the rates measured on it."""

from typing import Annotated

from fastapi import Query, Response

from broker.api import paging, render
from broker.api.context import BrokerDependency, Reader
from broker.api.fields import Text
from broker.api.render import time_or_none
from broker.api.routing import make_router
from broker.api.schedule_schemas import LinkBookingsOut, ScheduleOut
from broker.api.spans import From, To, span
from broker.core.units import format_time
from broker.desk.ground.problems import Problem
from broker.store import bookings, link_use, schedule
from broker.store.link_use import Named
from broker.store.schedule import Part
from broker.store.transfers import Transfer
from broker.views.link_use import Use, together, uses

router = make_router("schedule", "/v1")


@router.get("/schedule", operation_id="getSchedule", response_model=ScheduleOut)
async def show(
    broker: BrokerDependency,
    _: Reader,
    begin: From = None,
    end: To = None,
    link: Annotated[Text | None, Query(description="only what is booked on this link")] = None,
    host: Annotated[Text | None, Query(description="only from and to this host or node")] = None,
    project: Annotated[Text | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=10_000, description="items a page")] = 1000,
    cursor: paging.Cursor = None,
) -> Response:
    """TRC vectors: for each transfer, the whole segments that touch the range; for ended transfers, those that were carried."""
    begin_us, end_us = span(begin, end, broker.clock())
    part = Part(link, host, project)
    async with broker.database.transaction() as connection:
        found = await schedule.page(connection, begin_us, end_us, part, limit + 1, paging.decode(cursor, "schedule", int))
    following = paging.encode("schedule", found[limit - 1].start_us or 0, found[limit - 1].id) if len(found) > limit else None
    items = [_scheduled(item, begin_us, end_us, link) for item in found[:limit]]
    return render.answer({"begin": format_time(begin_us), "end": format_time(end_us), "items": items, "next": following})


def _scheduled(record: Transfer, begin_us: int, end_us: int, link: str | None) -> render.Json:
    paths: dict[tuple[str, ...], int] = {}
    segments = [
        [begin, end, rate, paths.setdefault(tuple(path), len(paths))]
        for begin, end, rate, path in record.segments
        if begin < end_us and end > begin_us and (link is None or link in path)
    ]
    return {
        "id": record.id,
        "label": record.spec.label,
        "project": record.spec.project,
        "source": record.spec.source,
        "destination": record.spec.destination,
        "state": record.state,
        "mode": record.mode,
        "paused": record.paused,
        "priority": record.spec.priority,
        "volume_bytes": record.spec.volume_bytes,
        "start": time_or_none(record.start_us),
        "finish": time_or_none(record.finish_us),
        "promised_finish": time_or_none(record.promised_us),
        "deadline": time_or_none(record.spec.deadline_us),
        "paths": list(paths),
        "segments": segments,
    }


@router.get("/links/{link_id}/bookings", operation_id="getLinkBookings", response_model=LinkBookingsOut)
async def link_bookings(
    link_id: str,
    broker: BrokerDependency,
    _: Reader,
    begin: From = None,
    end: To = None,
    top: Annotated[int, Query(ge=1, le=10_000, description="so many transfers for themselves, all others together")] = 50,
    points: Annotated[int, Query(ge=2, le=100_000, description="the others are thinned out to so many steps")] = 2000,
    spans: Annotated[int, Query(ge=1, le=5000, description="of time, in which measured rates are averaged")] = 500,
) -> Response:
    """The bookings of a link by transfer, without released capacity, and the rates that the senders measured. Includes ended transfers."""
    begin_us, end_us = span(begin, end, broker.clock())
    async with broker.database.transaction() as connection:
        if not link_id.isascii() or "\0" in link_id or link_id not in await bookings.read_heads(connection):
            raise Problem("not-found", f"there is no link {link_id[:128]!r}")
        found = await link_use.rows(connection, link_id, begin_us, end_us)
        parts = uses(found, begin_us, end_us)
        called = await link_use.read_names(connection, [found.ids[use.which] for use in parts[:top]])
        span_us = -(-(end_us - begin_us) // spans)
        measured = await link_use.read_measured(connection, found.ids, begin_us, span_us, spans)
    rest = together(parts[top:], begin_us, end_us, points)
    shown = {
        "link": link_id,
        "begin": format_time(begin_us),
        "end": format_time(end_us),
        "transfers": [_user(called[found.ids[use.which]], use) for use in parts[:top] if found.ids[use.which] in called],
        "rest": {"transfers": len(parts[top:]), "booked_bytes": rest.volume_bytes, "segments": rest.stretches},
        "measured": {"begin_us": begin_us, "span_us": span_us, "rates_bps": measured},
    }
    return render.answer(shown)


def _user(named: Named, use: Use) -> render.Json:
    return {**named._asdict(), "booked_bytes": use.volume_bytes, "segments": use.stretches}
