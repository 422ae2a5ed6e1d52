# SPDX-License-Identifier: Apache-2.0
"""/v1/links: the network, capacity, calendars, windows."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query, Response

from broker.api import network_answers, render
from broker.api.context import Broker, BrokerDependency, ExpectedRevision, Operator, Reader, etag
from broker.api.contract.parts import CREATED, TAGGED
from broker.api.network_answers import link_of, mistakes, steps_of
from broker.api.network_schemas import LinkChangeOut, LinkDeletedOut, WindowAddedOut
from broker.api.routing import make_router
from broker.api.schemas import CalendarOut, LinkBody, LinkChangeBody, LinkOut, OnBroken, WindowBody
from broker.api.spans import From, To, span
from broker.core.network import Link
from broker.core.units import format_time
from broker.desk.ground.command import Alone, Preview
from broker.desk.ground.problems import Problem
from broker.desk.network.links import AddWindow, ChangeLink, CreateLinks, DeleteLink, LinkChange, RemoveWindow
from broker.store import bookings
from broker.store.bookings import LinkRecord, WindowRecord
from broker.views.calendar_steps import calendar_steps

router = make_router("links", "/v1/links")


PreviewWanted = Annotated[
    bool,
    Query(description="change nothing, and answer what would be, with what would become of each transfer that loses its place"),
]


@router.get("", operation_id="listLinks", response_model=list[LinkOut])
async def list_links(broker: BrokerDependency, _: Reader) -> Response:
    """Every link, with its capacity steps and windows."""
    async with broker.database.transaction() as connection:
        records = await bookings.load_links(connection)
        reverses = await broker.reverses(connection)
    return render.answer([render.link(record, reverses.get(link_id)) for link_id, record in records.items()])


@router.post("", operation_id="createLink", status_code=201, response_model=LinkOut, responses={201: CREATED})
async def create(body: LinkBody, broker: BrokerDependency, caller: Operator) -> Response:
    """Add a directed link. Refused if the id exists."""
    link = link_of(body)
    network_answers.refuse(list(mistakes(link)))
    (record,) = await broker.desk.submit(CreateLinks([link], caller.id))
    return render.answer(_shown(broker, record), 201, {"Location": f"/v1/links/{record.link.id}", "ETag": etag(record.revision)})


@router.get("/{link_id}", operation_id="getLink", response_model=LinkOut, responses={200: TAGGED})
async def show(link_id: str, broker: BrokerDependency, _: Reader) -> Response:
    """One link."""
    record = await _found(broker, link_id)
    async with broker.database.transaction() as connection:
        reverse = (await broker.reverses(connection)).get(link_id)
    return render.answer(render.link(record, reverse), headers={"ETag": etag(record.revision)})


@router.patch("/{link_id}", operation_id="changeLink", response_model=LinkChangeOut, responses={200: TAGGED})
async def change(
    link_id: str,
    body: LinkChangeBody,
    broker: BrokerDependency,
    caller: Operator,
    revision: ExpectedRevision,
    preview: PreviewWanted = False,
) -> Response:
    """Change a link. A capacity below the bookings is refused with the promises that would break, unless `on_broken` is `replan`."""
    given = body.given()
    given.pop("on_broken", None)
    if "available" in given:
        given["available"] = steps_of(body.available)

    def changed(link: Link) -> Link:
        new = replace(link, **given)
        network_answers.refuse(list(mistakes(new)))
        return new

    command = ChangeLink(link_id, caller.id, changed, revision, preview or body.on_broken == "replan", broker.policy)
    return _changed(broker, await _decided(broker, command, preview), preview)


@router.delete(
    "/{link_id}",
    operation_id="deleteLink",
    status_code=204,
    response_class=Response,
    responses={200: {"model": LinkDeletedOut, "description": "With `on_broken=replan`, and as a preview"}},
)
async def delete(
    link_id: str,
    broker: BrokerDependency,
    caller: Operator,
    revision: ExpectedRevision,
    on_broken: OnBroken = "refuse",
    preview: PreviewWanted = False,
) -> Response:
    """Delete a link. Refused if transfers are booked on it, unless `on_broken` is `replan`: then they are replanned over other paths."""
    command = DeleteLink(link_id, caller.id, revision, preview or on_broken == "replan", broker.policy)
    done = await _decided(broker, command, preview)
    if not command.replan:
        return Response(status_code=204)
    return render.answer({"id": link_id, "deleted": not preview} | network_answers.describe_outcomes(done.outcomes, preview))


@router.get("/{link_id}/calendar", operation_id="getLinkCalendar", response_model=CalendarOut)
async def calendar(
    link_id: str,
    broker: BrokerDependency,
    _: Reader,
    begin: From = None,
    end: To = None,
    points: Annotated[int, Query(ge=2, le=100_000, description="more steps than this are thinned out, keeping peaks")] = 2000,
    reverse: Annotated[bool, Query(description="also what is booked on the link back between the same two nodes")] = False,
) -> Response:
    """gamma(t) as steps: capacity, booked and free payload rate."""
    record = await _found(broker, link_id)
    begin_us, end_us = span(begin, end, broker.clock())
    async with broker.database.transaction() as connection:
        booked = await bookings.read_booked(connection, link_id, begin_us, end_us)
        back = (await broker.reverses(connection)).get(link_id) if reverse else None
        back_booked = None if back is None else await bookings.read_booked(connection, back, begin_us, end_us)
    steps, decimated = calendar_steps(record.link, booked, begin_us, end_us, points, back_booked)
    shown: list[dict[str, Any]] = [
        {"begin": format_time(at), "capacity_bps": capacity, "booked_bps": taken, "free_bps": capacity - taken}
        for at, capacity, taken, _ in steps
    ]
    found = {"link": link_id, "begin": format_time(begin_us), "end": format_time(end_us), "decimated": decimated, "steps": shown}
    if reverse:
        found["reverse"] = back
        for row, step in zip(shown, steps, strict=True):
            row["reverse_booked_bps"] = step.reverse_booked_bps
    return render.answer(found)


@router.post(
    "/{link_id}/windows",
    operation_id="addLinkWindow",
    status_code=201,
    response_model=WindowAddedOut,
    responses={201: TAGGED, 200: TAGGED | {"model": LinkChangeOut, "description": "A preview: the link as it would be"}},
)
async def add_window(
    link_id: str, body: WindowBody, broker: BrokerDependency, caller: Operator, preview: PreviewWanted = False
) -> Response:
    """Add a maintenance window, an outage or background traffic: at most `bps` may be used meanwhile."""
    if body.end <= body.begin:
        raise Problem.of_field("end", "must lie after begin")
    window = WindowRecord(broker.new_id("win"), link_id, body.begin, body.end, body.bps, body.kind, body.reason)
    command = AddWindow(window, caller.id, preview or body.on_broken == "replan", broker.policy)
    changed = await _decided(broker, command, preview)
    if preview:
        return _changed(broker, changed, preview)
    return _changed(broker, changed, preview, 201, {"window": window.id})


@router.delete(
    "/{link_id}/windows/{window_id}", operation_id="removeLinkWindow", response_model=LinkChangeOut, responses={200: TAGGED}
)
async def remove_window(
    link_id: str, window_id: str, broker: BrokerDependency, caller: Operator, preview: PreviewWanted = False
) -> Response:
    """End a maintenance window, an outage or background traffic."""
    return _changed(broker, await _decided(broker, RemoveWindow(link_id, window_id, caller.id), preview), preview)


async def _decided(broker: Broker, command: Alone[LinkChange], preview: bool) -> LinkChange:
    return await broker.desk.submit(Preview(command) if preview else command)


def _shown(broker: Broker, record: LinkRecord) -> dict[str, Any]:
    """The answer after a change by this process's desk, whose replica already has the changed network."""
    return render.link(record, broker.desk.replica.network.reverse(record.link.id))


def _changed(broker: Broker, changed: LinkChange, preview: bool, status: int = 200, more: dict[str, Any] | None = None) -> Response:
    assert changed.record is not None
    shown = _shown(broker, changed.record) | network_answers.describe_outcomes(changed.outcomes, preview) | (more or {})
    return render.answer(shown, status, {"ETag": etag(changed.record.revision)})


async def _found(broker: Broker, link_id: str) -> LinkRecord:
    records = {}
    if "\0" not in link_id and link_id.isascii():
        async with broker.database.transaction() as connection:
            records = await bookings.load_links(connection, [link_id])
    if link_id not in records:
        raise Problem("not-found", f"there is no link {link_id[:128]!r}")
    return records[link_id]
