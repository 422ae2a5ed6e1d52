# SPDX-License-Identifier: Apache-2.0
"""Transfers whose time has come: holds that ran out, agents that never started, bookings that begin and end by the clock."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from broker.core.transfer import Action
from broker.core.units import US_PER_S
from broker.desk.command import Command
from broker.desk.desk import Desk
from broker.desk.problems import Problem
from broker.desk.release import End, Start
from broker.desk.rest import waiting
from broker.store import transfers
from broker.store.session import Database
from broker.store.transfers import Transfer

ACTOR = "clock"


async def settle(database: Database, desk: Desk, now_us: int, grace_us: int, lost_us: int = 3600 * US_PER_S) -> int:
    """Carry out everything that is due now; returns how many transfers it was. Somebody else being faster is no fault."""
    async with database.transaction() as connection:
        due = await transfers.due(connection, now_us, grace_us, lost_us)
    if not due:
        return 0
    async with at_work(desk):
        results = await asyncio.gather(
            *(desk.submit(_command(transfer_id, what)) for transfer_id, what in due), return_exceptions=True
        )
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Problem):
            raise result
    return len(due)


@contextlib.asynccontextmanager
async def at_work(desk: Desk) -> AsyncIterator[None]:
    """Run a desk that has no task of its own."""
    runner = asyncio.create_task(desk.run())
    try:
        yield
    finally:
        runner.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await runner


def _command(transfer_id: str, what: str) -> Command[Transfer]:
    if what == "start":
        return Start(transfer_id, ACTOR)
    if what == "finish":
        return End(transfer_id, ACTOR, action=Action.FINISH)
    if what == "lost":
        reason = waiting("agents_lost", "its agents fell silent before it was finished")
        return End(transfer_id, ACTOR, action=Action.FAIL, reason=reason)
    reason = waiting("expired", "not committed in time, or its agents never started")
    return End(transfer_id, ACTOR, action=Action.EXPIRE, reason=reason)
