# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys: claimed in the transaction that decides, so a key and its bookings exist together or not at all."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.store import bulk
from broker.store.tables import idempotency_keys


class Key(NamedTuple):
    """`owner` is the caller (keys of different callers never collide), `body_hash` distinguishes a repetition from a misuse."""

    owner: str
    key: str
    body_hash: bytes


class Known(NamedTuple):
    """The answer to a key's first use, and the hash of that request's body."""

    body_hash: bytes
    answer: Any


_KNOWN = text("""
    SELECT k.owner, k.key, k.body_hash, k.answer FROM idempotency_keys k
    JOIN unnest(CAST(:owners AS text[]), CAST(:keys AS text[])) AS asked(owner, key) ON k.owner = asked.owner AND k.key = asked.key""")
_ANSWER = text("""
    UPDATE idempotency_keys k SET answer = CAST(new.answer AS jsonb)
    FROM unnest(CAST(:owners AS text[]), CAST(:keys AS text[]), CAST(:answers AS text[])) AS new(owner, key, answer)
    WHERE k.owner = new.owner AND k.key = new.key""")

_GIVE_BACK = text("""
    DELETE FROM idempotency_keys k USING unnest(CAST(:owners AS text[]), CAST(:keys AS text[])) AS given(owner, key)
    WHERE k.owner = given.owner AND k.key = given.key""")


async def claim(connection: AsyncConnection, keys: Sequence[Key], now_us: int) -> dict[tuple[str, str], Known]:
    """Claim new keys; returns those that were used before, with their answers.

    If another desk is deciding on a key, this waits for its transaction. Keys are claimed in order, so that desks cannot deadlock.
    """
    rows = sorted({(key.owner, key.key): (*key, now_us) for key in keys}.values())
    taken = await bulk.insert(
        connection,
        idempotency_keys,
        ("owner", "key", "body_hash", "created_us"),
        rows,
        "ON CONFLICT DO NOTHING RETURNING owner, key",
    )
    fresh = {(owner, key) for owner, key in taken}
    used = [key for key in keys if key[:2] not in fresh]
    if not used:
        return {}
    found = await connection.execute(_KNOWN, {"owners": [key.owner for key in used], "keys": [key.key for key in used]})
    return {(row.owner, row.key): Known(bytes(row.body_hash), row.answer) for row in found}


async def remember(connection: AsyncConnection, answers: Sequence[tuple[Key, Any]]) -> None:
    """Store the answers of keys that this transaction has claimed."""
    if answers:
        parameters = {
            "owners": [key.owner for key, _ in answers],
            "keys": [key.key for key, _ in answers],
            "answers": [orjson.dumps(answer).decode() for _, answer in answers],
        }
        await connection.execute(_ANSWER, parameters)


async def give_back(connection: AsyncConnection, keys: Sequence[Key]) -> None:
    """Release keys that this transaction has claimed but does not decide on."""
    if keys:
        await connection.execute(_GIVE_BACK, {"owners": [key.owner for key in keys], "keys": [key.key for key in keys]})
