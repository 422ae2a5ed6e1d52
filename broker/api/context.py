# SPDX-License-Identifier: Apache-2.0
"""The objects that routes work with, and the scopes that they require."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Header, Request
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.api.attempts import Attempts
from broker.api.callers import RECOGNISED, caller
from broker.api.feed import Feed
from broker.api.metrics import Metrics
from broker.api.revisions import Revisions
from broker.api.shared import Shared
from broker.api.wakeups import Wakeups
from broker.core.allowance import Allowance
from broker.core.identifiers import identifier
from broker.core.reverse import reverses
from broker.core.units import US_PER_S
from broker.desk.ground.limits import Account
from broker.desk.ground.policy import Policy, policy_of
from broker.desk.ground.problems import Problem
from broker.desk.service.desk import Desk
from broker.fleet.agent_files import AgentFiles
from broker.fleet.clocks import Limits
from broker.fleet.sessions import Sessions
from broker.fleet.tokens import Access, Principal, Scope
from broker.settings import Settings
from broker.store import bookings
from broker.store.bookings import LinkRecord
from broker.store.session import Database
from broker.views.link_load import LinkLoad

_UNLIMITED = Allowance()


@dataclass(slots=True)
class Broker:
    """The parts of one API process."""

    settings: Settings
    clock: Callable[[], int]
    database: Database
    desk: Desk
    link_load: LinkLoad
    access: Access
    sessions: Sessions
    wakeups: Wakeups
    metrics: Metrics
    feed: Feed
    revisions: Revisions
    agent_files: AgentFiles
    nudge: Callable[[], None] = lambda: None  # tells the workers that a job waits
    attempts: Attempts = field(default_factory=Attempts)
    shared: Shared = field(default_factory=Shared)
    # Anyone may send a token to enrol with; at most so many look-ups have connections of the database.
    enrolling: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))
    _links: Mapping[str, LinkRecord] = field(default_factory=dict)
    _reverses: Mapping[str, str] = field(default_factory=dict)
    _links_version: int = -1

    @property
    def policy(self) -> Policy:
        """The operator's policy, from the settings."""
        return policy_of(self.settings)

    def account(self, principal: Principal) -> Account:
        """On whose account the caller books, and how much that may be."""
        return Account(principal.id, self.allowance(principal))

    def allowance(self, principal: Principal) -> Allowance:
        """What the caller may have at once."""
        if principal.may(Scope.OPERATE):
            return Allowance.of(principal.limits, _UNLIMITED)
        s = self.settings
        ordinary = Allowance(
            s.token_open_transfers, s.token_booked_gb_hours, s.token_horizon_s, s.token_priority, s.token_jobs, s.token_successors
        )
        return Allowance.of(principal.limits, ordinary)

    @property
    def clock_limits(self) -> Limits:
        """How far a clock may be off, and how long an agent silent."""
        return Limits(self.settings.clock_limit_ms * 1000, self.settings.agent_lost_s * US_PER_S)

    async def links(self, connection: AsyncConnection) -> Mapping[str, LinkRecord]:
        """The network as it is now, for rendering; the desk's own copy is as old as its last batch."""
        version = await bookings.topology_version(connection)
        if version != self._links_version:
            self._links = await bookings.load_links(connection)
            self._reverses = reverses(record.link for record in self._links.values())
            self._links_version = version
        return self._links

    async def reverses(self, connection: AsyncConnection) -> Mapping[str, str]:
        """The way back of each link that has one, as the network is now."""
        await self.links(connection)
        return self._reverses

    def new_id(self, prefix: str) -> str:
        """A new identifier that sorts by time."""
        return identifier(prefix, self.clock(), os.urandom(10))


async def get_broker(request: Request) -> Broker:  # async: FastAPI would run a plain function in a thread
    """The dependency by which routes get the broker."""
    broker: Broker = request.app.state.broker
    return broker


BrokerDependency = Annotated[Broker, Depends(get_broker)]


def requires(scope: Scope) -> Callable[[Request], Awaitable[Principal]]:
    """A dependency that gives the caller. Raises Problem where the token lacks `scope`."""

    async def principal(request: Request) -> Principal:
        found = request.scope.get(RECOGNISED) or await caller(request)
        if not found.may(scope):
            held = ", ".join(sorted(found.scopes))
            raise Problem("forbidden", f"this needs the scope {scope}; the token has {held}", {"scope": str(scope)})
        return found

    return principal


async def _agent(host: str, request: Request) -> Principal:
    """An agent, and for its own host only."""
    found = request.scope.get(RECOGNISED) or await caller(request)
    if not found.may(Scope.AGENT) or found.host != host:
        raise Problem("forbidden", f"only the agent of host {host!r} may do this", {"scope": str(Scope.AGENT)})
    return found


Reader = Annotated[Principal, Depends(requires(Scope.READ))]
Submitter = Annotated[Principal, Depends(requires(Scope.SUBMIT))]
Operator = Annotated[Principal, Depends(requires(Scope.OPERATE))]
Administrator = Annotated[Principal, Depends(requires(Scope.ADMIN))]
Agent = Annotated[Principal, Depends(_agent)]


def etag(revision: int) -> str:
    """The entity tag of a revision."""
    return f'"{revision}"'


async def expected_revision(
    if_match: Annotated[str | None, Header(alias="If-Match", description='ETag of what was read, or "*"')] = None,
) -> int | None:
    """The revision that If-Match names; None when any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Problem.of_field("If-Match", f"{if_match[:40]!r} is no ETag of this broker")
    return int(text)


ExpectedRevision = Annotated[int | None, Depends(expected_revision)]
