# SPDX-License-Identifier: Apache-2.0
"""/v1/events: what happens, live; /v1/audit-log: what happened; /v1/audit: do the invariants hold?"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Annotated

import orjson
from fastapi import Header, Query, Request, Response

from broker.api import paging, render, sse
from broker.api.callers import caller
from broker.api.context import Broker, BrokerDependency, Operator, Reader
from broker.api.contract.streams import stream_of
from broker.api.feed import PAGE, PUBLIC, Heard, Listener, Wanted
from broker.api.fields import Text, Time
from broker.api.operator_schemas import AuditLogPage, AuditOut
from broker.api.routing import make_router
from broker.core.transfer import State
from broker.core.units import format_time
from broker.desk.ground.problems import Problem
from broker.fleet.tokens import Principal, Scope
from broker.store import audit, events, names
from broker.store.events import Event, Position, Sought, StoredEvent
from broker.store.session import DatabaseAway

router = make_router("events", "/v1")


@router.get("/events", operation_id="streamEvents", response_class=Response, responses={200: stream_of("EventMessage")})
async def stream(
    request: Request,
    broker: BrokerDependency,
    who: Reader,
    last_event_id: Annotated[
        str | None,
        Header(alias="Last-Event-ID", max_length=60, description="go on behind this event; 0-0: behind none of those kept"),
    ] = None,
    subject: Annotated[Text | None, Query(description="only events of this transfer, link, host or token")] = None,
    project: Annotated[Text | None, Query(description="only events of transfers of this project")] = None,
    state: Annotated[list[State] | None, Query(description="only events that left a transfer in one of these states")] = None,
    terminal: Annotated[bool, Query(description="only events that left a transfer ended, however it did")] = False,
) -> Response:
    """SSE of every change that the token may see, in order and without gaps. With Last-Event-ID, it resumes and misses no event that is kept.

    `event: reset`: the broker does not know Last-Event-ID (its database was restored, or is another one) and continues from now; read again
    what you have learnt from the stream. `event: resume`: you read too slowly; the stream ends, reconnect with the id that came with it.
    """
    wanted = Wanted(visible(who), subject, project, frozenset(map(str, state or ())), terminal)
    asked = None if last_event_id is None else _position(last_event_id)
    listener = await broker.feed.listen(wanted, who.id)
    try:
        known = True
        if asked is not None:
            async with broker.database.transaction() as connection:
                known = await events.is_known(connection, asked)
    except BaseException:
        broker.feed.leave(listener)
        raise
    messages = _events(broker, listener, asked if known else None, partial(caller, request), reset=not known)
    return sse.Stream(messages, partial(broker.feed.leave, listener))


def visible(who: Principal) -> frozenset[str] | None:
    """The kinds of events that the caller may see; None: all, as in the audit log. Other endpoints show the same."""
    if who.may(Scope.OPERATE):
        return None
    return PUBLIC | {"token"} if who.may(Scope.ADMIN) else PUBLIC


def _position(last_event_id: str) -> Position:
    try:
        return Position.parse(last_event_id)
    except ValueError as error:
        raise Problem.of_field("Last-Event-ID", str(error)) from None


async def _events(
    broker: Broker, listener: Listener, position: Position | None, who: Callable[[], Awaitable[object]], *, reset: bool = False
) -> AsyncGenerator[str]:
    """The events after `position` from the table, then those of the feed. `who` raises Problem once the caller's token or session has ended."""
    # An id at once: a client that is cut off before the first event can resume from here.
    if position is None:
        position = listener.since
    yield _reset(broker, position) if reset else f"id: {position}\n{sse.HEARTBEAT}"
    try:
        async for page in _missed(broker, listener, position):
            await who()
            for stored in page:
                position = stored.position
                if listener.wanted.includes(stored.event):
                    yield Heard(stored).message
        position = max(position, listener.since)
        checked = time.monotonic()
        while not broker.feed.closing:
            heard = await listener.heard(sse.heartbeat_s())
            if listener.doubtful or time.monotonic() - checked >= sse.HEARTBEAT_S:
                listener.doubtful, checked = False, time.monotonic()
                await who()
            for one in heard:
                if one.stored.position > position:
                    position = one.stored.position
                    yield one.message
            if listener.missed:
                yield f": you read too slowly; go on with this Last-Event-ID\nevent: resume\nid: {position}\n\n"
                return
            if not heard and not listener.waiting:
                position = max(position, broker.feed.position)
                yield f"id: {position}\n{sse.HEARTBEAT}"
    except (Problem, DatabaseAway):
        return  # the client can reconnect and resume after the last id


async def _missed(broker: Broker, listener: Listener, position: Position) -> AsyncIterator[list[StoredEvent]]:
    """The events between `position` and the first one that the feed tells."""
    while position < listener.since:
        async with broker.feed.catching_up, broker.database.transaction() as connection:
            page = await events.after(connection, position, PAGE, listener.wanted.subject)
        yield page
        if len(page) < PAGE:
            return
        position = page[-1].position


def _reset(broker: Broker, position: Position) -> str:
    """An event, so that a client that does not know its kind treats it as a change."""
    event = Event(broker.clock(), "broker", "stream.reset", "stream", "events", None, None)
    return sse.message(orjson.dumps(render.event(StoredEvent(position, event))).decode(), "reset", str(position))


@router.get("/audit-log", operation_id="listAuditLog", response_model=AuditLogPage)
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
    """All changes, newest first, with the state before and after. All filters must match."""
    before = paging.decode(cursor, "audit-log", int)
    sought = Sought(search, actor, action, kind, subject, text or None, since, until)
    async with broker.database.transaction() as connection:
        found = await events.newest_first(connection, limit + 1, before[0] if before else None, sought)
        called = await names.of(connection, render.named_in(found[:limit]))
    following = paging.encode("audit-log", found[limit - 1].position.seq, "") if len(found) > limit else None
    return render.answer({"items": [render.event(stored, called) for stored in found[:limit]], "next": following})


@router.get("/audit", operation_id="runAudit", response_model=AuditOut)
async def run_audit(broker: BrokerDependency, _: Operator) -> Response:
    """Prove the invariants now, from SQL alone."""
    begin = broker.clock()
    async with broker.database.transaction() as connection:
        found = await audit.find_violations(connection, begin)
    clean = not any(found.values())
    return render.answer({"clean": clean, "at": format_time(begin), "took_us": broker.clock() - begin, "violations": found})
