# SPDX-License-Identifier: Apache-2.0
"""The events of a process: one reader of the table, and any number of listeners that it tells of what concerns them.

An event costs one query however many listen, and touches only those who asked for it. Nobody waits for a listener: one that does not take
what it was told has missed something, hears of that, and goes on from the table.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import orjson

from broker.api import render, sse
from broker.api.wakeups import EVENTS, Wakeups
from broker.core.transfer import ENDED
from broker.desk.ground.problems import Problem
from broker.store import events
from broker.store.events import Event, Position, StoredEvent
from broker.store.session import Database, DatabaseAway

PAGE = 500
_PAUSE_S = 0.05  # between two reads: what comes meanwhile is read together
_MAX_UNREAD = 128  # events that one listener may leave lying about
_WHOSE = frozenset({"token", "session"})  # events that may end what a caller is allowed

# Kinds of events that a token with `read` may see.
PUBLIC = frozenset({"transfer", "link", "window", "node", "host", "job"})


class Wanted(NamedTuple):
    """What a listener wants to hear; None and nothing: anything."""

    kinds: frozenset[str] | None = None  # of subjects, and of what was done: a host's events tell of its enrolment tokens
    subject: str | None = None
    project: str | None = None
    states: frozenset[str] = frozenset()  # a transfer that has come to one of these
    terminal: bool = False  # a transfer that has ended

    def includes(self, event: Event) -> bool:
        """Is this an event that the listener wants?"""
        if self.kinds is not None and not {event.subject_kind, event.action.partition(".")[0]} <= self.kinds:
            return False
        if self.subject is not None and event.subject != self.subject:
            return False
        if self.project is None and not self.states and not self.terminal:
            return True
        after = event.after or {}
        if event.subject_kind != "transfer" or (self.project is not None and after.get("project") != self.project):
            return False
        state = after.get("state")
        return (not self.states or state in self.states) and (not self.terminal or state in ENDED)


@dataclass(eq=False)
class Heard:
    """An event as it is sent: written once, however many streams it goes to."""

    stored: StoredEvent

    @cached_property
    def message(self) -> str:
        """The event as SSE text."""
        position, event = self.stored
        return sse.message(orjson.dumps(render.event(self.stored)).decode(), event.action, str(position))


@dataclass(eq=False)
class Listener:
    """A stream, and what it has been told and not yet sent."""

    wanted: Wanted
    owner: str  # id of the token
    since: Position = events.BEGINNING  # it is told of everything behind this
    missed: bool = False  # it did not keep up; nothing more will come
    doubtful: bool = False  # its caller's token or session may have ended
    _unread: deque[Heard] = field(default_factory=deque)
    _ready: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, heard: Heard) -> None:
        """Put an event into its buffer; where that is full, it has missed something."""
        if not self.missed:
            self._unread.append(heard)
            if len(self._unread) > _MAX_UNREAD:
                self.missed = True
                self._unread.clear()
            self._ready.set()

    def doubt(self) -> None:
        """Have it check its caller."""
        self.doubtful = True
        self._ready.set()

    def wake(self) -> None:
        """Have it look around."""
        self._ready.set()

    @property
    def waiting(self) -> bool:
        """Is there something to look at?"""
        return bool(self._unread) or self.doubtful or self.missed

    async def heard(self, timeout_s: float) -> list[Heard]:
        """What has come since the last call; after `timeout_s`, or when there is something else to look at, perhaps nothing."""
        await sse.set_or_late(self._ready, timeout_s)
        self._ready.clear()
        found = list(self._unread)
        self._unread.clear()
        return found


class Feed:
    """`run` it in one task. `most` is how many listeners one token may have at a time."""

    def __init__(self, database: Database, wakeups: Wakeups, most: int) -> None:
        self._database = database
        self._wakeups = wakeups
        self._most = most
        self._of_subject: dict[str, set[Listener]] = {}
        self._of_any: set[Listener] = set()
        self._count: Counter[str] = Counter()
        self._position: Position | None = None  # None while there are no listeners
        self.closing = False
        # A listener that returns after a long time reads many pages; many such listeners must not take all database connections.
        self.catching_up = asyncio.Semaphore(2)

    @property
    def position(self) -> Position:
        """The position up to which every listener was told."""
        return self._position or events.BEGINNING

    def __len__(self) -> int:
        return self._count.total()

    async def listen(self, wanted: Wanted, owner: str) -> Listener:
        """One more listener, until `leave`. Raises Problem where its owner has too many."""
        if self._count[owner] >= self._most:
            raise Problem(
                "too-many-streams",
                f"this token has {self._most} streams and waiting calls open; close some, or ask for several things in one",
                {"limit": self._most, "retry_after_s": 5},
            )
        listener = Listener(wanted, owner)
        self._among(listener).add(listener)
        self._count[owner] += 1
        try:
            if self._position is None:
                async with self._database.transaction() as connection:
                    newest = await events.newest(connection)
                if self._position is None:
                    self._position = newest
        except BaseException:
            self.leave(listener)
            raise
        listener.since = self._position
        return listener

    def leave(self, listener: Listener) -> None:
        """No-op for one that has left."""
        among, subject = self._among(listener), listener.wanted.subject
        present = listener in among
        among.discard(listener)
        if subject is not None and not among:
            del self._of_subject[subject]
        if not present:
            return
        self._count[listener.owner] -= 1
        if not self._count[listener.owner]:
            del self._count[listener.owner]
        if not self._count:
            self._position = None

    def _among(self, listener: Listener) -> set[Listener]:
        subject = listener.wanted.subject
        return self._of_any if subject is None else self._of_subject.setdefault(subject, set())

    async def run(self) -> None:
        """Read new events and tell them, until cancelled."""
        away = True
        async for topics in self._wakeups.announcements():
            if self._position is None or (topics and EVENTS not in topics):
                continue
            try:
                if away:
                    async with self._database.transaction() as connection:
                        await events.begin_epoch(connection)
                    away = False
                await self._read()
            except DatabaseAway:
                away = True  # what comes back may be another cluster
            await asyncio.sleep(_PAUSE_S)

    async def _read(self) -> None:
        while (before := self._position) is not None:
            async with self._database.transaction() as connection:
                found = await events.after(connection, before, PAGE)
            if self._position != before:
                return  # everybody left meanwhile, and others came
            for stored in found:
                self._tell(stored)
            if found:
                self._position = found[-1].position
            if len(found) < PAGE:
                return

    def _tell(self, stored: StoredEvent) -> None:
        event = stored.event
        heard = Heard(stored)
        for listener in self._of_subject.get(event.subject, ()):
            if listener.wanted.includes(event):
                listener.tell(heard)
        for listener in self._of_any:
            if listener.wanted.includes(event):
                listener.tell(heard)
        if event.subject_kind in _WHOSE:
            owners = {event.subject, event.actor}
            for listener in self._everybody():
                if listener.owner in owners:
                    listener.doubt()

    def _everybody(self) -> Iterable[Listener]:
        yield from self._of_any
        for listeners in self._of_subject.values():
            yield from listeners

    def close(self) -> None:
        """Let every stream and every waiting call end."""
        self.closing = True
        for listener in self._everybody():
            listener.wake()
