# SPDX-License-Identifier: Apache-2.0
"""While a job runs: its heartbeat, its progress, and everything that ends it early."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import psutil

from broker.store import jobs
from broker.store.jobs import Job
from broker.store.session import Database, DatabaseAway

_BEAT_S = 0.5  # a cancelled job stops within this and the time to kill it


class Canceled(Exception):
    """Somebody asked the job to stop."""


class Stopping(Exception):
    """The worker stops; the job is for another."""


class OutOfBounds(Exception):
    """It takes more time or memory than a job may."""


class Progress:
    """What the work says of itself; the watch writes it down."""

    def __init__(self) -> None:
        self.share = 0.0
        self.stage = "starting"

    def __call__(self, share: float, stage: str) -> None:
        """`share`: how much is done, 0 to 1; `stage`: what is being done."""
        self.share, self.stage = share, stage


class Watch:
    """Watches a job's child: writes its progress, and ends it when it is cancelled, takes too long, or too much memory."""

    def __init__(
        self, database: Database, clock: Callable[[], int], stopping: Callable[[], bool], time_limit_s: float, memory_mb: int
    ) -> None:
        self._database = database
        self._clock = clock
        self._stopping = stopping
        self._time_limit_s = time_limit_s
        self._memory_mb = memory_mb
        self.progress = Progress()
        self.pid: int | None = None  # of the process that does the work, while there is one

    async def over(self, job: Job, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` to its end, or raise Canceled, Stopping, OutOfBounds or JobLost and cancel it."""
        working, beating = asyncio.create_task(work), asyncio.create_task(self._beat(job))
        try:
            await asyncio.wait((working, beating), return_when=asyncio.FIRST_COMPLETED)
            if beating.done() and not working.done():
                await beating
            await working
        finally:
            for task in (working, beating):
                task.cancel()
            await asyncio.gather(working, beating, return_exceptions=True)

    async def _beat(self, job: Job) -> None:
        began = time.monotonic()
        while True:
            if self._stopping():
                raise Stopping
            if time.monotonic() - began > self._time_limit_s:
                raise OutOfBounds(f"it takes longer than the {self._time_limit_s:.0f} s that a job may (BWB_JOB_TIME_LIMIT_S)")
            if self._resident_mb() > self._memory_mb:
                raise OutOfBounds(f"it needs more than the {self._memory_mb} MB that a job may use (BWB_JOB_MEMORY_MB)")
            try:
                async with self._database.transaction() as connection:
                    if await jobs.beat(connection, job, self._clock(), self.progress.share, self.progress.stage):
                        raise Canceled
            except DatabaseAway:
                pass  # the work goes on; if another worker has taken the job meanwhile, the database will say so when it is back
            await asyncio.sleep(_BEAT_S)

    def _resident_mb(self) -> float:
        if self.pid is None:
            return 0.0
        try:
            return float(psutil.Process(self.pid).memory_info().rss) / 2**20
        except psutil.Error:
            return 0.0
