# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens and one-time enrolment tokens. Only SHA-256 hashes are stored: they are random 256-bit strings, not passwords."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import and_, exists, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.store.tables import enrolment_tokens, tokens


@dataclass(frozen=True, slots=True)
class Token:
    """A row of `tokens` without its hash."""

    id: str
    name: str
    scopes: tuple[str, ...]
    host: str | None
    created_us: int
    expires_us: int | None
    revoked_us: int | None
    used_us: int | None = None
    limits: Mapping[str, int | str] | None = None  # None: the defaults apply
    revision: int = 1

    def valid(self, now_us: int) -> bool:
        """True if the token is neither revoked nor expired."""
        return self.revoked_us is None and (self.expires_us is None or now_us < self.expires_us)


@dataclass(frozen=True, slots=True)
class EnrolmentToken:
    """A row of `enrolment_tokens`."""

    id: str
    host: str
    node: str
    nic_bps: int
    created_us: int
    expires_us: int
    used_us: int | None = None
    revoked_us: int | None = None


_TOKEN = select(*(tokens.c[name] for name in Token.__slots__))


def _token(row: object) -> Token:
    values = list(row)  # type: ignore[call-overload]
    values[2] = tuple(values[2])
    return Token(*values)


async def insert_token(connection: AsyncConnection, token: Token, digest: bytes) -> None:
    """Store a token; `digest`: SHA-256 of its secret."""
    values = {name: getattr(token, name) for name in Token.__slots__}
    await connection.execute(insert(tokens).values(**(values | {"scopes": list(token.scopes), "hash": digest})))


async def token_by_hash(connection: AsyncConnection, digest: bytes) -> Token | None:
    """The token with this SHA-256, valid or not; None if there is none."""
    row = (await connection.execute(_TOKEN.where(tokens.c.hash == digest))).one_or_none()
    return None if row is None else _token(row)


async def list_tokens(connection: AsyncConnection) -> list[Token]:
    """All tokens, the oldest first."""
    return [_token(row) for row in await connection.execute(_TOKEN.order_by(tokens.c.created_us, tokens.c.id))]


async def token_by_id(connection: AsyncConnection, token_id: str, *, lock: bool = False) -> Token | None:
    """The token, or None; with `lock`, its row is locked until the transaction ends."""
    query = _TOKEN.where(tokens.c.id == token_id)
    row = (await connection.execute(query.with_for_update() if lock else query)).one_or_none()
    return None if row is None else _token(row)


async def set_limits(connection: AsyncConnection, token: Token, limits: Mapping[str, int | str]) -> Token:
    """Set the limits and return the changed token; its row must be locked."""
    changed = replace(token, limits=limits or None, revision=token.revision + 1)
    values = {"limits": changed.limits, "revision": changed.revision}
    await connection.execute(update(tokens).where(tokens.c.id == token.id).values(**values))
    return changed


async def mark_used(connection: AsyncConnection, now_us: int, token_id: str) -> None:
    """Store when a token was last used."""
    await connection.execute(update(tokens).where(tokens.c.id == token_id).values(used_us=now_us))


async def revoke(connection: AsyncConnection, now_us: int, *, token_id: str | None = None, host: str | None = None) -> int:
    """Revoke one token, or all of a host; returns how many were valid before."""
    condition = tokens.c.id == token_id if token_id is not None else tokens.c.host == host
    result = await connection.execute(update(tokens).where(condition, tokens.c.revoked_us.is_(None)).values(revoked_us=now_us))
    return int(result.rowcount)


async def insert_enrolment(connection: AsyncConnection, token: EnrolmentToken, digest: bytes) -> None:
    """Store an enrolment token; `digest`: SHA-256 of its secret."""
    values = {name: getattr(token, name) for name in EnrolmentToken.__slots__}
    await connection.execute(insert(enrolment_tokens).values(**values, hash=digest))


_ENROLMENT = select(*(enrolment_tokens.c[name] for name in EnrolmentToken.__slots__))
_OPEN = and_(enrolment_tokens.c.used_us.is_(None), enrolment_tokens.c.revoked_us.is_(None))


async def list_enrolments(connection: AsyncConnection) -> list[EnrolmentToken]:
    """All enrolment tokens, the newest first."""
    query = _ENROLMENT.order_by(enrolment_tokens.c.created_us.desc(), enrolment_tokens.c.id.desc())
    return [EnrolmentToken(*row) for row in await connection.execute(query)]


async def revoke_enrolments(
    connection: AsyncConnection, now_us: int, *, token_id: str | None = None, host: str | None = None
) -> list[EnrolmentToken]:
    """Revoke one unused enrolment token, or all unused ones of a host; returns those that were open before."""
    condition = enrolment_tokens.c.id == token_id if token_id is not None else enrolment_tokens.c.host == host
    columns = [enrolment_tokens.c[name] for name in EnrolmentToken.__slots__]
    revoked = update(enrolment_tokens).where(condition, _OPEN).values(revoked_us=now_us).returning(*columns)
    return [EnrolmentToken(*row) for row in await connection.execute(revoked)]


async def is_open(connection: AsyncConnection, digest: bytes, now_us: int) -> bool:
    """True if the enrolment token can be used now."""
    could = (enrolment_tokens.c.hash == digest) & _OPEN & (enrolment_tokens.c.expires_us > now_us)
    return bool((await connection.execute(select(exists().where(could)))).scalar_one())


async def use_enrolment(connection: AsyncConnection, digest: bytes, now_us: int) -> EnrolmentToken | None:
    """Use up an enrolment token: None if it is unknown, used, revoked or expired. Of two concurrent calls, one gets it."""
    columns = [enrolment_tokens.c[name] for name in EnrolmentToken.__slots__]
    row = (
        await connection.execute(
            update(enrolment_tokens)
            .where(
                enrolment_tokens.c.hash == digest,
                _OPEN,
                enrolment_tokens.c.expires_us > now_us,
            )
            .values(used_us=now_us)
            .returning(*columns)
        )
    ).one_or_none()
    return None if row is None else EnrolmentToken(*row)
