# SPDX-License-Identifier: Apache-2.0
"""Long jobs: claim a waiting job, run it in a process of its own, and write its result."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from broker.core.units import US_PER_S
from broker.desk.ground.problems import Problem
from broker.jobs import periodic
from broker.jobs.celery_app import app
from broker.jobs.child import ChildDied, WorkFailed
from broker.jobs.plan_job import run_plan
from broker.jobs.run import Run
from broker.jobs.simulation_job import run_simulation
from broker.jobs.stopping import is_stopping
from broker.jobs.transport import LOOK
from broker.jobs.watch import Canceled, OutOfBounds, Stopping, Watch
from broker.settings import Settings, settings
from broker.store import jobs
from broker.store.jobs import Job, JobLost, JobState, Json, Kind
from broker.store.session import Database, DatabaseAway

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
_PATIENCE_S = 1.0

_WORK = {Kind.PLAN: run_plan, Kind.SIMULATION: run_simulation}


@app.task(name=LOOK)
def look() -> None:
    """Do what waits, one job after the other, as long as there is a slot for it."""
    periodic._process().run(lambda process: look_for_work(process.database, periodic._clock, settings(), is_stopping))


async def look_for_work(database: Database, clock: Callable[[], int], chosen: Settings, stopping: Callable[[], bool]) -> None:
    """Give up on silent workers, then run jobs until none waits. Raises DatabaseAway where not even that can be seen."""
    while not stopping():
        async with database.transaction() as connection:
            await jobs.revive(connection, clock(), chosen.job_lost_s * US_PER_S, MAX_ATTEMPTS, _silent)
        async with database.transaction() as connection:
            job = await jobs.claim(connection, clock(), chosen.job_slots)
        if job is None:
            return
        log.info("job %s (%s), attempt %d", job.id, job.kind, job.attempts)
        await _carry_out(job, database, clock, chosen, stopping)


async def _carry_out(
    job: Job, database: Database, clock: Callable[[], int], chosen: Settings, stopping: Callable[[], bool]
) -> None:
    """Run it to one of its ends. Whatever happens, the row says so; where the database is away, as soon as it is back."""
    watch = Watch(database, clock, stopping, chosen.job_time_limit_s, chosen.job_memory_mb)
    try:
        await watch.over(job, _WORK[job.kind](Run(job, database, clock, chosen, watch)))
        return
    except (Canceled, JobLost):
        # Lost because it was cancelled in the last moment: then it is still ours and ends so. Lost to another: then this changes nothing.
        end = partial(jobs.finish, state=JobState.CANCELED)
    except Stopping:
        end = partial(jobs.give_back, why="its worker was stopped; waiting for another", forgiven=True)
    except DatabaseAway:
        end = partial(jobs.give_back, why="the database was away; waiting", forgiven=True)
    except ChildDied as died:
        log.warning("job %s: %s", job.id, died)
        if job.attempts < MAX_ATTEMPTS:
            end = partial(jobs.give_back, why=f"{died}; trying again", forgiven=False)
        else:
            end = partial(jobs.finish, state=JobState.FAILED, error=_gave_up(job, str(died)))
    except Exception as failure:
        end = partial(jobs.finish, state=JobState.FAILED, error=_error(job, failure))
    while True:
        with suppress(DatabaseAway):
            with suppress(JobLost):
                async with database.transaction() as connection:
                    await end(connection, job, clock())
            return
        if stopping():
            return  # its heart has stopped, which somebody will see
        await asyncio.sleep(_PATIENCE_S)


def _error(job: Job, failure: Exception) -> Json:
    match failure:
        case Problem():
            return failure.document()
        case OutOfBounds():
            return Problem("too-large", f"{failure}; make it smaller").document()
        case WorkFailed():
            pass
        case _:
            log.exception("job %s failed", job.id, exc_info=failure)
    detail = f"a fault of the broker ({failure or type(failure).__name__}); its worker's log has the details, nothing was changed"
    return {"type": "about:blank", "title": "Internal error", "detail": detail[:1000]}


def _silent(job: Job) -> Json:
    return _gave_up(job, "its worker fell silent")


def _gave_up(job: Job, last: str) -> Json:
    return Problem(
        "unavailable",
        f"it ended before it was done {job.attempts} times, the last time because {last}; nothing was changed. "
        "The workers' logs say more; a smaller job may get through",
    ).document()
