# SPDX-License-Identifier: Apache-2.0
"""Sessions of the dashboard, which a browser holds instead of a token. As with tokens, only hashes are stored."""

from dataclasses import dataclass, fields

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.store.access import Token
from broker.store.tables import sessions, tokens


@dataclass(frozen=True, slots=True)
class Session:
    """A row of `sessions` without its hash."""

    id: str
    token_id: str
    created_us: int
    seen_us: int
    expires_us: int


_SESSION = [sessions.c[field.name] for field in fields(Session)]
_TOKEN = [tokens.c[field.name] for field in fields(Token)]
_BOTH = select(*_SESSION, *_TOKEN).join(tokens, tokens.c.id == sessions.c.token_id)


async def add(connection: AsyncConnection, session: Session, digest: bytes) -> None:
    """Store a session; `digest`: SHA-256 of its secret."""
    values = {field.name: getattr(session, field.name) for field in fields(Session)}
    await connection.execute(insert(sessions).values(**values, hash=digest))


async def by_hash(connection: AsyncConnection, digest: bytes) -> tuple[Session, Token] | None:
    """The session with this SHA-256, and its token; None if there is none."""
    row = (await connection.execute(_BOTH.where(sessions.c.hash == digest))).one_or_none()
    if row is None:
        return None
    values = list(row)
    token = dict(zip((field.name for field in fields(Token)), values[len(_SESSION) :], strict=True))
    return Session(*values[: len(_SESSION)]), Token(**(token | {"scopes": tuple(token["scopes"])}))


async def touch(connection: AsyncConnection, session_id: str, now_us: int) -> None:
    """Store that the session was used at `now_us`."""
    await connection.execute(update(sessions).where(sessions.c.id == session_id).values(seen_us=now_us))


async def count_open(connection: AsyncConnection, now_us: int, used_since_us: int) -> dict[str, int]:
    """The number of open sessions of each token; tokens without one are left out."""
    is_open = (sessions.c.expires_us > now_us) & (sessions.c.seen_us > used_since_us)
    query = select(sessions.c.token_id, func.count()).where(is_open).group_by(sessions.c.token_id)
    return {row[0]: row[1] for row in await connection.execute(query)}


async def remove(connection: AsyncConnection, session_id: str) -> bool:
    """Delete a session; returns False if there was none."""
    return bool((await connection.execute(delete(sessions).where(sessions.c.id == session_id))).rowcount)
