# SPDX-License-Identifier: Apache-2.0
"""Periodic tasks. Any number of workers may run these at once: the desk's transactions decide which one acts."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from functools import cache

from broker.core.units import US_PER_S
from broker.desk.ground.policy import policy_of
from broker.desk.rebalance.pull_forward import Pull, Puller
from broker.desk.service.desk import Desk
from broker.desk.service.timers import at_work, run_timers
from broker.jobs.celery_app import app
from broker.settings import settings
from broker.store import audit, retention
from broker.store.session import Database, DatabaseAway
from broker.store.transfers import Patience

log = logging.getLogger(__name__)


def _clock() -> int:
    return time.time_ns() // 1000


class _Process:
    """What a worker process keeps between tasks: an event loop, connections, and a desk whose calendars stay warm."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.database = Database(settings().database_url, pool_size=2)
        self.puller = Puller(self.database, _clock, Pull(settings().pull_forward), settings().pull_candidates)
        self.policy = policy_of(settings())
        self.desk = Desk(self.database, _clock, self.policy, freed=self.puller.freed)

    def run(self, work: Callable[["_Process"], Coroutine[None, None, None]]) -> None:
        try:
            self.runner.run(work(self))
        except DatabaseAway as away:
            log.warning("the database is away (%s); next round", away)


@cache
def _process() -> _Process:
    # Made on first use, which is after the worker has forked.
    return _Process()


@app.task
def tick() -> None:
    """Expire holds, say which transfers are unheard, move bookings without an agent through their states."""

    async def work(process: _Process) -> None:
        waits = settings()
        patience = Patience(waits.start_grace_s * US_PER_S, waits.agent_lost_s * US_PER_S, waits.lost_after_s * US_PER_S)
        await run_timers(process.database, process.desk, _clock(), patience)
        # Expired transfers leave room for others. The API's processes pull forward what they free themselves.
        async with at_work(process.desk):
            await process.puller.pull_freed(process.desk, process.policy)

    _process().run(work)


@app.task
def audit_invariants() -> None:
    """`bwb audit`, kept for the metrics."""

    async def work(process: _Process) -> None:
        begin = _clock()
        async with process.database.transaction() as connection:
            found = await audit.find_violations(connection, begin)
        async with process.database.transaction() as connection:
            await audit.remember(connection, begin, _clock() - begin, found)
        for check, rows in found.items():
            if rows:
                log.error("audit: %s: %s", check, rows[:5])

    _process().run(work)


@app.task
def prune() -> None:
    """Forget what is older than the retention."""

    async def work(process: _Process) -> None:
        async with process.database.transaction() as connection:
            await retention.prune(connection, _clock(), settings().retention_days * 86_400 * US_PER_S)

    _process().run(work)
