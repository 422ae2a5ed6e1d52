# SPDX-License-Identifier: Apache-2.0
"""How many connections there may be, and how long one may keep us waiting: for a header, for a body, for reading what it asked for.

uvicorn bounds none of this: a connection that sends nothing stays for ever, and so does an answer that nobody reads. Here a connection that is
one too many is closed as it comes, and once a second all of them are looked at; no timer for each.
"""

import asyncio
import logging
import resource
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from broker.api.addresses import TrustedProxies, neighbourhood

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0
_LOG_EVERY_S = 10.0
_HEADER_BYTES = 64 * 1024  # of one request; other servers take 8 to 64 KiB
_PIPELINED = 16  # requests that one connection may have waiting behind the one that is being answered
_SLOWEST_BYTES_S = 4096  # a client that sends or reads less than this after the time-out counts as gone
_WRITE_BUFFER = 64 * 1024  # of one connection, before its writer has to wait
_OTHER_FILES = 256  # descriptors for everything but connections: the database's pool, Redis, files, logs


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections there may be, and how long they may be silent."""

    connections: int = 10_000
    per_address: int = 512
    header_s: float = 10.0
    body_s: float = 20.0
    write_s: float = 20.0
    unread_bytes: int = 64 * 2**20  # of answers that wait for their readers, all together


class Guarded(HttpToolsProtocol):
    """uvicorn's connection, which tells `Connections` what it waits for. Without one in the lifespan's state it is just uvicorn's."""

    header_since: float | None = None
    body_since = 0.0
    body_bytes = 0
    header_bytes = 0
    unread_since = 0.0
    unread_bytes = 0
    _address = ""
    _all: "Connections | None" = None

    def connection_made(self, transport: Any) -> None:
        """Count the connection, or close it where there are too many."""
        super().connection_made(transport)
        everyone: Connections | None = self.app_state.get("connections")
        if everyone is None:
            return
        self._address = self.client[0] if self.client else ""
        if everyone.enter(self, self._address):
            self._all = everyone
            self.header_since = time.monotonic()
            transport.set_write_buffer_limits(high=_WRITE_BUFFER)
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no longer."""
        if self._all is not None:
            self._all.leave(self, self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Note since when a header is under way."""
        if self.header_since is None and (self.cycle is None or self.cycle.response_complete):
            self.header_since = time.monotonic()  # uvicorn cancels its keep-alive time-out at the first byte, whatever the byte is
        if self.header_since is not None:
            self.header_bytes += len(data)
        super().data_received(data)
        if self.header_since is not None and self.header_bytes > _HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response("Request header too large.")

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.header_since = self.header_since or time.monotonic()

    def on_headers_complete(self) -> None:
        """The header is whole: now the body's time runs."""
        self.header_since = None
        self.header_bytes = self.body_bytes = 0
        self.body_since = time.monotonic()
        if len(self.pipeline) >= _PIPELINED:
            self.transport.abort()
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count the body's bytes."""
        self.body_bytes += len(body)
        super().on_body(body)

    def pause_writing(self) -> None:
        """The other end does not read: note since when."""
        super().pause_writing()
        if self._all is not None:
            self.unread_since = time.monotonic()
            self.unread_bytes = self.transport.get_write_buffer_size()
            self._all.clogged.add(self)
            self._all.relieve()

    def resume_writing(self) -> None:
        """The other end reads again."""
        super().resume_writing()
        if self._all is not None:
            self._all.clogged.discard(self)

    def overdue(self, now: float, limits: Limits) -> str | None:
        """Why this connection has used up its time, if it has."""
        if self.header_since is not None and now - self.header_since > limits.header_s:
            return "sent no header"
        if self.cycle is not None and self.cycle.more_body and not self.flow.read_paused and not self.cycle.response_complete:
            over = now - self.body_since - limits.body_s
            if over > 0 and self.body_bytes < over * _SLOWEST_BYTES_S + 1:
                return "sent no body"
        if self in (self._all.clogged if self._all else ()) and now - self.unread_since > limits.write_s:
            unread = self.transport.get_write_buffer_size()
            if self.unread_bytes - unread < limits.write_s * _SLOWEST_BYTES_S:
                return "did not read"
            self.unread_since, self.unread_bytes = now, unread
        return None


@dataclass(slots=True)
class Connections:
    """All connections of a process."""

    limits: Limits
    trusted: TrustedProxies
    clogged: set[Guarded] = field(default_factory=set)  # those whose answers wait for being read
    _open: set[Guarded] = field(default_factory=set)
    _by_address: Counter[str] = field(default_factory=Counter)
    _ended: Counter[str] = field(default_factory=Counter)
    _last: dict[str, str] = field(default_factory=dict)
    _logged: float = 0.0

    def enter(self, connection: Guarded, address: str) -> bool:
        """May it come in?"""
        group = neighbourhood(address)
        if self._by_address[group] >= self.limits.per_address and address not in self.trusted:
            self._count(f"were more than {self.limits.per_address} of one address", address)
            return False
        if len(self._open) >= min(self.limits.connections, _most_files()):
            self._count(f"were more than {min(self.limits.connections, _most_files())}", address)
            return False
        self._by_address[group] += 1
        self._open.add(connection)
        return True

    def leave(self, connection: Guarded, address: str) -> None:
        """Count a connection no longer."""
        group = neighbourhood(address)
        self._open.discard(connection)
        self.clogged.discard(connection)
        self._by_address[group] -= 1
        if not self._by_address[group]:
            del self._by_address[group]

    def relieve(self) -> None:
        """Where all that waits for being read is too much together, end what has waited longest."""
        sizes = {one: one.transport.get_write_buffer_size() for one in self.clogged if not one.transport.is_closing()}
        over = sum(sizes.values()) - self.limits.unread_bytes
        for one in sorted(sizes, key=lambda one: one.unread_since) if over > 0 else ():
            if over <= 0:
                return
            over -= sizes[one]
            self._end(one, "did not read, and others need the memory")

    def look(self, now: float) -> None:
        """Close what has been silent for too long."""
        for one in list(self._open):
            if (why := one.overdue(now, self.limits)) is not None:
                self._end(one, why)
        self._tell(now)

    async def run(self) -> None:
        """Look at all connections again and again."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            self.look(time.monotonic())

    def _end(self, connection: Guarded, why: str) -> None:
        self._count(why, connection._address)
        connection.transport.abort()

    def _count(self, why: str, address: str) -> None:
        self._ended[why] += 1
        self._last[why] = address

    def _tell(self, now: float) -> None:
        """Logs a line for each reason, not for each connection: a client that opens thousands must not fill the log."""
        if self._ended and now - self._logged >= _LOG_EVERY_S:
            for why, count in self._ended.items():
                log.warning("closed %d connections that %s, the last from %s", count, why, self._last[why] or "a local socket")
            self._ended.clear()
            self._last.clear()
            self._logged = now


def _most_files() -> int:
    return max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OTHER_FILES, 64)


def raise_file_limit() -> None:
    """As many files as the system lets us have: the usual soft limit, 1024, is for programs that use select()."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
