# SPDX-License-Identifier: Apache-2.0
"""/v1/transfers: list, show and change transfers."""

import time
from collections.abc import Mapping
from typing import Annotated, Literal, cast

from fastapi import Header, Query, Response

from broker.api import paging, render
from broker.api.context import Broker, BrokerDependency, ExpectedRevision, Reader, Submitter, etag
from broker.api.contract.parts import NOT_MODIFIED, TAGGED
from broker.api.feed import Wanted
from broker.api.fields import Text, Time
from broker.api.operator_schemas import EventOut
from broker.api.outlook import outlooks as outlooks_of
from broker.api.overview_schemas import Promise
from broker.api.routing import make_router
from broker.api.schemas import (
    TransferChange,
    TransferOut,
    TransferPage,
    TransferPreview,
)
from broker.api.transfer_fields import read_patch
from broker.core.transfer import Action, State
from broker.core.units import format_time
from broker.desk.ground.command import Command
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.modify import Change, OneTransfer, Pause, Resume
from broker.desk.lifecycle.transitions import Commit, End, find_released_parts
from broker.fleet.tokens import Principal, Scope
from broker.store import events, names, promises, reports, transfer_lists, transfers
from broker.store.bookings import LinkRecord
from broker.store.transfer_lists import Filter, Order
from broker.store.transfers import Transfer

router = make_router("transfers", "/v1")

TransferId = str

PreviewWanted = Annotated[bool, Query(description="change nothing, and answer what would be")]
OutlookWanted = Annotated[bool, Query(description="also say how it goes: promise, progress, when it will finish, whose it is")]
Sort = Literal[
    "created", "-created", "start", "-start", "finish", "-finish", "promised_finish", "-promised_finish", "deadline", "-deadline",
    "volume", "-volume", "priority", "-priority", "state", "-state",
    "label", "-label", "project", "-project", "source", "-source", "destination", "-destination",
]  # fmt: skip


@router.get("/transfers", operation_id="listTransfers", response_model=TransferPage)
async def list_transfers(
    broker: BrokerDependency,
    _: Reader,
    state: Annotated[list[State] | None, Query()] = None,
    project: Annotated[Text | None, Query()] = None,
    node: Annotated[Text | None, Query(description="source or destination")] = None,
    mode: Annotated[Text | None, Query()] = None,
    owner: Annotated[Text | None, Query(description="id of the token that it was submitted with")] = None,
    source: Annotated[Text | None, Query()] = None,
    destination: Annotated[Text | None, Query()] = None,
    after: Annotated[Text | None, Query(description="id of the transfer whose end starts it")] = None,
    search: Annotated[Text | None, Query(description="part of label, project, source, destination or id")] = None,
    promise: Annotated[list[Promise] | None, Query(description="how its promise stands")] = None,
    ended_after: Annotated[Time | None, Query(description="only what has ended since")] = None,
    sort: Annotated[Sort, Query(description="-: the other way round; what has no such value comes last")] = "-created",
    count: Annotated[bool, Query(description="say in `total` how many there are in all")] = False,
    outlook: OutlookWanted = False,
    limit: paging.Limit = 100,
    cursor: paging.Cursor = None,
) -> Response:
    """Transfers; without `sort`, the newest first."""
    states = tuple(str(s) for s in state or ())
    wanted = Filter(states, project, node, mode, owner, source, destination, after, search, tuple(promise or ()), ended_after)
    order = Order(sort.removeprefix("-"), sort.startswith("-"))
    behind = paging.decode(cursor, sort, order.key_type)
    async with broker.database.transaction() as connection:
        now = await promises.look(connection, broker.clock(), broker.clock_limits.silence_us)
        page = await transfer_lists.page(connection, wanted, order, limit + 1, behind, now)
        total = await transfer_lists.count(connection, wanted, now) if count else None
        records = await broker.links(connection)
        shown = [item for _, item in page[:limit]]
        outlooks = await outlooks_of(connection, shown, now) if outlook else {}
    following = paging.encode(sort, page[limit - 1][0], shown[-1].id) if len(page) > limit else None
    items = [render.transfer(item, records) | ({"outlook": outlooks[item.id]} if outlook else {}) for item in shown]
    return render.answer({"items": items, "next": following} | ({"total": total} if count else {}))


@router.get(
    "/transfers/{transfer_id}",
    operation_id="getTransfer",
    response_model=TransferOut,
    responses={200: TAGGED, 304: NOT_MODIFIED},
)
async def show(
    transfer_id: TransferId,
    broker: BrokerDependency,
    caller: Reader,
    outlook: OutlookWanted = False,
    wait: Annotated[
        float, Query(ge=0, le=60, description="seconds to wait for a change of what If-None-Match names, or an end")
    ] = 0,
    if_none_match: Annotated[str | None, Header(alias="If-None-Match", max_length=60, description="ETag of what was read")] = None,
) -> Response:
    """One transfer. With `wait`, the answer comes when its revision differs from If-None-Match (or from now), it has ended, or the time is up."""
    found = await _found(broker, transfer_id)
    known = (if_none_match or "").removeprefix("W/")  # the tag of a compressed answer is weak
    if wait:
        found = await _changed(broker, caller, found, known or etag(found.revision), wait)
    if not outlook and known == etag(found.revision):
        return Response(status_code=304, headers={"ETag": known})
    async with broker.database.transaction() as connection:
        shown = render.transfer(found, await broker.links(connection))
        if outlook:
            now = await promises.look(connection, broker.clock(), broker.clock_limits.silence_us)
            shown["outlook"] = (await outlooks_of(connection, [found], now))[found.id]
    return render.answer(shown, headers={"ETag": etag(found.revision)})


@router.patch(
    "/transfers/{transfer_id}", operation_id="changeTransfer", response_model=TransferPreview | TransferOut, responses={200: TAGGED}
)
async def change(
    transfer_id: TransferId,
    body: TransferChange,
    broker: BrokerDependency,
    caller: Submitter,
    revision: ExpectedRevision,
    preview: PreviewWanted = False,
) -> Response:
    """Change a transfer. A change of its booking is replanned in one step; if that is refused, the old booking stays."""
    command = Change(transfer_id, caller.id, revision, broker.policy, read_patch(body), broker.account(caller))
    return await _carry_out(broker, caller, command, preview)


@router.post("/transfers/{transfer_id}/commit", operation_id="commitTransfer", response_model=TransferOut, responses={200: TAGGED})
async def commit(transfer_id: TransferId, broker: BrokerDependency, caller: Submitter, revision: ExpectedRevision) -> Response:
    """Commit a held booking."""
    return await _carry_out(broker, caller, Commit(transfer_id, caller.id, revision))


@router.post(
    "/transfers/{transfer_id}/cancel",
    operation_id="cancelTransfer",
    response_model=TransferPreview | TransferOut,
    responses={200: TAGGED},
)
async def cancel(
    transfer_id: TransferId, broker: BrokerDependency, caller: Submitter, revision: ExpectedRevision, preview: PreviewWanted = False
) -> Response:
    """Cancel a transfer; its remaining booking is released at once."""
    return await _carry_out(broker, caller, End(transfer_id, caller.id, revision, action=Action.CANCEL), preview)


@router.post(
    "/transfers/{transfer_id}/pause",
    operation_id="pauseTransfer",
    response_model=TransferPreview | TransferOut,
    responses={200: TAGGED},
)
async def pause(
    transfer_id: TransferId, broker: BrokerDependency, caller: Submitter, revision: ExpectedRevision, preview: PreviewWanted = False
) -> Response:
    """Pause a transfer until it is resumed; its remaining booking is released."""
    return await _carry_out(broker, caller, Pause(transfer_id, caller.id, revision, broker.policy), preview)


@router.post(
    "/transfers/{transfer_id}/resume",
    operation_id="resumeTransfer",
    response_model=TransferPreview | TransferOut,
    responses={200: TAGGED},
)
async def resume(
    transfer_id: TransferId, broker: BrokerDependency, caller: Submitter, revision: ExpectedRevision, preview: PreviewWanted = False
) -> Response:
    """Resume a paused transfer: book its remaining volume from now on."""
    return await _carry_out(
        broker, caller, Resume(transfer_id, caller.id, revision, broker.policy, broker.account(caller)), preview
    )


@router.get("/transfers/{transfer_id}/events", operation_id="listTransferEvents", response_model=list[EventOut])
async def history(transfer_id: TransferId, broker: BrokerDependency, caller: Reader, limit: paging.Limit = 200) -> Response:
    """The history of a transfer, oldest first. Names of tokens other than its owner's are shown to tokens with `operate`."""
    transfer = await _found(broker, transfer_id)
    async with broker.database.transaction() as connection:
        found = await events.of_subject(connection, transfer_id, limit)
        named = render.named_in(found) if caller.may(Scope.OPERATE) else {transfer.id, transfer.owner}
        called = await names.of(connection, named)
    return render.answer([render.event(stored, called) for stored in found])


@router.get("/transfers/{transfer_id}/measurements", operation_id="getTransferMeasurements")
async def measurements(transfer_id: TransferId, broker: BrokerDependency, _: Reader) -> Response:
    """The reports of the agents: time, host, bytes so far, rate measured and rate applied."""
    await _found(broker, transfer_id)
    async with broker.database.transaction() as connection:
        found = await reports.read_measured(connection, transfer_id)
    shown = [
        {
            "at": format_time(report.at_us),
            "host": report.host,
            "sequence": report.sequence,
            "kind": report.kind,
            "bytes": report.bytes,
            "rate_bps": report.rate_bps,
            "applied_rate_bps": report.applied_rate_bps,
        }
        for report in found
    ]
    return render.answer({"items": shown})


async def _carry_out(broker: Broker, caller: Principal, command: OneTransfer, preview: bool = False) -> Response:
    present = await _may_change(broker, caller, command.transfer_id)
    if not preview:
        return _answer(await broker.desk.submit(cast(Command[Transfer], command)), broker.desk.replica.records)
    foreseen = await broker.desk.foresee(cast(Command[Transfer], command))
    freed = find_released_parts(present.segments, foreseen.result.segments) if isinstance(command, End | Pause) else ()
    return render.answer(render.preview(foreseen, freed, broker.desk.replica.records))


async def _changed(broker: Broker, caller: Principal, found: Transfer, known: str, wait_s: float) -> Transfer:
    """The transfer as soon as its ETag differs from `known`, it has ended, or the time is up."""
    if not found.live or etag(found.revision) != known:
        return found
    until = time.monotonic() + wait_s
    listener = await broker.feed.listen(Wanted(subject=found.id), caller.id)
    try:
        found = await _found(broker, found.id)  # again: it may have changed before anybody listened
        while found.live and etag(found.revision) == known and (left := until - time.monotonic()) > 0 and not broker.feed.closing:
            await listener.heard(left)
            found = await _found(broker, found.id)
        return found
    finally:
        broker.feed.leave(listener)


async def _found(broker: Broker, transfer_id: str) -> Transfer:
    async with broker.database.transaction() as connection:
        found = await transfers.get(connection, transfer_id) if _storable(transfer_id) else None
    if found is None:
        raise Problem("not-found", f"there is no transfer {transfer_id[:64]!r}")
    return found


def _storable(text: str) -> bool:
    return "\0" not in text and text.isascii() and len(text) <= 64


async def _may_change(broker: Broker, caller: Principal, transfer_id: str) -> Transfer:
    """Callers change their own transfers with `submit`, any with `operate`. Owners never change, so a check before the lock is enough."""
    transfer = await _found(broker, transfer_id)
    if transfer.owner != caller.id and not caller.may(Scope.OPERATE):
        raise Problem(
            "forbidden", "this transfer was submitted with another token; changing it needs the scope operate", {"scope": "operate"}
        )
    return transfer


def _answer(transfer: Transfer, links: Mapping[str, LinkRecord]) -> Response:
    return render.answer(render.transfer(transfer, links), headers={"ETag": etag(transfer.revision)})
