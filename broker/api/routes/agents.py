# SPDX-License-Identifier: Apache-2.0
"""/v1/agents: what agents call (docs/agent-protocol.md)."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

from fastapi import Header, Request, Response

from broker.api import render, sse
from broker.api.agent_schemas import AgentReport, Assignments, EnrolBody, Enrolment, ReportsBody, ReportsTaken
from broker.api.arrival import server_times
from broker.api.context import Agent, BrokerDependency, etag
from broker.api.contract.parts import NOT_MODIFIED, OPEN, TAGGED
from broker.api.contract.streams import stream_of
from broker.api.routing import make_router
from broker.core.capabilities import Capabilities
from broker.core.report import ReportDetail, ReportKind
from broker.fleet import enrolment, reports
from broker.fleet.assignments import hand_out, load_assignments
from broker.store import hosts
from broker.store.reports import Report

router = make_router("agents", "/v1/agents")


@router.post("/enrol", operation_id="enrolAgent", status_code=201, response_model=Enrolment, openapi_extra=OPEN)
async def enrol(body: EnrolBody, request: Request, broker: BrokerDependency) -> Response:
    """Trade a one-time enrolment token for an agent token."""
    now_us = broker.clock()
    async with broker.enrolling:
        await enrolment.check(broker.database, now_us, body.token)
    enrolled = await enrolment.enrol(
        broker.database,
        now_us,
        secret=body.token,
        data_address=body.data_address,
        tls_fingerprint=body.tls_fingerprint,
        agent_version=body.agent_version,
        capabilities=Capabilities.parse(body.capabilities),
    )
    broker.access.forget()
    broker.wakeups.announce([enrolled.host.name])
    shown = {
        "host": enrolled.host.name,
        "node": enrolled.host.node,
        "agent_token": enrolled.agent_token,
        **server_times(request, broker.clock()),
    }
    return render.answer(shown, 201)


@router.get(
    "/{host}/assignments",
    operation_id="getAssignments",
    response_model=Assignments,
    responses={200: TAGGED, 304: NOT_MODIFIED},
)
async def read_assignments(
    host: str,
    request: Request,
    broker: BrokerDependency,
    _: Agent,
    if_none_match: Annotated[str | None, Header(alias="If-None-Match")] = None,
) -> Response:
    """The whole desired state of an agent."""
    async with broker.database.transaction() as connection:
        revision = await hosts.mark_seen(connection, host, broker.clock())
        if revision is not None and if_none_match == etag(revision):
            return Response(status_code=304, headers={"ETag": etag(revision)})
        secret = broker.settings.secret_key.get_secret_value().encode()
        links = await broker.links(connection)
        read = await load_assignments(connection, host, secret, broker.settings.fallback_rate_bps, links, broker.clock())
        await hosts.mark_fetched(connection, host, read.document["revision"])
    document = await hand_out(broker.database, host, read)
    document |= server_times(request, broker.clock())
    return render.answer(document, headers={"ETag": etag(document["revision"]), "Cache-Control": "no-store"})


@router.get(
    "/{host}/stream",
    operation_id="streamAssignments",
    response_class=Response,
    responses={200: stream_of("RevisionMessage")},
)
async def stream(host: str, broker: BrokerDependency, _: Agent) -> Response:
    """SSE: `event: revision` whenever there is something new."""
    agent = broker.revisions.listen(host)
    return sse.Stream(_revisions(broker.revisions.of(agent)), partial(broker.revisions.leave, agent))


async def _revisions(told: AsyncIterator[int | None]) -> AsyncIterator[str]:
    async for revision in told:
        yield sse.HEARTBEAT if revision is None else sse.message(f'{{"revision": {revision}}}', "revision")


@router.post("/{host}/reports", operation_id="sendReports", response_model=ReportsTaken)
async def report(host: str, body: ReportsBody, request: Request, broker: BrokerDependency, _: Agent) -> Response:
    """Progress, ends and signs of life. Each (transfer, sequence) counts once, however often it is sent."""
    now_us = broker.clock()
    given = [_report(host, item, now_us) for item in body.reports]
    about = _about(body, now_us)
    taken = await reports.take(broker.database, broker.desk, host, given, now_us, about, broker.policy, complete=body.complete)
    broker.metrics.reports.labels("accepted").inc(len(taken.accepted))
    broker.metrics.reports.labels("ignored").inc(len(taken.ignored))
    if taken.accepted:
        broker.wakeups.announce([])
    shown = {
        "accepted": [{"transfer_id": item.transfer_id, "sequence": item.sequence} for item in taken.accepted],
        "ignored": [
            {"transfer_id": item.transfer_id, "sequence": item.sequence, "code": code, "detail": detail}
            for item, code, detail in taken.ignored
        ],
        "revision": taken.revision,
        **server_times(request, broker.clock()),
    }
    return render.answer(shown)


def _report(host: str, item: AgentReport, now_us: int) -> Report:
    return Report(
        item.transfer_id,
        host,
        item.sequence,
        item.at,
        now_us,
        ReportKind(item.kind),
        item.bytes,
        item.rate_bps,
        item.applied_rate_bps,
        ReportDetail(item.checksum, item.code, item.detail),
    )


def _about(body: ReportsBody, now_us: int) -> dict[str, Any]:
    """The agent's description of itself, as columns of `hosts`."""
    about: dict[str, Any] = {}
    if body.goodbye:
        about["goodbye_us"] = now_us
    if body.revision is not None:
        about["applied_revision"] = body.revision
    if body.clock is not None:
        about["clock"] = {**body.clock.model_dump(), "at_us": now_us}
    if body.agent is not None:
        said = body.agent
        columns = {
            "agent_version": said.version,
            "data_address": said.data_address,
            "capabilities": said.capabilities,
        }
        about |= {name: value for name, value in columns.items() if value is not None}
        if "tls_fingerprint" in said.model_fields_set:
            about["tls_fingerprint"] = said.tls_fingerprint
    return about
