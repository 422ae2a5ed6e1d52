# SPDX-License-Identifier: Apache-2.0
"""What a job works with, and the steps common to all kinds."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from broker.jobs.child import Child
from broker.jobs.watch import Progress, Watch
from broker.settings import Settings
from broker.store import jobs
from broker.store.jobs import Job, JobState, Json
from broker.store.session import Database, DatabaseAway

_PATIENCE_S = 1.0


@dataclass(frozen=True, slots=True)
class Run:
    """One job that this worker has claimed, with what it needs."""

    job: Job
    database: Database
    clock: Callable[[], int]
    settings: Settings
    watch: Watch

    @property
    def progress(self) -> Progress:
        """To be told how far the job is."""
        return self.watch.progress

    @asynccontextmanager
    async def child(self) -> AsyncIterator[Child]:
        """A process for the work, watched and bounded."""
        async with Child(self.settings.job_memory_mb) as child:
            self.watch.pid = child.pid
            try:
                yield child
            finally:
                self.watch.pid = None

    async def done(self, result: Json) -> None:
        """Write it down, as soon as the database is there. Raises JobLost."""
        while True:
            with suppress(DatabaseAway):
                async with self.database.transaction() as connection:
                    await jobs.finish(connection, self.job, self.clock(), JobState.DONE, result=result)
                return
            await asyncio.sleep(_PATIENCE_S)
