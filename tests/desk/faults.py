# SPDX-License-Identifier: Apache-2.0
"""Ways in which PostgreSQL can leave us in the middle of a transaction. Each strikes once, then all works again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

import psycopg

from broker.store import bookings, bulk, decisions, transfers
from broker.store.bulk import driver

FAULTS = ("killed while reading", "killed before the writes", "killed after the writes", "before commit", "after commit")
AMONG_THE_COPIES = "killed among the copies"  # where there are many rows


@contextmanager
def fault(kind: str) -> Iterator[None]:
    target: Any
    if kind == "before commit":
        target, name, strike = psycopg.AsyncConnection, "commit", _lost_before
    elif kind == "after commit":
        target, name, strike = psycopg.AsyncConnection, "commit", _lost_after
    else:
        target, name = {
            "killed while reading": (bookings, "lock"),
            "killed before the writes": (transfers, "update"),
            AMONG_THE_COPIES: (bulk, "append"),
            "killed after the writes": (decisions, "append"),
        }[kind]
        strike = _killed
    with patch.object(target, name, _once(getattr(target, name), strike)):
        yield


def _once(real: Callable[..., Any], strike: Callable[..., Any]) -> Callable[..., Any]:
    left = [strike]

    async def wrapped(*given: Any, **named: Any) -> Any:
        return await (left.pop()(real, *given, **named) if left else real(*given, **named))

    return wrapped


async def _killed(real: Callable[..., Any], connection: Any, *given: Any, **named: Any) -> Any:
    """As when an administrator, a crash or a network ends the session: what was written is gone, and the next statement finds out."""
    result = await real(connection, *given, **named)
    with suppress(psycopg.Error):
        await driver(connection).execute("SELECT pg_terminate_backend(pg_backend_pid())")
    return result


async def _lost_before(real: Callable[..., Any], connection: psycopg.AsyncConnection[Any]) -> None:
    await connection.close()
    raise psycopg.OperationalError("server closed the connection unexpectedly")


async def _lost_after(real: Callable[..., Any], connection: psycopg.AsyncConnection[Any]) -> None:
    """The worst: committed, and nobody hears of it."""
    await real(connection)
    await connection.close()
    raise psycopg.OperationalError("server closed the connection unexpectedly")
