# SPDX-License-Identifier: Apache-2.0
"""Rehearsal: a command that takes long to plan is decided in another process, on a copy of what it reads.

For quotes, its answer is the result. For bookings, the desk takes over the plans, verifies them on the calendars as they are by then, and
books them or has the command planned again.
"""

import pickle
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from broker.desk.ground.batch import Answers, Batch, LockedCalendars
from broker.desk.ground.command import Command, Unkeyed
from broker.desk.ground.limits import Account
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.service.outcomes import decide
from broker.planners.offers import Binding
from broker.planners.signature import Spent, never
from broker.store.transfers import Transfer


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A command, and a copy of what it reads. `replica` has the calendars of the locked links alone."""

    command: Any
    replica: Replica
    heads: Mapping[str, int]
    found: Mapping[str, Transfer]
    now_us: int
    policy: Policy


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """`outcome`: a result, or the exception that the caller shall get. `answers`: what the planners said on the way.

    `unexplained`: refusals in the outcome whose `binding.reservations` are to be filled in.
    """

    outcome: Any
    answers: Answers
    unexplained: list[tuple[Problem, Binding]]


Rehearse = Callable[[Rehearsal], Awaitable[Rehearsed]]


class Elsewhere(Protocol):
    """A place to plan away from the desk."""

    def turn(self, caller: str) -> AbstractAsyncContextManager[Rehearse]:
        """Wait for a place to plan; the copy is made when there is one. Raises Problem when that takes too long."""
        ...


@dataclass(slots=True)
class Look(Unkeyed):
    """Copy what a command reads, at this moment under its locks; nothing else is done under them."""

    command: Command[Any]
    policy: Policy
    lead_us: int
    every_link: bool = False

    @property
    def account(self) -> Account:  # type: ignore[override]
        """That of the command."""
        return self.command.account

    @property
    def owner(self) -> str:
        """Who asks for the command."""
        return self.account.owner

    def transfer_ids(self) -> Iterable[str]:
        """Those of the command."""
        return self.command.transfer_ids()

    def links(self, replica: Replica, found: Mapping[str, Transfer]) -> set[str]:
        """Those of the command, or every link."""
        return set(replica.records) if self.every_link else self.command.links(replica, found)

    def decide(self, batch: Batch) -> Rehearsal:
        """A copy of all that the command would look at, to be decided elsewhere."""
        replica = Replica()
        replica.__dict__.update(batch.replica.__dict__)
        replica.calendars = LockedCalendars({link_id: batch.replica.calendars[link_id].copy() for link_id in batch.heads})
        # What is changed in place goes along as it is now; everything else is made anew when it changes, and is sent when it is new.
        replica.versions, replica.watched = {}, set()
        replica.uses = {self.owner: batch.use(self.owner)}
        return Rehearsal(self.command, replica, dict(batch.heads), batch.transfers, batch.now_us + self.lead_us, self.policy)


def rehearse(rehearsal: Rehearsal, spent: Spent) -> Rehearsed:
    """Decide on the command. What it books stays in the copy. Raises NotLocked like the desk."""
    batch = Batch(rehearsal.replica, rehearsal.heads, dict(rehearsal.found), rehearsal.now_us, rehearsed=True)
    batch.spent = spent
    batch.counted = frozenset(rehearsal.replica.uses)
    batch.answers = answers = Answers(recording=True)
    outcome = decide(rehearsal.command, batch, rehearsal.policy)
    if isinstance(outcome, MemoryError):
        raise outcome
    return Rehearsed(outcome, replace(answers, recording=False), batch.unexplained)


class InProcess:
    """Elsewhere is here: for processes that plan nothing for others, and for tests. As strict as the other about what can be sent."""

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[Rehearse]:  # noqa: ARG002
        """At once, and in this process."""
        yield self._rehearse

    async def _rehearse(self, rehearsal: Rehearsal) -> Rehearsed:
        rehearsed: Rehearsed = pickle.loads(pickle.dumps(rehearse(pickle.loads(pickle.dumps(rehearsal)), never)))  # noqa: S301
        return rehearsed
