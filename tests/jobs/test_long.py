# SPDX-License-Identifier: Apache-2.0
"""Long jobs, run as a worker's task runs them, with real processes for the work: every end that a job may come to."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import psutil
import pytest

from broker.core.network import Link
from broker.core.transfer import Action
from broker.core.units import US_PER_S
from broker.desk.lifecycle.transitions import End
from broker.desk.rebalance.reoptimise import Agreement, Apply, Chosen, read_snapshot
from broker.jobs import plan_job
from broker.jobs.long import look_for_work
from broker.jobs.plan_work import PlanTask, improve_plans
from broker.jobs.watch import OutOfBounds, Watch
from broker.settings import Settings
from broker.store import jobs
from broker.store.jobs import Job, JobLost, JobState, Kind
from broker.store.session import Database
from tests.desk.world import GBIT, World, running
from tests.jobs.requests import PLAN, SLOW
from tests.service import Clock

pytestmark = pytest.mark.real_time


def never() -> bool:
    return False


class Queue:
    """Jobs on the database of a world, and workers that look for them."""

    def __init__(self, w: World) -> None:
        self.w = w
        self._made = 0

    async def add(self, kind: Kind, request: dict[str, Any]) -> str:
        self._made += 1
        job_id = f"job_{self._made}"
        async with self.w.look.transaction() as connection:
            await jobs.add(connection, job_id, kind, request, "tok_me", self.w.clock())
        return job_id

    async def get(self, job_id: str) -> Job:
        async with self.w.look.transaction() as connection:
            job = await jobs.get(connection, job_id)
        assert job is not None
        return job

    async def look(self, stopping: Callable[[], bool] = never, **settings: Any) -> None:
        await look_for_work(self.w.databases[0], self.w.clock, Settings(**settings), stopping)

    @asynccontextmanager
    async def looking(self, **settings: Any) -> AsyncIterator["asyncio.Task[None]"]:
        task = asyncio.create_task(self.look(**settings))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, job_id: str, true: Callable[[Job], bool], patience_s: float = 30) -> Job:
        async with asyncio.timeout(patience_s):
            while not true(job := await self.get(job_id)):
                await asyncio.sleep(0.05)
        return job

    async def actions(self, job_id: str) -> list[str]:
        rows = await self.w.rows("SELECT action FROM events WHERE subject = :id ORDER BY seq", id=job_id)
        return [row.action.removeprefix("job.") for row in rows]


def children() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            found += [process] if "broker.jobs.work" in process.cmdline() else []
    return found


@pytest.fixture
async def queue(database_url: str, clock: Clock) -> AsyncIterator[Queue]:
    async with running(database_url, clock) as w:
        yield Queue(w)
    assert not children()


async def gap(w: World) -> list[str]:
    """Two transfers that could both come 16 s earlier."""
    await w.links(Link("L1", "A", "B", GBIT))
    begin = w.clock.now_us + 200 * US_PER_S
    booked = await w.book(*(w.ask(2 * 10**9, not_before_us=begin) for _ in range(3)))
    await w.do(End(booked[0].id, "me", action=Action.CANCEL))
    return [t.id for t in booked[1:]]


# -- good ends ---------------------------------------------------------------------------------------------------------------------------


async def test_a_plan_is_applied(queue: Queue) -> None:
    ids = await gap(queue.w)
    job_id = await queue.add(Kind.PLAN, PLAN)
    await queue.look()
    job = await queue.get(job_id)
    assert job.state is JobState.DONE and job.progress == 1 and job.error is None, job
    assert job.result is not None and job.result["applied"] and job.result["rounds"] == 1
    assert {change["transfer_id"] for change in job.result["changes"]} == set(ids)
    assert job.result["solver"]["fallback"] is None
    assert await queue.actions(job_id) == ["queued", "started", "done"]
    replanned = await queue.w.rows("SELECT actor, after->>'finish_us' AS finish FROM events WHERE action = 'transfer.replanned'")
    assert [row.actor for row in replanned] == ["tok_me"] * 2
    await queue.w.check()


async def test_a_plan_that_is_only_asked_for_changes_nothing(queue: Queue) -> None:
    await gap(queue.w)
    job_id = await queue.add(Kind.PLAN, PLAN | {"apply": False})
    before = await queue.w.everything()
    await queue.look()
    job = await queue.get(job_id)
    assert job.result is not None and not job.result["applied"] and job.result["changes_total"] == 2
    assert await queue.w.everything() == before


async def test_others_who_are_faster_make_it_plan_anew(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    await gap(queue.w)
    left = 2
    real = plan_job._propose

    async def slow(*given: Any) -> Any:
        nonlocal left
        proposed = await real(*given)
        if left:
            left -= 1
            await queue.w.admit(queue.w.ask(1000, not_before_us=queue.w.clock.now_us + 400 * US_PER_S))
        return proposed

    monkeypatch.setattr(plan_job, "_propose", slow)
    job_id = await queue.add(Kind.PLAN, PLAN)
    await queue.look()
    job = await queue.get(job_id)
    assert job.result is not None and job.result["rounds"] == 3 and job.result["applied"], job
    await queue.w.check()

    left = 100
    begin = queue.w.clock.now_us + 900 * US_PER_S
    first, _ = await queue.w.book(*(queue.w.ask(10**9, not_before_us=begin) for _ in range(2)))
    await queue.w.do(End(first.id, "me", action=Action.CANCEL))
    job_id = await queue.add(Kind.PLAN, PLAN)
    await queue.look()
    lost = await queue.get(job_id)
    assert lost.state is JobState.FAILED and lost.error is not None and lost.error["type"].endswith("/conflict")
    assert lost.error["changed"]["ids"] == ["L1"] and "6 times" in lost.error["detail"], lost.error
    await queue.w.check()


# -- early ends --------------------------------------------------------------------------------------------------------------------------


async def test_cancelling_what_runs_takes_a_moment(queue: Queue) -> None:
    job_id = await queue.add(Kind.SIMULATION, SLOW)
    async with queue.looking() as looking:
        await queue.until(job_id, lambda job: job.progress > 0 and bool(children()))
        began = time.monotonic()
        async with queue.w.look.transaction() as connection:
            await jobs.cancel(connection, job_id, queue.w.clock(), "me")
        await queue.until(job_id, lambda job: job.state is JobState.CANCELED, 3)
        await looking
        assert time.monotonic() - began < 2.5 and not children()
    assert await queue.actions(job_id) == ["queued", "started", "canceling", "canceled"]


async def test_cancelling_what_waits_is_done_at_once(queue: Queue) -> None:
    job_id = await queue.add(Kind.SIMULATION, SLOW)
    async with queue.w.look.transaction() as connection:
        await jobs.cancel(connection, job_id, queue.w.clock(), "me")
    assert (await queue.get(job_id)).state is JobState.CANCELED
    await queue.look()
    assert await queue.actions(job_id) == ["queued", "canceled"]


async def test_a_worker_that_stops_gives_its_job_back(queue: Queue) -> None:
    job_id = await queue.add(Kind.SIMULATION, SLOW)
    told = False
    async with queue.looking(stopping=lambda: told) as looking:
        await queue.until(job_id, lambda job: job.progress > 0)
        told = True
        await asyncio.wait_for(looking, 3)
    job = await queue.get(job_id)
    assert (job.state, job.attempts, job.progress, job.cancel) == (JobState.QUEUED, 0, 0, False)
    assert job.stage is not None and "stopped" in job.stage


async def test_a_process_that_dies_is_tried_three_times(queue: Queue) -> None:
    job_id = await queue.add(Kind.SIMULATION, SLOW)
    async with queue.looking() as looking:
        for attempt in (1, 2, 3):
            await queue.until(job_id, lambda job, n=attempt: job.attempts == n and job.progress > 0)  # type: ignore[misc]
            (process,) = children()
            os.kill(process.pid, signal.SIGKILL)
        await asyncio.wait_for(looking, 20)
    job = await queue.get(job_id)
    assert job.state is JobState.FAILED and job.error is not None
    assert job.error["type"].endswith("/unavailable") and "3 times" in job.error["detail"] and "SIGKILL" in job.error["detail"]


async def test_a_job_has_bounds(queue: Queue) -> None:
    job_id = await queue.add(Kind.SIMULATION, SLOW)
    await queue.look(job_time_limit_s=1)
    job = await queue.get(job_id)
    assert job.state is JobState.FAILED and job.error is not None
    assert job.error["type"].endswith("/too-large") and "BWB_JOB_TIME_LIMIT_S" in job.error["detail"]
    watch = Watch(queue.w.look, queue.w.clock, never, 60, memory_mb=1)
    watch.pid = os.getpid()
    with pytest.raises(OutOfBounds, match="BWB_JOB_MEMORY_MB"):
        await watch.over(job, asyncio.sleep(5))


async def test_a_fault_of_ours_is_said_and_nothing_changes(queue: Queue) -> None:
    await gap(queue.w)
    before = await queue.w.everything()
    job_id = await queue.add(Kind.PLAN, {"no": "plan"})
    await queue.look()
    job = await queue.get(job_id)
    assert job.state is JobState.FAILED and job.error is not None and job.error["type"] == "about:blank"
    job_id = await queue.add(Kind.PLAN, PLAN)
    await queue.look(plan_limit=1)
    job = await queue.get(job_id)
    assert job.error is not None and job.error["type"].endswith("/too-large") and job.error["movable"] == 2
    assert await queue.w.everything() == before


# -- who holds a job ---------------------------------------------------------------------------------------------------------------------


async def test_silent_workers_lose_their_jobs(queue: Queue) -> None:
    job_id, canceled = await queue.add(Kind.SIMULATION, SLOW), await queue.add(Kind.SIMULATION, SLOW)
    async with queue.w.look.transaction() as connection:
        held = await jobs.claim(connection, queue.w.clock(), 2)
        other = await jobs.claim(connection, queue.w.clock(), 2)
        await jobs.cancel(connection, canceled, queue.w.clock(), "me")
    assert held is not None and other is not None and (held.id, other.id) == (job_id, canceled)
    for attempt in (2, 3):
        queue.w.clock.advance(14)
        await queue.look(job_slots=0)
        assert (await queue.get(job_id)).state is JobState.RUNNING
        queue.w.clock.advance(2)
        await queue.look(job_slots=0)
        assert (await queue.get(job_id)).state is JobState.QUEUED and (await queue.get(canceled)).state is JobState.CANCELED
        async with queue.w.look.transaction() as connection:
            again = await jobs.claim(connection, queue.w.clock(), 1)
        assert again is not None and again.attempts == attempt
    # The first worker comes back to life.
    with pytest.raises(JobLost):
        async with queue.w.look.transaction() as connection:
            await jobs.beat(connection, held, queue.w.clock(), 0.5, "still here")
    with pytest.raises(JobLost):
        async with queue.w.look.transaction() as connection:
            await jobs.finish(connection, held, queue.w.clock(), JobState.DONE, result={})
    queue.w.clock.advance(16)
    await queue.look(job_slots=0)
    job = await queue.get(job_id)
    assert job.state is JobState.FAILED and job.error is not None and "fell silent" in job.error["detail"]


async def test_a_worker_that_was_given_up_books_nothing(queue: Queue) -> None:
    """It has the best of plans, and no right to it any more: neither the bookings nor the result are written."""
    w = queue.w
    await gap(w)
    await queue.add(Kind.PLAN, PLAN)
    async with w.look.transaction() as connection:
        stale = await jobs.claim(connection, w.clock(), 1)
    async with w.look.transaction() as connection:
        await jobs.revive(connection, w.clock() + 60 * US_PER_S, US_PER_S, 3, lambda _: {})
        assert await jobs.claim(connection, w.clock(), 1) is not None
    assert stale is not None
    async with w.look.transaction() as connection:
        snapshot = await read_snapshot(connection, w.clock(), w.clock() + 10 * US_PER_S, Chosen(), 10)
    proposal = improve_plans(PlanTask(snapshot, "completion", 5), lambda *_: None)
    assert proposal.changes
    before = await w.everything()

    async def also(connection: Any) -> None:
        await jobs.finish(connection, stale, w.clock(), JobState.DONE, result={})

    with pytest.raises(JobLost):
        await w.do(Apply(Agreement.of(proposal, proposal.cut_us), "me", also))
    assert await w.everything() == before
    await w.check()


@pytest.mark.parametrize("slots", [1, 3])
async def test_no_more_than_the_slots_run_whoever_claims(queue: Queue, slots: int, database_url: str) -> None:
    for _ in range(8):
        await queue.add(Kind.SIMULATION, SLOW)
    pool = Database(database_url, pool_size=8)

    async def claim() -> Job | None:
        async with pool.transaction() as connection:
            return await jobs.claim(connection, queue.w.clock(), slots)

    claimed = [job for job in await asyncio.gather(*(claim() for _ in range(8))) if job is not None]
    await pool.close()
    assert [job.id for job in sorted(claimed, key=lambda job: job.id)] == [f"job_{n + 1}" for n in range(slots)]


async def test_the_database_may_be_away_for_a_while(queue: Queue) -> None:
    await gap(queue.w)
    job_id = await queue.add(Kind.PLAN, PLAN)
    looking = asyncio.create_task(queue.look())
    await queue.until(job_id, lambda job: job.state is JobState.RUNNING)
    await queue.w.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    await asyncio.gather(looking, return_exceptions=True)
    await queue.look()
    assert (await queue.get(job_id)).state is JobState.DONE
    await queue.w.check()


async def test_the_process_ends_with_its_worker() -> None:
    """kill -9 of the worker: the process that works for it goes, too, even while it computes."""
    script = (
        "import asyncio, os, sys\n"
        "from broker.jobs.child import Child\n"
        "async def main():\n"
        "    async with Child(4096) as child:\n"
        "        print(child.pid, flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    await asyncio.sleep(0.5)
    process.kill()
    await process.wait()
    async with asyncio.timeout(5):
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.05)
