# SPDX-License-Identifier: Apache-2.0
"""Actions by the clock: holds that have run out, bookings that begin and end, and transfers whose reports are overdue."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import assert_never

from broker.core.reason import Reason
from broker.core.transfer import Action
from broker.core.units import format_time
from broker.desk.ground.command import Command
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.hearing import AssumeLost, GiveBack, Hear, LastHeard, Miss, Withdraw, WithdrawUnused
from broker.desk.lifecycle.transitions import End, Start
from broker.desk.service.desk import Desk
from broker.store import hosts, transfers
from broker.store.hosts import Host
from broker.store.session import Database
from broker.store.transfers import Due, Patience, Transfer

ACTOR = "clock"


async def run_timers(database: Database, desk: Desk, now_us: int, patience: Patience) -> int:
    """Carry out everything that is due now; returns the number of transfers. Another process may be faster."""
    async with database.transaction() as connection:
        due = await transfers.find_due(connection, now_us, patience)
        named = any(what in (Due.WITHDRAW, Due.LOST) for _, what in due)
        known = await hosts.get_many(connection) if named else {}
    if not due:
        return 0

    def last_heard(host: str) -> str:
        return describe_due(known.get(host))

    async with at_work(desk):
        results = await asyncio.gather(
            *(desk.submit(_make_command(transfer_id, what, last_heard)) for transfer_id, what in due), return_exceptions=True
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


def describe_due(host: Host | None) -> str:
    """When the agent on a host was last heard."""
    if host is None:
        return "its host is not enrolled any more"
    if host.goodbye_us is not None:
        return f"stopped at {format_time(host.goodbye_us)}"
    return "never heard" if host.last_seen_us is None else f"last heard {format_time(host.last_seen_us)}"


def _make_command(transfer_id: str, what: Due, last_heard: LastHeard) -> Command[Transfer]:
    match what:
        case Due.RUN_OUT:
            return End(transfer_id, ACTOR, action=Action.EXPIRE, reason=Reason("expired", "the hold was not committed in time"))
        case Due.START:
            return Start(transfer_id, ACTOR)
        case Due.FINISH:
            return End(transfer_id, ACTOR, action=Action.FINISH)
        case Due.WITHDRAW:
            return Withdraw(transfer_id, ACTOR, last_heard=last_heard)
        case Due.UNUSED:
            return WithdrawUnused(transfer_id, ACTOR)
        case Due.UNHEARD:
            return Miss(transfer_id, ACTOR)
        case Due.HEARD:
            return Hear(transfer_id, ACTOR)
        case Due.LOST:
            return AssumeLost(transfer_id, ACTOR, last_heard=last_heard)
        case Due.GIVE_BACK:
            return GiveBack(transfer_id, ACTOR)
    assert_never(what)
