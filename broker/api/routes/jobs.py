# SPDX-License-Identifier: Apache-2.0
"""/v1/plans: re-optimisation; /v1/simulations: what-if. Both are long, so both are jobs: 202, and the row tells the rest."""

import base64
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from fastapi import Query, Response
from fastapi import Request as HttpRequest
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.api import paging
from broker.api import queue as queues
from broker.api.context import Broker, BrokerDependency, ExpectedRevision, Operator, Reader, Submitter
from broker.api.contract.parts import BINARY, CREATED, TAGGED, TEXT
from broker.api.job_schemas import JobOut, JobPage, NetworkBody, PlanBody, SimulationBody
from broker.api.network_answers import link_of
from broker.api.routes.submissions import IdempotencyKey
from broker.api.routing import make_router
from broker.core.link_document import document_of
from broker.core.network import Link, Network
from broker.core.request import FieldProblem
from broker.core.units import format_time
from broker.desk.ground.problems import Problem
from broker.desk.rebalance.reoptimise import Agreement, Apply
from broker.fleet.tokens import Principal, Scope
from broker.simulate import Specification, SpecificationError
from broker.simulate.sheet import as_csv
from broker.store import bookings, jobs, transfers
from broker.store.jobs import Job, JobState, Kind

router = make_router("jobs", "/v1")

MAX_ERRORS = 20

States = Annotated[list[JobState] | None, Query()]


@router.post("/plans", operation_id="startPlan", status_code=202, response_model=JobOut, responses={202: CREATED})
async def plan(
    body: PlanBody, http: HttpRequest, broker: BrokerDependency, caller: Operator, idempotency_key: IdempotencyKey = None
) -> Response:
    """Re-optimise: replan all volumes not yet sent together, keeping every promise. The job's result lists the changes."""
    await _check_names(broker, body)
    key = queues.key_of(caller, idempotency_key, await http.body(), Kind.PLAN)
    return await queues.queue(broker, caller, Kind.PLAN, body.model_dump(), key)


async def _check_names(broker: Broker, body: PlanBody) -> None:
    async with broker.database.transaction() as connection:
        links = await bookings.read_heads(connection) if body.links else {}
        found = await transfers.get_many(connection, body.transfers) if body.transfers else {}
    for index, link_id in enumerate(body.links or ()):
        if link_id not in links:
            raise Problem.of_field(f"links.{index}", f"there is no link {link_id!r}")
    for index, transfer_id in enumerate(body.transfers or ()):
        if transfer_id not in found:
            raise Problem.of_field(f"transfers.{index}", f"there is no transfer {transfer_id!r}")


@router.get("/plans", operation_id="listPlans", response_model=JobPage)
async def list_plans(
    broker: BrokerDependency, _: Reader, state: States = None, limit: paging.Limit = 100, cursor: paging.Cursor = None
) -> Response:
    """Re-optimisations, newest first, without their results."""
    return await queues.page(broker, Kind.PLAN, [str(s) for s in state or ()], limit, cursor)


@router.get("/plans/{job_id}", operation_id="getPlan", response_model=JobOut, responses={200: TAGGED})
async def show_plan(job_id: str, broker: BrokerDependency, _: Reader) -> Response:
    """A re-optimisation, with its result once it is DONE."""
    return await queues.answer(broker, await queues.find(broker, Kind.PLAN, job_id))


@router.post("/plans/{job_id}/cancel", operation_id="cancelPlan", response_model=JobOut, responses={200: TAGGED})
async def cancel_plan(job_id: str, broker: BrokerDependency, caller: Operator, revision: ExpectedRevision) -> Response:
    """Cancel a re-optimisation; it books nothing more. Changes nothing if it has ended."""
    job = await queues.find(broker, Kind.PLAN, job_id)
    queues.check_revision(job, revision)
    return await queues.cancel(broker, caller, job)


@router.post("/simulations", operation_id="startSimulation", status_code=202, response_model=JobOut, responses={202: CREATED})
async def simulate(
    body: SimulationBody, http: HttpRequest, broker: BrokerDependency, caller: Submitter, idempotency_key: IdempotencyKey = None
) -> Response:
    """Ask "what if": the same workload through several planners, on the broker's own network or on another."""
    wanted = body.model_extra or {}
    try:
        specification = Specification.from_document(wanted)
        links = await _links(broker, body.network)
        problems = [*specification.problems(Network(links))]
    except SpecificationError as error:
        problems = [*error.problems]
    if problems:
        errors = [{"field": problem.field, "detail": problem.detail} for problem in problems[:MAX_ERRORS]]
        raise Problem("invalid", "; ".join(f"{e['field']}: {e['detail']}" for e in errors[:3]), {"errors": errors})
    network = "current" if body.network == "current" else {"links": [document_of(link) for link in links]}
    request = {"network": network, **wanted}
    key = queues.key_of(caller, idempotency_key, await http.body(), Kind.SIMULATION)
    return await queues.queue(broker, caller, Kind.SIMULATION, request, key)


async def _links(broker: Broker, wanted: Literal["current"] | NetworkBody) -> list[Link]:
    """Raises SpecificationError."""
    if isinstance(wanted, NetworkBody):
        links = [link_of(item) for item in wanted.links]
        problems = [
            FieldProblem(f"network.links[{i}].{problem.field}", problem.detail)
            for i, link in enumerate(links)
            for problem in link.problems()
        ]
        seen: set[str] = set()
        for i, link in enumerate(links):
            if link.id in seen:
                problems.append(FieldProblem(f"network.links[{i}].id", f"{link.id!r} is there already"))
            seen.add(link.id)
        if problems:
            raise SpecificationError(problems)
        return links
    async with broker.database.transaction() as connection:
        return [record.link for record in (await bookings.load_links(connection)).values()]


@router.get("/simulations", operation_id="listSimulations", response_model=JobPage)
async def list_simulations(
    broker: BrokerDependency, _: Reader, state: States = None, limit: paging.Limit = 100, cursor: paging.Cursor = None
) -> Response:
    """Simulations, newest first, without their results."""
    return await queues.page(broker, Kind.SIMULATION, [str(s) for s in state or ()], limit, cursor)


@router.get(
    "/simulations/{job_id}",
    operation_id="getSimulation",
    response_model=JobOut,
    responses={200: TAGGED | {"content": {"text/csv": TEXT}}, 409: {}},
)
async def show_simulation(
    job_id: str,
    broker: BrokerDependency,
    _: Reader,
    format: Annotated[Literal["json", "csv"], Query(description="csv: the result alone, as a table")] = "json",
) -> Response:
    """A simulation, with its result once it is DONE."""
    job = await queues.find(broker, Kind.SIMULATION, job_id)
    if format == "csv":
        return Response(as_csv(_result(job)), media_type="text/csv; charset=utf-8")
    return await queues.answer(broker, job)


@router.get(
    "/simulations/{job_id}/plot.png",
    operation_id="getSimulationPlot",
    response_class=Response,
    responses={200: {"content": {"image/png": BINARY}}, 409: {}},
)
async def plot(job_id: str, broker: BrokerDependency, _: Reader) -> Response:
    """The result as a picture."""
    job = await queues.find(broker, Kind.SIMULATION, job_id)
    return Response(base64.b64decode(_result(job)["plot_png"]), media_type="image/png")


@router.post("/simulations/{job_id}/cancel", operation_id="cancelSimulation", response_model=JobOut, responses={200: TAGGED})
async def cancel_simulation(job_id: str, broker: BrokerDependency, caller: Submitter, revision: ExpectedRevision) -> Response:
    """Cancel a simulation: your own with `submit`, any with `operate`. Changes nothing if it has ended."""
    job = await queues.find(broker, Kind.SIMULATION, job_id)
    if job.owner != caller.id and not caller.may(Scope.OPERATE):
        raise Problem(
            "forbidden",
            "this simulation was asked for with another token; stopping it needs the scope operate",
            {"scope": "operate"},
        )
    queues.check_revision(job, revision)
    return await queues.cancel(broker, caller, job)


def _result(job: Job) -> dict[str, Any]:
    if job.state is not JobState.DONE or job.result is None:
        raise Problem("conflict", f"the simulation is {job.state}: it has no result", {"state": str(job.state)})
    return job.result


@router.post("/plans/{job_id}/apply", operation_id="applyPlan", response_model=JobOut, responses={200: TAGGED})
async def apply(job_id: str, broker: BrokerDependency, caller: Operator, revision: ExpectedRevision) -> Response:
    """Book the result: all of it, or nothing if a link or a transfer has changed since (409 `conflict` with `changed`)."""
    job = await queues.find(broker, Kind.PLAN, job_id)
    queues.check_revision(job, revision)
    if job.state is not JobState.DONE or job.result is None:
        way_out = (
            "wait until it is DONE" if job.state in (JobState.QUEUED, JobState.RUNNING) else "ask for a new one: POST /v1/plans"
        )
        raise Problem("conflict", f"the plan is {job.state}; {way_out}", {"state": str(job.state)})
    if job.result["applied"]:
        return await queues.answer(broker, job)
    if not job.result["changes_total"]:
        raise Problem("conflict", f"there is nothing to apply: {job.result['note'] or 'the result has no changes'}")
    await broker.desk.submit(Apply(Agreement.from_document(job.result["agreement"]), caller.id, _applied(broker, caller, job_id)))
    return await queues.answer(broker, await queues.find(broker, Kind.PLAN, job_id))


def _applied(broker: Broker, caller: Principal, job_id: str) -> Callable[[AsyncConnection], Awaitable[None]]:
    async def write(connection: AsyncConnection) -> None:
        now = broker.clock()
        await jobs.mark_applied(connection, job_id, now, caller.id, {"applied": True, "applied_at": format_time(now)})

    return write
