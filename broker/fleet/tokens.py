# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens: they identify the caller and its scopes. A token is shown once, at its creation; the broker stores only its hash."""

import asyncio
import hashlib
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from broker.core.identifiers import identifier
from broker.core.units import US_PER_S
from broker.desk.ground.problems import Problem
from broker.store import access, events
from broker.store.access import Token
from broker.store.events import Event
from broker.store.session import Database

TOKEN_PREFIX = "bwb_"  # noqa: S105
ENROLMENT_PREFIX = "bwe_"
ADMIN_TOKEN_FILE = "admin.token"  # noqa: S105

# A revoked token may still work for this long in a process that has just seen it; the price of not asking the database every time.
_REMEMBER_S = 5.0
_REMEMBER_MOST = 10_000
_LOOK_UPS = 3  # at once
_USED_US = 60 * US_PER_S  # a token's last use is written no more often


class Scope(StrEnum):
    """What a token allows."""

    READ = "read"  # look at everything but secrets
    SUBMIT = "submit"  # book, change and cancel transfers
    OPERATE = "operate"  # links, windows, hosts, other people's transfers
    ADMIN = "admin"  # tokens
    AGENT = "agent"  # an agent, for its own host


# What holding a scope includes. An agent's token is for its own host's calls and nothing else.
IMPLIED = {
    Scope.READ: {Scope.READ},
    Scope.SUBMIT: {Scope.SUBMIT, Scope.READ},
    Scope.OPERATE: {Scope.OPERATE, Scope.SUBMIT, Scope.READ},
    Scope.ADMIN: {Scope.ADMIN, Scope.READ},
    Scope.AGENT: {Scope.AGENT},
}


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling. `id` is the token's id and owns what it books."""

    id: str
    name: str
    scopes: frozenset[Scope]
    host: str | None
    limits: Mapping[str, int | str] = field(default_factory=dict)  # its own; `allowance` knows the others

    def may(self, scope: Scope) -> bool:
        """Does any of its scopes include this one?"""
        return any(scope in IMPLIED[held] for held in self.scopes)


def principal_of(token: Token) -> Principal:
    """Who calls with this token."""
    return Principal(token.id, token.name, frozenset(Scope(scope) for scope in token.scopes), token.host, token.limits or {})


def digest(token: str) -> bytes:
    """SHA-256 of a token: what the database keeps in its place."""
    return hashlib.sha256(token.encode()).digest()


def new_secret(prefix: str) -> str:
    """A new random token of 256 bits, with a prefix that says what it is for."""
    return prefix + secrets.token_urlsafe(32)


class Access:
    """Recognises tokens. Caches lookups for a few seconds; unknown tokens apart, so that they cannot evict valid ones.

    Few look-ups run at once: who tries tokens out shall not take the database's connections from everybody.
    """

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock
        self._seen: OrderedDict[bytes, tuple[float, Token]] = OrderedDict()
        self._unknown: OrderedDict[bytes, float] = OrderedDict()
        self._gate = asyncio.Semaphore(_LOOK_UPS)

    async def principal(self, token: str) -> Principal:
        """Raises Problem `unauthorized` for a token that is unknown, revoked or too old."""
        found = await self._find(digest(token))
        if found is None or not found.valid(self._clock()):
            raise Problem("unauthorized", "this token is unknown, revoked or has expired")
        return principal_of(found)

    def remembers(self, token: str) -> bool:
        """Was it good, however long ago?"""
        seen = self._seen.get(digest(token))
        return seen is not None and seen[1].valid(self._clock())

    async def _find(self, hashed: bytes) -> Token | None:
        fresh, token = self._recall(hashed)
        if fresh:
            return token
        async with self._gate:
            fresh, token = self._recall(hashed)  # while we waited another one may have looked
            if fresh:
                return token
            async with self._database.transaction() as connection:
                token = await access.token_by_hash(connection, hashed)
                now_us = self._clock()
                if token is not None and token.valid(now_us) and now_us - (token.used_us or 0) >= _USED_US:
                    await access.mark_used(connection, now_us, token.id)
            self._keep(hashed, token)
        return token

    def _recall(self, hashed: bytes) -> tuple[bool, Token | None]:
        """(is it known well enough, what it is)"""
        since = time.monotonic() - _REMEMBER_S
        seen = self._seen.get(hashed)
        if seen is not None and seen[0] > since:
            return True, seen[1]
        return self._unknown.get(hashed, since) > since, None

    def _keep(self, hashed: bytes, token: Token | None) -> None:
        now = time.monotonic()
        self._seen.pop(hashed, None)
        self._unknown.pop(hashed, None)
        if token is None:
            self._unknown[hashed] = now
            if len(self._unknown) > _REMEMBER_MOST:
                self._unknown.popitem(last=False)
            return
        self._seen[hashed] = (now, token)
        if len(self._seen) > _REMEMBER_MOST:
            self._seen.popitem(last=False)

    def forget(self) -> None:
        """After a revocation in this process."""
        self._seen.clear()
        self._unknown.clear()


async def create(
    database: Database,
    now_us: int,
    *,
    name: str,
    scopes: tuple[Scope, ...],
    actor: str,
    host: str | None = None,
    expires_us: int | None = None,
    limits: Mapping[str, int | str] | None = None,
) -> tuple[Token, str]:
    """A new token: (its row, the secret to show once)."""
    secret = new_secret(TOKEN_PREFIX)
    given = tuple(str(scope) for scope in scopes)
    token = Token(identifier("tok", now_us, os.urandom(10)), name, given, host, now_us, expires_us, None, limits=limits or None)
    async with database.transaction() as connection:
        await access.insert_token(connection, token, digest(secret))
        shown = {"name": name, "scopes": list(token.scopes), "host": host} | ({"limits": dict(limits)} if limits else {})
        await events.append(connection, [Event(now_us, actor, "token.created", "token", token.id, None, shown)])
    return token, secret


async def change_limits(
    database: Database, now_us: int, token_id: str, changes: Mapping[str, int | str | None], revision: int | None, actor: str
) -> Token:
    """Set limits by name; None: back to the default. Raises Problem where there is no such token, or it is another revision."""
    async with database.transaction() as connection:
        token = await access.token_by_id(connection, token_id, lock=True)
        if token is None or token.revoked_us is not None:
            raise Problem("not-found", f"there is no valid token {token_id[:64]!r}")
        if revision is not None and revision != token.revision:
            detail = f"the token is at revision {token.revision} now; read it again"
            raise Problem("precondition-failed", detail, {"revision": token.revision})
        before = dict(token.limits or {})
        limits = {name: value for name, value in {**before, **changes}.items() if value is not None}
        if limits == before:
            return token
        event = Event(now_us, actor, "token.changed", "token", token_id, {"limits": before}, {"limits": limits})
        await events.append(connection, [event])
        return await access.set_limits(connection, token, limits)


async def revoke(database: Database, now_us: int, token_id: str, actor: str) -> None:
    """End a token. Raises Problem where there is no valid one of this id."""
    async with database.transaction() as connection:
        if not await access.revoke(connection, now_us, token_id=token_id):
            raise Problem("not-found", f"there is no valid token {token_id}")
        await events.append(connection, [Event(now_us, actor, "token.revoked", "token", token_id, None, None)])


async def first_admin_token(database_url: str, state_dir: Path) -> None:
    """Make sure that DIR/admin.token (mode 0600) holds a valid token with all scopes. A lost or revoked one is replaced."""
    path = state_dir / ADMIN_TOKEN_FILE
    database = Database(database_url, pool_size=2)
    now_us = time.time_ns() // 1000
    try:
        if path.exists():
            async with database.transaction() as connection:
                known = await access.token_by_hash(connection, digest(path.read_text().strip()))
            if known is not None and known.valid(now_us):
                return
        scopes = (Scope.READ, Scope.SUBMIT, Scope.OPERATE, Scope.ADMIN)
        _, secret = await create(database, now_us, name="first admin", scopes=scopes, actor="bwb up")
        _write_private(path, secret + "\n")
    finally:
        await database.close()


def _write_private(path: Path, content: str) -> None:
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
