# SPDX-License-Identifier: Apache-2.0
"""A real Celery worker with beat on a real Redis."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis as redis_client

from broker.core.network import Link
from broker.core.transfer import Action
from broker.core.units import US_PER_S
from broker.desk.admission.admit import Admit
from broker.desk.ground.policy import Policy
from broker.desk.lifecycle.transitions import End
from broker.embedded.redis import _binary
from broker.jobs.nudge import Nudge
from broker.main import wall_clock
from broker.store import audit, jobs
from broker.store.jobs import Job, JobState, Kind
from tests.desk.world import GBIT, World
from tests.jobs.requests import PLAN, SLOW
from tests.service import SECRET, Clock

pytestmark = pytest.mark.real_time


class Redis:
    """Start and kill at will, on the same socket."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._socket = directory / "redis.sock"
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self._socket}"

    def start(self) -> None:
        command = [_binary(), "--port", "0", "--unixsocket", str(self._socket), "--save", "", "--dir", str(self._directory)]
        self._server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while not self._socket.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def kill(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._socket.unlink(missing_ok=True)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path)
    yield server
    server.kill()


class WallClock(Clock):
    """The time of the worker process."""

    def __call__(self) -> int:
        self.now_us = wall_clock()
        return self.now_us


@pytest.fixture
async def live(database_url: str) -> AsyncIterator[World]:
    world = World(database_url, WallClock())
    await world.start()
    yield world
    await world.stop()


@contextmanager
def worker(database_url: str, redis_url: str, directory: Path, **settings: str) -> Iterator[psutil.Process]:
    """`bwb worker --beat`; whatever it leaves is ended with it, and would be found by `left_of`."""
    environment = os.environ | {"BWB_DATABASE_URL": database_url, "BWB_REDIS_URL": redis_url, "BWB_SECRET_KEY": SECRET} | settings
    command = [sys.executable, "-m", "broker.cli.app", "worker", "--beat", "--schedule", str(directory / "beat")]
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        yield psutil.Process(process.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)


def left_of(group: int) -> list[psutil.Process]:
    """Processes of the group that still run."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; nothing once it is dead, which may be just now."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # zombies, too
        return []


async def until(true: Callable[[], Awaitable[Any]], patience_s: float = 60) -> Any:
    async with asyncio.timeout(patience_s):
        while not (found := await true()):
            await asyncio.sleep(0.1)
    return found


async def queue(world: World, job_id: str, kind: Kind, request: dict[str, Any]) -> None:
    async with world.look.transaction() as connection:
        await jobs.add(connection, job_id, kind, request, "tok_me", wall_clock())


async def get(world: World, job_id: str) -> Job:
    async with world.look.transaction() as connection:
        job = await jobs.get(connection, job_id)
    assert job is not None
    return job


@pytest.mark.slow
async def test_a_worker_with_beat_settles_what_is_due_while_it_computes(
    live: World, database_url: str, redis: Redis, tmp_path: Path
) -> None:
    """Holds expire in time while a job keeps a core busy; cancelled, its process is gone; Redis may come late and go away."""
    await live.links(Link("L1", "A", "B", GBIT))
    await queue(live, "sim_1", Kind.SIMULATION, SLOW)
    with worker(database_url, redis.url, tmp_path) as process:
        await asyncio.sleep(1)
        assert (await get(live, "sim_1")).state is JobState.QUEUED
        redis.start()

        async def computes() -> bool:
            job = await get(live, "sim_1")
            return job.state is JobState.RUNNING and job.progress > 0

        await until(computes)
        for n in range(8):
            hold = Policy(hold_us=(n + 1) * US_PER_S)
            await live.do(Admit([live.ask(hold=True, not_before_us=wall_clock() + 3600 * US_PER_S)], "me", hold))

        async def expired() -> Any:
            found = await live.rows("SELECT at_us, actor, subject FROM events WHERE action = 'transfer.expired'")
            return found if len(found) == 8 else None

        events = await until(expired)
        holds = await live.rows(
            "SELECT subject, (after->>'hold_until_us')::bigint AS until FROM events WHERE action = 'transfer.admitted'"
        )
        due = {row.subject: row.until for row in holds}
        late = [(event.at_us - due[event.subject]) / US_PER_S for event in events]
        print("expired late by", [f"{seconds:.2f} s" for seconds in late])
        assert {event.actor for event in events} == {"clock"} and max(late) < 4
        assert await computes(), "the job was over before anything was shown"
        (work,) = [p for p in process.children(recursive=True) if "broker.jobs.work" in words_of(p)]
        async with live.look.transaction() as connection:
            await jobs.cancel(connection, "sim_1", wall_clock(), "me")

        async def canceled() -> bool:
            return (await get(live, "sim_1")).state is JobState.CANCELED and not work.is_running()

        await until(canceled, 5)
        redis.kill()
        await queue(live, "sim_2", Kind.SIMULATION, SLOW | {"requests": 10})
        await asyncio.sleep(1)
        redis.start()

        async def done() -> bool:
            return (await get(live, "sim_2")).state is JobState.DONE

        await until(done)


@pytest.mark.slow
async def test_a_worker_that_is_killed_in_the_middle(live: World, database_url: str, redis: Redis, tmp_path: Path) -> None:
    """kill -9: nothing is left of it, the job runs again and is applied once. TERM: the job is queued again at once."""
    redis.start()
    await live.links(Link("L1", "A", "B", GBIT))
    begin = wall_clock() + 600 * US_PER_S
    first, *others = await live.book(*(live.ask(2 * 10**9, not_before_us=begin) for _ in range(3)))
    await live.do(End(first.id, "me", action=Action.CANCEL))
    before = await live.everything()
    await queue(live, "sim_1", Kind.SIMULATION, SLOW)
    quickly = {"BWB_JOB_LOST_S": "3"}

    async def computes() -> bool:
        job = await get(live, "sim_1")
        return job.state is JobState.RUNNING and job.progress > 0

    with worker(database_url, redis.url, tmp_path, **quickly) as process:
        await until(computes)
        process.kill()  # only the main process: what it started must end by itself

        async def gone() -> bool:
            return not [p for p in left_of(process.pid) if "broker.jobs.work" in words_of(p)]

        await until(gone, 5)
    job = await get(live, "sim_1")
    with worker(database_url, redis.url, tmp_path, **quickly) as process:

        async def again() -> bool:
            job = await get(live, "sim_1")
            return job.started_us is not None and job.started_us > before_us and await computes()

        before_us = job.started_us or 0
        await until(again)
        process.terminate()
        await until(lambda: _is(live, "sim_1", JobState.QUEUED), 8)

        async def ended() -> bool:
            return not left_of(process.pid)

        await until(ended, 15)
        assert await live.everything() == before
    async with live.look.transaction() as connection:
        await jobs.cancel(connection, "sim_1", wall_clock(), "me")
    await queue(live, "plan_1", Kind.PLAN, PLAN)
    with worker(database_url, redis.url, tmp_path, **quickly) as process:

        async def runs() -> bool:
            return (await get(live, "plan_1")).state is not JobState.QUEUED

        await until(runs)
        os.killpg(process.pid, signal.SIGKILL)
    with worker(database_url, redis.url, tmp_path, **quickly):
        await until(lambda: _is(live, "plan_1", JobState.DONE))
    replanned = await live.rows("SELECT subject FROM events WHERE action = 'transfer.replanned'")
    assert sorted(row.subject for row in replanned) == sorted(transfer.id for transfer in others)
    assert (await live.rows("SELECT count(*) AS n FROM events WHERE action = 'job.done' AND subject = 'plan_1'"))[0].n == 1
    async with live.look.transaction() as connection:
        assert not any((await audit.find_violations(connection, wall_clock())).values())


async def _is(world: World, job_id: str, state: JobState) -> bool:
    return (await get(world, job_id)).state is state


def test_a_nudge_is_one_message_and_never_more_than_a_moment(redis: Redis) -> None:
    redis.start()
    nudge = Nudge(redis.url)
    for _ in range(2):
        began = time.monotonic()
        nudge()
        assert time.monotonic() - began < 0.1
    client = redis_client.Redis.from_url(redis.url)
    deadline = time.monotonic() + 20
    while not client.llen("celery"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (message,) = client.lrange("celery", 0, -1)
    assert b'"task": "broker.jobs.long.look"' in message
    client.close()
