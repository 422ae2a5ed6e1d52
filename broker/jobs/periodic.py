# SPDX-License-Identifier: Apache-2.0
"""What happens by the clock. Any number of workers may run these at once: the desk's transactions decide who was first."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from broker.core.units import US_PER_S
from broker.desk.desk import Desk
from broker.desk.due import settle
from broker.jobs.celery_app import app
from broker.settings import settings
from broker.store import audit, retention
from broker.store.session import Database, DatabaseAway

log = logging.getLogger(__name__)


def _clock() -> int:
    return time.time_ns() // 1000


def _run(work: Callable[[Database], Awaitable[None]]) -> None:
    """Each task has an event loop and a connection of its own: seconds apart, that costs nothing and nothing can go stale."""

    async def whole() -> None:
        database = Database(settings().database_url, pool_size=2)
        try:
            await work(database)
        except DatabaseAway as away:
            log.warning("the database is away (%s); next round", away)
        finally:
            await database.close()

    asyncio.run(whole())


@app.task
def settle_due() -> None:
    """Expire holds, give up on transfers whose agents never started, move bookings without an agent through their states."""

    async def work(database: Database) -> None:
        desk = Desk(database, _clock)
        await settle(database, desk, _clock(), settings().start_grace_s * US_PER_S)

    _run(work)


@app.task
def audit_invariants() -> None:
    """`bwb audit`, kept for the metrics."""

    async def work(database: Database) -> None:
        begin = _clock()
        async with database.transaction() as connection:
            found = await audit.violations(connection, begin)
        async with database.transaction() as connection:
            await audit.remember(connection, begin, _clock() - begin, found)
        for check, rows in found.items():
            if rows:
                log.error("audit: %s: %s", check, rows[:5])

    _run(work)


@app.task
def prune() -> None:
    """Forget what is older than the retention."""

    async def work(database: Database) -> None:
        async with database.transaction() as connection:
            await retention.prune(connection, _clock(), settings().retention_days * 86_400 * US_PER_S)

    _run(work)
