# SPDX-License-Identifier: Apache-2.0
"""/v1/events: what happens, live; /v1/audit-log: what happened; /v1/audit: do the invariants hold?"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Annotated

import orjson
from fastapi import APIRouter, Header, Query, Request, Response

from broker.api import paging, render, sse
from broker.api.callers import caller
from broker.api.context import Broker, BrokerDependency, Operator, Reader
from broker.api.fields import Text, Time
from broker.api.operator_schemas import AuditLogPage
from broker.api.routes.transfers import REFUSALS
from broker.api.wakeups import EVENTS
from broker.core.units import format_time
from broker.desk.problems import Problem
from broker.store import audit, events, names
from broker.store.events import Position, Sought
from broker.store.session import DatabaseAway

router = APIRouter(prefix="/v1", tags=["events"])


@router.get("/events", responses={**REFUSALS, 200: {"content": {"text/event-stream": {}}}}, response_class=Response)
async def stream(
    request: Request,
    broker: BrokerDependency,
    _: Reader,
    last_event_id: Annotated[
        str | None, Header(alias="Last-Event-ID", max_length=60, description="go on behind this event")
    ] = None,
    subject: Annotated[Text | None, Query(description="only events of this transfer, link, host or token")] = None,
) -> Response:
    """SSE of every change, in order and without gaps; a client that reconnects with Last-Event-ID misses nothing that is kept."""
    if last_event_id is not None:
        try:
            position = Position.parse(last_event_id)
        except ValueError as error:
            raise Problem.of_field("Last-Event-ID", str(error)) from None
    else:
        async with broker.database.transaction() as connection:
            position = await events.now(connection)
    return sse.stream(_events(broker, position, subject, partial(caller, request)))


async def _events(
    broker: Broker, position: Position, subject: str | None, who: Callable[[], Awaitable[object]] | None = None
) -> AsyncIterator[str]:
    """`who` raises Problem once the caller's token or session has ended; then so does the stream."""
    spoke = time.monotonic()
    # An id at once: whoever is cut off before the first event can go on from here all the same.
    yield f"id: {position}\n{sse.HEARTBEAT}"
    async for _ in broker.wakeups.on(EVENTS):
        while True:
            try:
                if who is not None:
                    await who()
                async with broker.database.transaction() as connection:
                    found = await events.after(connection, position)
            except DatabaseAway:
                break
            except Problem:
                return
            for stored in found:
                position = stored.position
                if subject is None or stored.event.subject == subject:
                    spoke = time.monotonic()
                    yield sse.message(orjson.dumps(render.event(stored)).decode(), stored.event.action, str(position))
            if not found:
                break
        if time.monotonic() - spoke >= sse.HEARTBEAT_S:
            spoke = time.monotonic()
            yield sse.HEARTBEAT


@router.get("/audit-log", response_model=AuditLogPage, responses=REFUSALS)
async def audit_log(
    broker: BrokerDependency,
    _: Operator,
    search: Annotated[Text | None, Query(description="exactly a subject, an actor or an action")] = None,
    text: Annotated[
        Text | None, Query(description="part of a subject, an actor, their names, an action, or of what changed")
    ] = None,
    actor: Annotated[Text | None, Query(description="id of a token, or whatever else acted")] = None,
    action: Annotated[Text | None, Query(description="as `transfer.admitted`")] = None,
    kind: Annotated[Text | None, Query(description="of subject: transfer, link, window, host, token, session, job")] = None,
    subject: Annotated[Text | None, Query(description="id of what it happened to")] = None,
    since: Annotated[Time | None, Query(alias="from")] = None,
    until: Annotated[Time | None, Query(alias="to")] = None,
    limit: paging.Limit = 100,
    cursor: paging.Cursor = None,
) -> Response:
    """Who did what, newest first, with the state before and after. What is sought must all hold."""
    before = paging.decode(cursor, "audit-log", int)
    sought = Sought(search, actor, action, kind, subject, text or None, since, until)
    async with broker.database.transaction() as connection:
        found = await events.newest_first(connection, limit + 1, before[0] if before else None, sought)
        called = await names.of(connection, render.named_in(found[:limit]))
    following = paging.encode("audit-log", found[limit - 1].position.seq, "") if len(found) > limit else None
    return render.answer({"items": [render.event(stored, called) for stored in found[:limit]], "next": following})


@router.get("/audit", responses=REFUSALS)
async def run_audit(broker: BrokerDependency, _: Operator) -> Response:
    """Prove the invariants now, from SQL alone."""
    begin = broker.clock()
    async with broker.database.transaction() as connection:
        found = await audit.violations(connection, begin)
    clean = not any(found.values())
    return render.answer({"clean": clean, "at": format_time(begin), "took_us": broker.clock() - begin, "violations": found})
