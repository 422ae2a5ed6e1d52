# SPDX-License-Identifier: Apache-2.0
"""Jobs: long-running work as rows. All state is in these rows; a message in Redis only tells workers to look.

A worker holds its job by (id, attempts): a worker that was given up and resumes later finds another number of attempts, and can no
longer report or finish.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import orjson
from sqlalchemy import Row, and_, func, insert, literal_column, select, text, tuple_
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.store import events
from broker.store.events import Event
from broker.store.tables import jobs

Json = dict[str, Any]


class JobState(StrEnum):
    """The state of a job in its life cycle."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


class Kind(StrEnum):
    """Kinds of jobs."""

    PLAN = "plan"
    SIMULATION = "simulation"


ENDED = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELED})
WORKER = "worker"  # the actor of events without a token


@dataclass(slots=True)
class Job:
    """A row of `jobs`; the fields are its columns, in their order."""

    id: str
    kind: Kind
    state: JobState
    request: Json
    progress: float
    stage: str | None
    result: Json | None
    error: Json | None
    owner: str
    urgent: bool
    cancel: bool
    attempts: int
    heartbeat_us: int | None
    revision: int
    created_us: int
    started_us: int | None
    finished_us: int | None


_COLUMNS = tuple(field.name for field in fields(Job))
_SELECT = select(*(jobs.c[name] for name in _COLUMNS))
# Lists omit results and the networks of requests: a page of a thousand would be gigabytes.
_BRIEF = select(
    *(
        literal_column("request - 'network'", JSONB).label("request")
        if name == "request"
        else text("NULL AS result")
        if name == "result"
        else jobs.c[name]
        for name in _COLUMNS
    )
)
_RETURNING = f"RETURNING {', '.join(_COLUMNS)}"


def _job(row: Row[Any]) -> Job:
    values = list(row)
    job = Job(*values)
    job.kind, job.state = Kind(job.kind), JobState(job.state)
    return job


async def add(
    connection: AsyncConnection, job_id: str, kind: Kind, request: Json, owner: str, now_us: int, *, urgent: bool = False
) -> Job:
    """Queue a job. Urgent jobs are taken before all others."""
    values = {"id": job_id, "kind": str(kind), "state": "QUEUED", "request": request, "owner": owner, "created_us": now_us}
    values["urgent"] = urgent
    row = (await connection.execute(insert(jobs).values(**values).returning(*(jobs.c[name] for name in _COLUMNS)))).one()
    job = _job(row)
    await _note(connection, job, "job.queued", owner, now_us, None)
    return job


async def get(connection: AsyncConnection, job_id: str, kind: Kind | None = None) -> Job | None:
    """The job, of this kind if one is given, or None."""
    query = _SELECT.where(jobs.c.id == job_id)
    if kind is not None:
        query = query.where(jobs.c.kind == str(kind))
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else _job(row)


async def list_page(
    connection: AsyncConnection, kind: Kind, states: Sequence[str], limit: int, after: tuple[int, str] | None
) -> list[Job]:
    """Newest first, without results; `after` is (created_us, id) of the last row of the previous page."""
    conditions = [jobs.c.kind == str(kind)]
    if states:
        conditions.append(jobs.c.state.in_(states))
    if after is not None:
        conditions.append(tuple_(jobs.c.created_us, jobs.c.id) < tuple_(*after))
    query = _BRIEF.where(and_(True, *conditions)).order_by(jobs.c.created_us.desc(), jobs.c.id.desc()).limit(limit)
    return [_job(row) for row in await connection.execute(query)]


_QUEUEING = text("SELECT pg_advisory_xact_lock(hashtext('broker.jobs.queue'))")


async def lock_queue(connection: AsyncConnection) -> None:
    """Prevent other callers from adding jobs until the transaction ends: two at once would both find the last place free."""
    await connection.execute(_QUEUEING)


async def count_waiting(connection: AsyncConnection, *, urgent: bool) -> int:
    """The number of queued jobs that are urgent, or that are not: the two do not share places."""
    query = select(func.count()).where(jobs.c.state == "QUEUED", jobs.c.urgent == urgent)
    return int((await connection.execute(query)).scalar_one())


async def count_open(connection: AsyncConnection) -> dict[str, int]:
    """The number of waiting or running jobs of each token that has any."""
    query = select(jobs.c.owner, func.count()).where(jobs.c.state.in_([JobState.QUEUED, JobState.RUNNING])).group_by(jobs.c.owner)
    return {row[0]: row[1] for row in await connection.execute(query)}


# -- workers -------------------------------------------------------------------------------------------------------------------

_ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(hashtext('broker.jobs.claim'))")
_CLAIM = text(f"""
    UPDATE jobs SET state = 'RUNNING', attempts = attempts + 1, heartbeat_us = :now, started_us = :now, progress = 0,
        stage = 'starting', revision = revision + 1
    WHERE id = (SELECT id FROM jobs WHERE state = 'QUEUED' AND NOT cancel ORDER BY urgent DESC, created_us, id LIMIT 1 FOR UPDATE SKIP LOCKED)
        AND (SELECT count(*) FROM jobs WHERE state = 'RUNNING') < :slots
    {_RETURNING}""")


async def claim(connection: AsyncConnection, now_us: int, slots: int) -> Job | None:
    """Take the oldest queued job, urgent ones first, unless `slots` jobs are already running on all workers together."""
    await connection.execute(_ONE_AT_A_TIME)  # two concurrent claims would both count one running job too few
    row = (await connection.execute(_CLAIM, {"now": now_us, "slots": slots})).one_or_none()
    if row is None:
        return None
    job = _job(row)
    await _note(connection, job, "job.started", WORKER, now_us, {"state": "QUEUED"})
    return job


class JobLost(Exception):
    """The worker no longer holds the job: it was given up, or cancelled while it ended."""


_MINE = "id = :id AND attempts = :attempts AND state = 'RUNNING'"
_BEAT = text(f"""
    UPDATE jobs SET heartbeat_us = :now, progress = :progress, stage = :stage,
        revision = revision + CASE WHEN progress = :progress AND stage IS NOT DISTINCT FROM :stage THEN 0 ELSE 1 END
    WHERE {_MINE} RETURNING cancel""")
_FINISH = text(f"""
    UPDATE jobs SET state = :state, result = CAST(:result AS jsonb), error = CAST(:error AS jsonb), finished_us = :now,
        progress = CASE WHEN :state = 'DONE' THEN 1 ELSE progress END, stage = NULL, heartbeat_us = NULL, revision = revision + 1
    WHERE {_MINE} AND NOT (cancel AND :state = 'DONE') {_RETURNING}""")
_GIVE_BACK = text(f"""
    UPDATE jobs SET state = 'QUEUED', attempts = attempts - :forgiven, progress = 0, stage = :why, heartbeat_us = NULL,
        revision = revision + 1
    WHERE {_MINE} {_RETURNING}""")


def _mine(job: Job) -> Json:
    return {"id": job.id, "attempts": job.attempts}


async def beat(connection: AsyncConnection, job: Job, now_us: int, progress: float, stage: str) -> bool:
    """Store a heartbeat and progress; returns True if the job is to be cancelled. Raises JobLost."""
    values = {**_mine(job), "now": now_us, "progress": progress, "stage": stage}
    row = (await connection.execute(_BEAT, values)).one_or_none()
    if row is None:
        raise JobLost(job.id)
    return bool(row.cancel)


async def finish(
    connection: AsyncConnection, job: Job, now_us: int, state: JobState, *, result: Json | None = None, error: Json | None = None
) -> None:
    """End a job. Raises JobLost, also if it is done but was cancelled meanwhile: then the caller must not write any of its results."""
    values = {**_mine(job), "now": now_us, "state": str(state), "result": _text(result), "error": _text(error)}
    row = (await connection.execute(_FINISH, values)).one_or_none()
    if row is None:
        raise JobLost(job.id)
    await _note(connection, _job(row), f"job.{state.lower()}", WORKER, now_us, {"state": "RUNNING"})


async def give_back(connection: AsyncConnection, job: Job, now_us: int, why: str, *, forgiven: bool) -> None:
    """Queue a running job again. `forgiven`: the attempt does not count, because the job did not cause it."""
    row = (await connection.execute(_GIVE_BACK, {**_mine(job), "why": why, "forgiven": int(forgiven)})).one_or_none()
    if row is not None:
        await _note(connection, _job(row), "job.queued", WORKER, now_us, {"state": "RUNNING"})


_STALE = text("""
    SELECT id FROM jobs WHERE state = 'RUNNING' AND COALESCE(heartbeat_us, 0) < :before ORDER BY id FOR UPDATE SKIP LOCKED""")


async def revive(
    connection: AsyncConnection, now_us: int, lost_us: int, max_attempts: int, error: Callable[[Job], Json]
) -> list[str]:
    """Queue jobs again whose worker has fallen silent; after `max_attempts` they fail with `error`. Returns their ids."""
    ids = list((await connection.execute(_STALE, {"before": now_us - lost_us})).scalars())
    for job_id in ids:
        job = await get(connection, job_id)
        assert job is not None
        if job.cancel:
            await finish(connection, job, now_us, JobState.CANCELED)
        elif job.attempts >= max_attempts:
            await finish(connection, job, now_us, JobState.FAILED, error=error(job))
        else:
            await give_back(connection, job, now_us, "its worker fell silent; waiting for another", forgiven=False)
    return ids


# -- people --------------------------------------------------------------------------------------------------------------------

_CANCEL = text(f"""
    UPDATE jobs SET cancel = true, revision = revision + 1,
        state = CASE state WHEN 'QUEUED' THEN 'CANCELED' ELSE state END,
        finished_us = CASE state WHEN 'QUEUED' THEN CAST(:now AS bigint) ELSE finished_us END
    WHERE id = :id AND state IN ('QUEUED', 'RUNNING') AND NOT cancel {_RETURNING}""")
_APPLIED = text("""
    UPDATE jobs SET result = result || CAST(:applied AS jsonb), revision = revision + 1 WHERE id = :id AND state = 'DONE'""")


async def cancel(connection: AsyncConnection, job_id: str, now_us: int, actor: str) -> None:
    """Cancel a queued job at once, a running one as soon as its worker notices. No-op if it has ended."""
    row = (await connection.execute(_CANCEL, {"id": job_id, "now": now_us})).one_or_none()
    if row is None:
        return
    job = _job(row)
    action, before = ("job.canceled", "QUEUED") if job.state is JobState.CANCELED else ("job.canceling", "RUNNING")
    await _note(connection, job, action, actor, now_us, {"state": before})


async def mark_applied(connection: AsyncConnection, job_id: str, now_us: int, actor: str, members: Json) -> None:
    """Store that a result was applied: set `members` of the result."""
    await connection.execute(_APPLIED, {"id": job_id, "applied": _text(members)})
    await events.append(
        connection, [Event(now_us, actor, "job.applied", "job", job_id, None, {"kind": str(Kind.PLAN), "state": "DONE"})]
    )


def _text(value: Json | None) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


async def _note(connection: AsyncConnection, job: Job, action: str, actor: str, now_us: int, before: Json | None) -> None:
    shown: Json = {"kind": str(job.kind), "state": str(job.state), "attempts": job.attempts}
    if job.stage:
        shown["stage"] = job.stage
    if job.error:
        shown["detail"] = job.error.get("detail")
    await events.append(connection, [Event(now_us, actor, action, "job", job.id, before, shown)])
