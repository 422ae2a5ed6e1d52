# SPDX-License-Identifier: Apache-2.0
"""Jobs as the API sees them: queue one, show it, stop it."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Response

from broker.api import paging, render
from broker.api.context import Broker, etag
from broker.api.statuses import with_status
from broker.core.units import format_time
from broker.desk.ground.limits import refuse_jobs
from broker.desk.ground.problems import Problem
from broker.fleet.tokens import Principal, Scope
from broker.store import idempotency, jobs, names
from broker.store.idempotency import Key
from broker.store.jobs import Job, Kind

Json = dict[str, Any]

PATHS = {Kind.PLAN: "plans", Kind.SIMULATION: "simulations"}
_PREFIXES = {Kind.PLAN: "plan", Kind.SIMULATION: "sim"}  # of ids: the client tells by them where a job is to be found
_INSIDE = ("agreement", "plot_png")  # parts of results that are asked for otherwise


def key_of(caller: Principal, given: str | None, body: bytes, kind: Kind) -> Key | None:
    """The idempotency key that the caller gave; None for none."""
    return None if given is None else Key(caller.id, given, hashlib.sha256(PATHS[kind].encode() + b"\0" + body).digest())


async def queue(broker: Broker, caller: Principal, kind: Kind, request: Json, key: Key | None) -> Response:
    """202 with the job that was queued, or with the one that the key queued before."""
    now = broker.clock()
    async with broker.database.transaction() as connection:
        if key is not None:
            known = (await idempotency.claim(connection, [key], now)).get(key[:2])
            if known is not None:
                return await _accepted(broker, await jobs.get(connection, _job_of(known, key), kind))
        await jobs.lock_queue(connection)
        account, urgent = broker.account(caller), caller.may(Scope.OPERATE)
        refuse_jobs(account, (await jobs.count_open(connection)).get(caller.id, 0))
        waiting, most = await jobs.count_waiting(connection, urgent=urgent), broker.settings.job_queue
        if waiting >= most:
            raise Problem(
                "unavailable", f"{waiting} jobs wait already, at most {most} may; cancel some, or try again later", {"limit": most}
            )
        job = await jobs.add(connection, broker.new_id(_PREFIXES[kind]), kind, request, caller.id, now, urgent=urgent)
        if key is not None:
            await idempotency.remember(connection, [(key, {"job": job.id})])
    broker.wakeups.announce(())
    broker.nudge()
    return await _accepted(broker, job)


def _job_of(known: idempotency.Known, key: Key) -> str:
    if known.body_hash != key.body_hash:
        raise Problem(
            "idempotency-key-reused",
            "this Idempotency-Key was used before with another body; use a new key for a new request",
            {"errors": [{"field": "Idempotency-Key", "detail": "used before with another body"}]},
        )
    return str((known.answer or {}).get("job", ""))


async def _accepted(broker: Broker, job: Job | None) -> Response:
    if job is None:
        raise Problem("conflict", "this Idempotency-Key belongs to a job that is forgotten by now; use a new key")
    return await answer(broker, job, 202, {"Location": f"/v1/{PATHS[job.kind]}/{job.id}"})


async def page(broker: Broker, kind: Kind, states: Sequence[str], limit: int, cursor: str | None) -> Response:
    """A page of jobs of one kind."""
    async with broker.database.transaction() as connection:
        found = await jobs.list_page(connection, kind, states, limit + 1, paging.decode(cursor, PATHS[kind], int))
        called = await names.of(connection, {job.owner for job in found})
    following = paging.encode(PATHS[kind], found[limit - 1].created_us, found[limit - 1].id) if len(found) > limit else None
    return render.answer({"items": [document(job, called) for job in found[:limit]], "next": following})


async def find(broker: Broker, kind: Kind, job_id: str) -> Job:
    """The job. Raises Problem where there is none of this kind."""
    job = None
    if job_id.isascii() and "\0" not in job_id and len(job_id) <= 64:
        async with broker.database.transaction() as connection:
            job = await jobs.get(connection, job_id, kind)
    if job is None:
        raise Problem("not-found", f"there is no {kind} {job_id[:64]!r}")
    return job


def check_revision(job: Job, revision: int | None) -> None:
    """Raises Problem where the job has changed since the caller read it."""
    if revision is not None and revision != job.revision:
        raise Problem(
            "precondition-failed", f"the job is at revision {job.revision} now; read it again", {"revision": job.revision}
        )


async def cancel(broker: Broker, caller: Principal, job: Job) -> Response:
    """Cancel a job; the answer shows it as it is then."""
    async with broker.database.transaction() as connection:
        await jobs.cancel(connection, job.id, broker.clock(), caller.id)
        present = await jobs.get(connection, job.id, job.kind)
    broker.wakeups.announce(())
    return await answer(broker, present or job)


async def answer(broker: Broker, job: Job, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A job as an answer."""
    async with broker.database.transaction() as connection:
        called = await names.of(connection, [job.owner])
    return render.answer(document(job, called), status, {"ETag": etag(job.revision), **(headers or {})})


def document(job: Job, called: Mapping[str, str]) -> Json:
    """`called`: names of owners."""
    result = job.result and {name: value for name, value in job.result.items() if name not in _INSIDE}
    return {
        "id": job.id,
        "kind": str(job.kind),
        "state": str(job.state),
        "progress": round(job.progress, 4),
        "stage": job.stage,
        "cancel_requested": job.cancel,
        "attempts": job.attempts,
        "request": job.request,
        "result": result,
        "error": None if job.error is None else with_status(job.error),
        "owner": job.owner,
        "owner_name": called.get(job.owner),
        "revision": job.revision,
        "created": format_time(job.created_us),
        "started": render.time_or_none(job.started_us),
        "finished": render.time_or_none(job.finished_us),
    }
