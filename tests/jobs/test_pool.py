# SPDX-License-Identifier: Apache-2.0
"""The processes that plan beside the desk: they say what the desk itself would say, and are stopped when over time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from broker.desk.admission.admit import Admit
from broker.desk.admission.quote import Quote
from broker.desk.ground.batch import Batch, LockedCalendars, NotLocked
from broker.desk.ground.command import Unkeyed
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.service.rehearsal import InProcess, Rehearsal, rehearse
from broker.jobs.pool import Pool
from broker.planners.signature import never
from broker.store.bookings import LinkRecord
from tests.jobs.rehearsals import LINKS, POLICY, ask, busy_replica
from tests.service import START_US


def _rehearsal(command: Any, replica: Replica) -> Rehearsal:
    return Rehearsal(command, replica, dict.fromkeys(replica.calendars, 0), {}, START_US, POLICY)


@asynccontextmanager
async def _pool(budget_s: float = 20.0) -> AsyncIterator[Pool]:
    pool = Pool(1, budget_s, 1024)
    task = asyncio.create_task(pool.run())
    try:
        yield pool
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _ask_pool(pool: Pool, rehearsal: Rehearsal, caller: str = "me") -> Any:
    async with pool.turn(caller) as there:
        return await there(rehearsal)


@dataclass(slots=True)
class Endless(Unkeyed):
    """As a solver that minds no limit."""

    owner: str = "me"

    def decide(self, batch: Batch) -> None:
        while True:
            pass


@dataclass(slots=True)
class Greedy(Unkeyed):
    owner: str = "me"

    def decide(self, batch: Batch) -> int:
        return len(bytearray(2 * 2**30))


@pytest.mark.real_time
async def test_plans_are_the_same_wherever_they_are_made() -> None:
    random = Random(13)
    async with _pool() as pool:
        for number in range(3):
            replica = busy_replica(random)
            commands = [
                Quote(ask(random, number), ["vbls", "fbls", "alap", "optimal"], POLICY),
                Admit([ask(random, n, planner="optimal").changed(volume_bytes=10**7 * (n + 1)) for n in range(3)], "me", POLICY),
            ]
            for command in commands:
                rehearsal = _rehearsal(command, replica)
                async with InProcess().turn("me") as here:
                    expected = await here(rehearsal)
                assert await _ask_pool(pool, rehearsal) == expected
        # Of a link that is not locked nothing may be planned on there either, and the process is as good as before.
        replica.calendars = LockedCalendars({"L1": replica.calendars["L1"]})
        with pytest.raises(NotLocked):
            await _ask_pool(pool, _rehearsal(commands[0], replica))
        # What changes in the replica arrives.
        other = busy_replica(random)
        other.adopt(2, {link.id: LinkRecord(replace(link, capacity_bps=10**6), None, 0, 2, ()) for link in LINKS})
        other.calendars = LockedCalendars(other.calendars)
        rehearsal = _rehearsal(commands[0], other)
        assert (await _ask_pool(pool, rehearsal)).outcome == rehearse(rehearsal, never).outcome


@pytest.mark.real_time
async def test_what_takes_too_long_or_too_much_is_stopped_and_the_next_gets_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.jobs.pool._PATIENCE", 0.1)  # budgets: for others, not for a process that is yet to start
    replica = busy_replica(Random(1))
    quote = _rehearsal(Quote(ask(Random(1), 1), ["vbls"], POLICY), replica)
    async with _pool(1.0) as pool:
        first = await _ask_pool(pool, quote)
        for command in (Endless(), Greedy()):
            with pytest.raises(Problem) as stopped:
                await _ask_pool(pool, _rehearsal(command, replica))
            assert stopped.value.code == "planning-budget"
            assert stopped.value.more["retry_after_s"] and "/v1/plans" in stopped.value.detail
            assert await _ask_pool(pool, quote) == first


async def test_a_spent_budget_is_an_answer_for_each_planner() -> None:
    rehearsal = _rehearsal(Quote(ask(Random(2), 1), ["vbls", "optimal"], POLICY), busy_replica(Random(2)))
    calls = iter([False, True, True])
    answers = rehearse(rehearsal, lambda: next(calls, True)).outcome
    assert not isinstance(answers["vbls"], Problem) or answers["vbls"].code == "infeasible"
    assert answers["optimal"].code == "planning-budget"


async def test_callers_take_turns_for_a_place() -> None:
    replica = busy_replica(Random(3))
    order: list[str] = []

    async def quote(name: str) -> None:
        await _ask_pool(pool, _rehearsal(Quote(ask(Random(3), 1), ["vbls"], POLICY), replica), name[0])
        order.append(name)

    async with _pool() as pool:
        await asyncio.gather(*(quote(name) for name in ("a1", "a2", "a3", "b1", "c1", "b2")))
    assert order == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_the_desk_itself_loads_no_solver() -> None:
    """Without one, `optimal` is no worse than the list planners."""
    import subprocess
    import sys

    program = """
import sys
from random import Random
from broker.desk.admission.admit import Admit
from broker.desk.ground.batch import Batch
from tests.jobs.rehearsals import POLICY, ask, busy_replica
replica = busy_replica(Random(4))
batch = Batch(replica, dict.fromkeys(replica.calendars, 0), {}, 0)
print([type(answer).__name__ for answer in Admit([ask(Random(4), 1, planner="optimal")], "me", POLICY).decide(batch)])
assert "ortools" not in sys.modules
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
