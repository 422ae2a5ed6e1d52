# SPDX-License-Identifier: Apache-2.0
"""Processes beside the API process that make plans which take long (`desk.rehearsal`): few, bounded, and killed when over time.

Only they load OR-Tools. They run at a lower priority than admission.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.service.queue import Queue, Work
from broker.desk.service.rehearsal import Rehearsal, Rehearse, Rehearsed
from broker.jobs.child import Child, ChildDied, WorkFailed
from broker.jobs.rehearsal_work import Sent

log = logging.getLogger(__name__)

# Callers that wait for a place, all together, and how long: then there are too many of them.
_MAX_WAITING = 100
_PATIENCE = 4.0  # budgets
# A process that does not end when its budget is spent is inside a solver, or counts wrong: it is killed after so many budgets.
_KILLED_AFTER = 2.0
_STARTS_WITHIN_S = 60.0

_NO_REPLICA = Replica()


@dataclass(frozen=True, slots=True)
class _Turn:
    owner: str
    key: None = None


@dataclass(eq=False)
class _Place:
    """A process, and what was sent to it of the replica. Held here, so that the same object is not another one at the same address."""

    child: Child
    known: dict[str, Any] = field(default_factory=dict)
    broken: bool = False


_Granted = tuple[_Place, asyncio.Future[None]]  # the second is to be set when the place is free again


class Pool:
    """`run` it in one task. Elsewhere, for a desk."""

    def __init__(self, size: int, budget_s: float, memory_mb: int) -> None:
        self._size = size
        self._budget_s = budget_s
        self._memory_mb = memory_mb
        self._queue = Queue()
        self._waits = asyncio.Event()
        self._running = 0  # processes that take turns
        self._runs = asyncio.Event()  # is there one?

    async def run(self) -> None:
        """Keep the processes alive until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._size):
                group.create_task(self._keep_a_place())

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[Rehearse]:
        """A process for one rehearsal, callers in turn. Raises Problem where too many wait, or for too long.

        While none runs yet, that is no time that others take: a first start compiles and takes half a minute on a busy core.
        """
        if len(self._queue) >= _MAX_WAITING:
            raise Problem.out_of_budget(f"{_MAX_WAITING} others wait for their plans")
        granted: asyncio.Future[_Granted] = asyncio.get_running_loop().create_future()
        self._queue.put(Work(_Turn(caller), granted))
        self._waits.set()
        try:
            place, done = await self._wait_for(granted)
        except BaseException as gone:
            if granted.done() and not granted.cancelled():
                granted.result()[1].set_result(None)
            if isinstance(gone, TimeoutError):
                others = "others' plans take all the time that there is"
                raise Problem.out_of_budget(others if self._running else "the process that plans does not start") from None
            raise

        async def rehearse_there(rehearsal: Rehearsal) -> Rehearsed:
            return await self._ask(place, rehearsal)

        try:
            yield rehearse_there
        finally:
            done.set_result(None)

    async def _wait_for(self, granted: "asyncio.Future[_Granted]") -> "_Granted":
        """Raises TimeoutError."""
        while True:
            async with asyncio.timeout(_STARTS_WITHIN_S):
                await self._runs.wait()
            try:
                async with asyncio.timeout(_PATIENCE * self._budget_s):
                    return await asyncio.shield(granted)
            except TimeoutError:
                if self._running:
                    raise
                # It was stopped meanwhile: the next one is on its way.

    async def _keep_a_place(self) -> None:
        """A process, or the next one where it was killed or died; turns in it, one after the other."""
        while True:
            try:
                async with Child(self._memory_mb) as child:
                    async with asyncio.timeout(_STARTS_WITHIN_S):
                        await child.ask("prepare", None, _ignore)
                    await self._serve(_Place(child))
            except (ChildDied, WorkFailed, TimeoutError, OSError) as failure:
                log.warning("no process to plan in (%s); trying again", failure)
                await asyncio.sleep(1)

    async def _serve(self, place: _Place) -> None:
        self._running += 1
        self._runs.set()
        try:
            await self._take_turns(place)
        finally:
            self._running -= 1
            if not self._running:
                self._runs.clear()

    async def _take_turns(self, place: _Place) -> None:
        loop = asyncio.get_running_loop()
        while not place.broken:
            await self._waits.wait()
            (work, *_) = self._queue.take(1) or (None,)
            if not self._queue:
                self._waits.clear()
            if work is not None and not work.future.done():
                done: asyncio.Future[None] = loop.create_future()
                work.future.set_result((place, done))
                await done

    async def _ask(self, place: _Place, rehearsal: Rehearsal) -> Rehearsed:
        replica = vars(rehearsal.replica)
        news = {name: value for name, value in replica.items() if place.known.get(name, place) is not value}
        place.known = dict(replica, calendars=None)
        place.broken = True  # until it has answered: a caller that is cancelled here leaves an answer in the pipe
        try:
            async with asyncio.timeout(_KILLED_AFTER * self._budget_s):
                answer = await place.child.ask(
                    "rehearse", Sent(replace(rehearsal, replica=_NO_REPLICA), news, self._budget_s), _ignore
                )
        except TimeoutError:
            raise Problem.out_of_budget(f"planning took more than {_KILLED_AFTER * self._budget_s:g} s and was stopped") from None
        except ChildDied as died:
            raise Problem.out_of_budget(f"planning was ended ({died})") from None
        except Problem as problem:  # it needs more memory than it may have
            raise Problem.out_of_budget("planning needs more memory than BWB_PLANNING_MEMORY_MB") from problem
        place.broken = False
        if isinstance(answer, BaseException):
            raise answer
        rehearsed: Rehearsed = answer
        return rehearsed


def _ignore(share: float, stage: str) -> None:
    pass
