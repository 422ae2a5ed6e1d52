# SPDX-License-Identifier: Apache-2.0
"""Pulling waiting work forward: capacity freed by a cancel, an early end or a capacity change goes to waiting transfers at once.

The desk tells on which links more is free. Transfers that wait and could take these links are planned anew, best effort last, the more
important ones first, then the older ones; a new plan is kept only if it finishes strictly earlier, so nobody ever loses by it. What was
promised stays promised: `promised_us` and the deadline are as they were, the plan is merely better than the promise. Planners that are not
eager (they are asked for lateness, for one steady rate, or for what is best for many together) are left alone.

A transfer that is pulled forward frees what it had, for the next round. It cannot go on for ever: every change makes a finish earlier, and
one message of the desk is worth `_MAX_ROUNDS` rounds of queries at most. What a round frees itself is not news to the desk's listener.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from broker.core.request import Options
from broker.core.transfer import Mode, State
from broker.desk.chains.overrun import can_move
from broker.desk.ground.batch import Batch, summarise
from broker.desk.ground.command import Unkeyed
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica, find_freed_links
from broker.desk.planning.plan import find_routes
from broker.desk.planning.replan import Wanted, find_plannable_links, lead_of, replan
from broker.desk.service.desk import Desk
from broker.planners import PLANNERS, traits_of
from broker.store import pull_forward as waiters
from broker.store.session import Database, DatabaseAway
from broker.store.transfers import Transfer

log = logging.getLogger(__name__)

ACTOR = "pull-forward"

_MAX_ROUNDS = 4
# Everybody waits while a command decides: some milliseconds for so many.
_AT_ONCE = 8
# As long as more than these wait at the desk, admissions go first.
_BUSY, _BUSY_PAUSE_S = 16, 0.05
# After each command the desk belongs to others for so many times as long as the command took.
_REST = 2.0


class Pull(StrEnum):
    """Which transfers are pulled forward into what was freed."""

    OFF = "off"
    WAITING = "waiting"  # only what has not begun
    ALL = "all"  # running transfers as well


class Pulled(NamedTuple):
    """What a round of pulling did."""

    transfer_ids: tuple[str, ...]  # transfers that now finish earlier
    freed: frozenset[str]  # links on which that left something free


@dataclass(slots=True)
class PullForward(Unkeyed):
    """Plan each of the transfers anew, in their order, and keep what finishes earlier. Those that do not wait any more stay as they are."""

    ids: Collection[str]
    policy: Policy
    begun: bool = False

    def transfer_ids(self) -> Iterable[str]:
        """The candidates, in the order of their turns."""
        return self.ids

    def links(self, replica: Replica, found: Mapping[str, Transfer]) -> set[str]:
        """The links of every path that a candidate may take."""
        return {
            link_id
            for name in self.ids
            if (transfer := found.get(name)) is not None
            for link_id in find_plannable_links(replica, transfer.spec)
        }

    def decide(self, batch: Batch) -> Pulled:
        """Plan each candidate anew, and keep the plan that ends earlier."""
        first = len(batch.journal.done)
        transfers = [batch.transfers[name] for name in self.ids if name in batch.transfers]
        pulled = tuple(transfer.id for transfer in transfers if self._waits(transfer, batch.now_us) and self._pull(batch, transfer))
        batch.pulled.update(pulled)
        return Pulled(pulled, frozenset(find_freed_links(batch.journal.done[first:])))

    def _waits(self, transfer: Transfer, now_us: int) -> bool:
        if not can_move(transfer) or not traits_of(transfer.spec.planner).eager:
            return False
        if self.begun and transfer.state is State.ACTIVE:
            return True
        earliest = now_us + notice_us(transfer, self.policy)
        return transfer.state is State.RESERVED and (self.begun or (transfer.start_us or 0) > earliest)

    def _pull(self, batch: Batch, transfer: Transfer) -> bool:
        """Plan anew; True if it finishes earlier, else everything is as it was."""
        before, shown, mark = copy(transfer), summarise(transfer), batch.mark()
        try:
            not_before = max(transfer.spec.not_before_us, batch.now_us)
            if transfer.state is State.RESERVED:
                not_before = max(not_before, batch.now_us + notice_us(transfer, self.policy))
            replan(batch, transfer, Wanted.of(transfer), None, not_before, self.policy)
            earlier = _finish(transfer) < _finish(before)
        except Problem:  # its own place was the only one, or there is nothing left to plan
            earlier = False
        if not earlier:
            batch.back_to(mark)
            transfer.become(before)
            return False
        if transfer.promised_us is not None and _finish(transfer) <= transfer.promised_us:
            transfer.reason = None  # whatever slowed it down: the promise is kept after all
        batch.change(transfer, ACTOR, "transfer.pulled_forward", shown)
        return True


def eager_planners() -> list[str]:
    """The names of those of which an early finish is asked."""
    return [name for name, planner in PLANNERS.items() if planner.traits.eager]


def notice_us(transfer: Transfer, policy: Policy) -> int:
    """The notice that the sender needs of an earlier start: its agent, or the caller of a reservation."""
    return policy.managed_lead_us if transfer.mode == Mode.RESERVE else lead_of(transfer, policy)


def _finish(transfer: Transfer) -> int:
    assert transfer.finish_us is not None
    return transfer.finish_us


class Puller:
    """Hears what the desk frees and pulls forward what waits for it. One per process that has a desk; `run` it in a task."""

    def __init__(self, database: Database, clock: Callable[[], int], pull: Pull = Pull.WAITING, candidates: int = 64) -> None:
        self._database = database
        self._clock = clock
        self._off = pull is Pull.OFF
        self._begun = pull is Pull.ALL
        self._candidates = candidates
        self._links: set[str] = set()
        self._ready = asyncio.Event()
        self._pulling = False

    def freed(self, links: Iterable[str]) -> None:
        """What the desk calls. Any number of messages become one until there is time for them."""
        if self._off:
            return
        self._links.update(links)
        self._ready.set()

    @property
    def idle(self) -> bool:
        """True if no pull is waiting or running."""
        return not (self._pulling or self._ready.is_set())

    async def run(self, desk: Desk, policy: Policy) -> None:
        """Pull whenever something was freed, until cancelled."""
        while True:
            await self._ready.wait()
            await self.pull_freed(desk, policy)

    async def pull_freed(self, desk: Desk, policy: Policy) -> int:
        """Deal with what was heard so far; returns how many transfers finish earlier now. Without a database, that is forgotten."""
        links, self._links = self._links, set()
        self._ready.clear()
        self._pulling = True
        try:
            return await self._pull(desk, policy, links) if links else 0
        except DatabaseAway as away:
            log.info("nothing pulled forward: %s", away)
        except Exception:  # the loop must outlive every fault
            log.exception("pulling forward failed")
        finally:
            self._pulling = False
        return 0

    async def _pull(self, desk: Desk, policy: Policy, links: set[str]) -> int:
        pulled = 0
        freed: set[str] = set()
        place = waiters.FIRST
        for _ in range(_MAX_ROUNDS):
            found = await self._next(desk, policy, links, place)
            for i in range(0, len(found), _AT_ONCE):
                answer = await self._submit(desk, PullForward([one.id for one in found[i : i + _AT_ONCE]], policy, self._begun))
                pulled += len(answer.transfer_ids)
                freed |= answer.freed
            if len(found) == self._candidates:
                place = found[-1]  # there may be more behind them
            elif freed:
                links, freed, place = freed, set(), waiters.FIRST
            else:
                break
        return pulled

    async def _submit(self, desk: Desk, command: PullForward) -> Pulled:
        while desk.queued > _BUSY:  # noqa: ASYNC110 - the queue has no event for becoming short
            await asyncio.sleep(_BUSY_PAUSE_S)
        time = asyncio.get_running_loop().time
        begin = time()
        answer: Pulled = await desk.submit(command)
        await asyncio.sleep(_REST * (time() - begin))
        return answer

    async def _next(self, desk: Desk, policy: Policy, links: set[str], place: waiters.Place) -> list[waiters.Place]:
        """The next transfers that could take one of the links."""
        after = self._clock() + (0 if self._begun else policy.managed_lead_us)
        async with self._database.transaction() as connection:
            waiting = await waiters.find_ends(connection, eager_planners(), after, begun=self._begun)
        between = []
        for pair in waiting:
            if _takes(desk.replica, pair, links):
                between.append(pair)
            await asyncio.sleep(0)  # paths that are not cached take a while to find
        async with self._database.transaction() as connection:
            return await waiters.find_candidates(
                connection, between, links, eager_planners(), after, place, self._candidates, begun=self._begun
            )


def _takes(replica: Replica, pair: waiters.Ends, links: set[str]) -> bool:
    found = find_routes(replica.network, pair.source, pair.destination, Options(paths=pair.paths))
    return any(not links.isdisjoint(route.path) for route in found)
