# SPDX-License-Identifier: Apache-2.0
"""New transfers, one or many, and quotes: what admission decides."""

import asyncio
import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Body, Header, Response
from fastapi import Request as HttpRequest

from broker.api import render
from broker.api.batches import validate
from broker.api.context import Broker, BrokerDependency, Reader, Submitter, etag
from broker.api.contract.parts import CREATED
from broker.api.parse_request import parse_ask, parse_asks
from broker.api.routing import make_router
from broker.api.schemas import (
    BatchOut,
    QuoteRequest,
    QuotesOut,
    TransferOut,
    TransferRequest,
)
from broker.desk.admission.admit import Admit
from broker.desk.admission.ask import Ask, find_asked_links
from broker.desk.admission.preemption import AdmitByPreemption
from broker.desk.admission.quote import Quote
from broker.desk.ground.problems import Problem
from broker.fleet import clocks, liveness, matches
from broker.fleet.tokens import Principal, Scope
from broker.planners import PLANNERS, traits_of
from broker.store import transfers
from broker.store.idempotency import Key
from broker.store.transfers import Transfer

router = make_router("transfers", "/v1")

# So many items of a batch are put into words before others have their turn: some milliseconds.
_AT_ONCE = 100
IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]

# FastAPI would validate all of a batch in one go, and everybody else would wait for it (batches.py).
_BATCH_ITEM = {"$ref": "#/components/schemas/TransferRequest"}
_BATCH = {"requestBody": {"content": {"application/json": {"schema": {"items": _BATCH_ITEM}}}}}


async def _judged(given: list[Ask], broker: Broker, caller: Principal) -> list[Ask]:
    """The asks; each that its hosts cannot carry out has the reason: packets not allowed, an agent down, a clock too inaccurate."""
    by_clock = any(clocks.begins_by_clock(item) for item in given)
    if not by_clock and not any(liveness.agents_needed(item) for item in given):
        return given
    now_us, limits = broker.clock(), broker.clock_limits
    async with broker.database.transaction() as connection:
        allowed = await matches.judge(connection, given, caller.may(Scope.OPERATE))
        judged = await liveness.judge(connection, allowed, now_us, limits.silence_us)
        return await clocks.judge(connection, judged, now_us, limits) if by_clock else judged


async def _admission(broker: Broker, caller: Principal, asked: Sequence[Ask], key: Key | None) -> Admit:
    """The command for these asks; with the transfers that may be displaced, if some asks preempt."""
    preempting = [item for item in asked if item.preempt]
    if not preempting:
        return Admit(asked, caller.id, broker.policy, key, allowance=broker.allowance(caller))
    if not (caller.may(Scope.OPERATE) or broker.settings.submit_may_preempt):
        raise Problem("forbidden", "preempt displaces other people's transfers and needs the scope operate", {"scope": "operate"})
    links = find_asked_links(preempting, broker.desk.replica)
    highest = max(item.spec.priority for item in preempting)
    async with broker.database.transaction() as connection:
        candidates = await transfers.find_displaceable(connection, links, highest, broker.clock())
    return AdmitByPreemption(asked, caller.id, broker.policy, key, candidates, allowance=broker.allowance(caller))


async def _admitted(broker: Broker, caller: Principal, asked: Sequence[Ask], key: Key | None) -> list[Transfer | Problem]:
    results = await broker.desk.submit(await _admission(broker, caller, asked, key))
    return [result for result in results if result is not None]  # the desk goes on until none is undecided


def _key(principal: Principal, given: str | None, body: bytes, route: str) -> Key | None:
    return None if given is None else Key(principal.id, given, hashlib.sha256(route.encode() + b"\0" + body).digest())


@contextmanager
def _timed(broker: Broker, kind: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    broker.metrics.admission_seconds.labels(kind).observe(time.perf_counter() - begin)


def _count(broker: Broker, results: Sequence[Transfer | Problem]) -> None:
    for result in results:
        if isinstance(result, Problem):
            broker.metrics.refusals.labels(result.code).inc()
        else:
            broker.metrics.admissions.labels(result.spec.planner).inc()


@router.post("/transfers", operation_id="submitTransfer", status_code=201, response_model=TransferOut, responses={201: CREATED})
async def submit(
    body: TransferRequest, http: HttpRequest, broker: BrokerDependency, caller: Submitter, idempotency_key: IdempotencyKey = None
) -> Response:
    """Book a transfer. 201 means that the booking is on disk; 409 `infeasible` names the binding link and has counter-offers."""
    with _timed(broker, "single"):
        key = _key(caller, idempotency_key, await http.body(), "transfers")
        asked = await _judged([parse_ask(body, broker.new_id("tr"))], broker, caller)
        results = await _admitted(broker, caller, asked, key)
    _count(broker, results)
    result = results[0]
    if isinstance(result, Problem):
        raise result
    headers = {"Location": f"/v1/transfers/{result.id}", "ETag": etag(result.revision)}
    return render.answer(render.transfer(result, broker.desk.replica.records), 201, headers)


@router.post("/transfers/batch", operation_id="submitBatch", response_model=BatchOut, openapi_extra=_BATCH)
async def submit_batch(
    http: HttpRequest,
    broker: BrokerDependency,
    caller: Submitter,
    body: Annotated[list[Any], Body(min_length=1)],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Book many transfers, each independently. The answer has a status per item, in order. Other callers are served in between.

    Those with one joint planner (vifi, optimal) are planned together.
    """
    if len(body) > broker.settings.batch_limit:
        raise Problem(
            "too-large",
            f"{len(body)} transfers in one batch; at most {broker.settings.batch_limit}",
            {"limit": broker.settings.batch_limit},
        )
    with _timed(broker, "batch"):
        items = await validate(body)
        key = _key(caller, idempotency_key, await http.body(), "batch")
        asked = await _judged(parse_asks(items, [broker.new_id("tr") for _ in items]), broker, caller)
        # The framework keeps the list until the answer; its items are several times as large as `asked`.
        body.clear()
        items.clear()
        results = await _admitted(broker, caller, asked, key)
    _count(broker, results)
    records = broker.desk.replica.records
    said: list[Any] = []
    for begin in range(0, len(results), _AT_ONCE):
        said += [render.batch_item(result, records) for result in results[begin : begin + _AT_ONCE]]
        await asyncio.sleep(0)  # others have their turn
    return render.answer({"items": said})


@router.post("/quotes", operation_id="quoteTransfer", response_model=QuotesOut)
async def quote(body: QuoteRequest, broker: BrokerDependency, caller: Reader) -> Response:
    """What each planner would answer now. Books and reserves nothing."""
    planners = list(PLANNERS) if body.planners == ["*"] else list(dict.fromkeys(body.planners or [body.planner]))
    asked = await _judged([parse_ask(body, "quote")], broker, caller)
    answers = await broker.desk.submit(Quote(asked[0], planners, broker.policy, broker.account(caller)))
    records = broker.desk.replica.records
    shown = [render.quote(name, traits_of(name).books, result, records) for name, result in answers.items()]
    return render.answer({"quotes": shown})
