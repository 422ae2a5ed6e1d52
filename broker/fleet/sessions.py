# SPDX-License-Identifier: Apache-2.0
"""Sessions: a browser trades a token for a secret in a cookie, so that the token is stored nowhere where scripts could read it.

A session has the scopes of its token, and ends with it, at sign-out, after a fixed time, and after a time without use.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.identifiers import identifier
from broker.core.units import US_PER_S
from broker.desk.ground.problems import Problem
from broker.fleet.tokens import Principal, Scope, digest, principal_of
from broker.store import access, events, sessions
from broker.store.access import Token
from broker.store.events import Event
from broker.store.session import Database
from broker.store.sessions import Session

_REMEMBER_S = 5.0  # as with tokens: what another process ends may work here for so long
_REMEMBER_MOST = 10_000
_LOOK_UPS = 2  # at once: who guesses shall not take all connections of the database
_TOUCH_US = 60 * US_PER_S


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session that is good, whose it is, and when it ends if it is used until then."""

    session: Session
    principal: Principal
    expires_us: int


class Sessions:
    """Opens, recognises and ends sessions. Keeps what it has seen for a few seconds."""

    def __init__(self, database: Database, clock: Callable[[], int], lifetime_s: int, idle_s: int) -> None:
        self._database = database
        self._clock = clock
        self._lifetime_us = lifetime_s * US_PER_S
        self._idle_us = idle_s * US_PER_S
        self._gate = asyncio.Semaphore(_LOOK_UPS)
        self._seen: dict[bytes, tuple[float, Session, Token]] = {}

    async def open(self, token: str) -> tuple[SignedIn, str]:
        """(the session, the secret for the cookie). Raises Problem `unauthorized`, and `forbidden` for the token of an agent."""
        now_us = self._clock()
        secret = secrets.token_urlsafe(32)
        async with self._gate, self._database.transaction() as connection:
            held = await access.token_by_hash(connection, digest(token))
            if held is None or not held.valid(now_us):
                raise Problem("unauthorized", "this token is unknown, revoked or has expired")
            if str(Scope.AGENT) in held.scopes:
                raise Problem("forbidden", "this is an agent's token; people sign in with one that `bwb token create` makes")
            expires_us = min(now_us + self._lifetime_us, held.expires_us or now_us + self._lifetime_us)
            session = Session(identifier("ses", now_us, os.urandom(10)), held.id, now_us, now_us, expires_us)
            await sessions.add(connection, session, digest(secret))
            await access.mark_used(connection, now_us, held.id)
            await events.append(connection, [_event(now_us, session, "session.opened")])
        return SignedIn(session, principal_of(held), expires_us), secret

    def remembers(self, secret: str) -> bool:
        """Was it good, however long ago?"""
        return digest(secret) in self._seen

    async def recognise(self, secret: str) -> SignedIn:
        """Raises Problem `unauthorized` for a secret that is unknown, and where the session or its token has ended."""
        now_us = self._clock()
        found = await self._find(digest(secret), now_us)
        if found is None or not self._good(*found, now_us):
            raise Problem("unauthorized", "this session has ended; sign in again")
        session, token = found
        return SignedIn(session, principal_of(token), session.expires_us)

    async def close(self, session: Session) -> None:
        """End a session."""
        now_us = self._clock()
        async with self._database.transaction() as connection:
            if await sessions.remove(connection, session.id):
                await events.append(connection, [_event(now_us, session, "session.closed")])
        self.forget()

    async def count_open(self, connection: AsyncConnection, now_us: int) -> dict[str, int]:
        """How many sessions each token has open, by the token's id."""
        return await sessions.count_open(connection, now_us, now_us - self._idle_us)

    def forget(self) -> None:
        """After a session or a token was ended in this process."""
        self._seen.clear()

    def _good(self, session: Session, token: Token, now_us: int) -> bool:
        return token.valid(now_us) and now_us < session.expires_us and now_us - session.seen_us < self._idle_us

    async def _find(self, hashed: bytes, now_us: int) -> tuple[Session, Token] | None:
        now = time.monotonic()
        seen = self._seen.get(hashed)
        if seen is not None and now - seen[0] < _REMEMBER_S:
            return seen[1], seen[2]
        async with self._gate, self._database.transaction() as connection:
            found = await sessions.by_hash(connection, hashed)
            if found is None:  # not remembered: a new one may have it, and who guesses shall not fill the memory
                return None
            session, token = found
            if now_us - session.seen_us >= _TOUCH_US and self._good(session, token, now_us):
                session = replace(session, seen_us=now_us)
                await sessions.touch(connection, session.id, now_us)
                await access.mark_used(connection, now_us, token.id)
        if len(self._seen) >= _REMEMBER_MOST:
            self._seen.clear()
        self._seen[hashed] = (now, session, token)
        return session, token


def _event(now_us: int, session: Session, action: str) -> Event:
    return Event(now_us, session.token_id, action, "session", session.id, None, None)
