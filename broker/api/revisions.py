# SPDX-License-Identifier: Apache-2.0
"""The revisions of assignments that agents are told of: one reader for all of their streams, as `feed` is for events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

from broker.api.sse import heartbeat_s, set_or_late
from broker.api.wakeups import Wakeups, host_topic
from broker.desk.ground.problems import Problem
from broker.store import hosts
from broker.store.session import Database, DatabaseAway

_MOST = 8  # streams of one host: a machine that was cut off leaves some behind until their connections end


@dataclass(eq=False)
class Agent:
    """A stream of an agent."""

    host: str
    revision: int = -1
    ready: asyncio.Event = field(default_factory=asyncio.Event)


class Revisions:
    """`run` it in one task."""

    def __init__(self, database: Database, wakeups: Wakeups) -> None:
        self._database = database
        self._wakeups = wakeups
        self._agents: dict[str, set[Agent]] = {}
        self._closing = False

    def listen(self, host: str) -> Agent:
        """One more stream of an agent, until `leave`. Raises Problem where its host has too many."""
        if len(self._agents.get(host, ())) >= _MOST:
            problem = f"host {host!r} has {_MOST} streams open"
            raise Problem("too-many-streams", problem, {"limit": _MOST, "retry_after_s": 5})
        agent = Agent(host)
        self._agents.setdefault(host, set()).add(agent)
        self._wakeups.wake([host_topic(host)])
        return agent

    def leave(self, agent: Agent) -> None:
        """The stream is over."""
        among = self._agents.get(agent.host, set())
        among.discard(agent)
        if not among:
            self._agents.pop(agent.host, None)

    async def of(self, agent: Agent) -> AsyncIterator[int | None]:
        """The revision as it is and whenever it has changed; None after a while without."""
        told = -1
        while not self._closing:
            await set_or_late(agent.ready, heartbeat_s())
            agent.ready.clear()
            if self._closing:
                return
            now = agent.revision
            yield now if now != told else None
            told = now

    async def run(self) -> None:
        """Read revisions that have changed and tell them, until cancelled."""
        async for topics in self._wakeups.announcements():
            concerned = [host for host in self._agents if not topics or host_topic(host) in topics]
            if not concerned:
                continue
            with suppress(DatabaseAway):
                async with self._database.transaction() as connection:
                    found = await hosts.get_revisions(connection, concerned)
                for host, revision in found.items():
                    for agent in self._agents.get(host, ()):
                        if agent.revision != revision:
                            agent.revision = revision
                            agent.ready.set()

    def close(self) -> None:
        """Let every stream end."""
        self._closing = True
        for agents in self._agents.values():
            for agent in agents:
                agent.ready.set()
