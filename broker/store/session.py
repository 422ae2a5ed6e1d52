# SPDX-License-Identifier: Apache-2.0
"""The connection pool and the one commit point: `Database.transaction()`."""

import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import psycopg
from sqlalchemy import event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

# No statement of the broker takes long; a lock held for seconds means that its holder hangs.
_SERVER_OPTIONS = "-c lock_timeout=10s -c statement_timeout=60s -c idle_in_transaction_session_timeout=30s -c timezone=UTC"

# Temporary errors, independent of the statement: 08 connection, 40 serialisation and deadlock, 53 no resources, 57 cancelled or
# shut down, 55P03 lock timeout; 25P02 to 25P04 the server ended a transaction that was idle or took too long, and 25006 it became a
# standby.
_PASSING = ("08", "25006", "25P", "40", "53", "55P03", "57")


class DatabaseAway(Exception):
    """PostgreSQL cannot be reached at present. No answer was given that was not committed; the caller may try again."""


class Taken(Exception):
    """A row with this key exists, or a constraint forbids this one."""


class Unstorable(Exception):
    """PostgreSQL refuses a value or a statement."""


def _dumps(value: Any) -> str:
    return orjson.dumps(value).decode()


def driver_url(url: str) -> str:
    """`postgresql://...` as SQLAlchemy's URL for psycopg 3; ValueError for anything but PostgreSQL."""
    parsed = make_url(url)
    if not parsed.drivername.startswith(("postgresql", "postgres")):
        raise ValueError("BWB_DATABASE_URL must be a postgresql:// URL")
    return parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


class Database:
    """The connections of one process to PostgreSQL."""

    def __init__(self, url: str, pool_size: int = 8) -> None:
        self.engine: AsyncEngine = create_async_engine(
            driver_url(url),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=10,
            json_serializer=_dumps,
            json_deserializer=orjson.loads,
            connect_args={"options": _SERVER_OPTIONS, "connect_timeout": 5, "application_name": "bandwidth-broker"},
        )
        event.listen(self.engine.sync_engine, "checkout", _refuse_dead)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed when the block ends, rolled back when it raises.

        Raises DatabaseAway, Taken or Unstorable in place of the driver's errors.
        """
        try:
            async with self.engine.begin() as connection:
                yield connection
        except (DBAPIError, psycopg.Error) as error:
            raise _translated(error) from error
        except (PoolTimeout, OSError) as error:
            raise DatabaseAway(str(error)) from error

    @asynccontextmanager
    async def rehearsal(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that is always rolled back. Raises like `transaction`."""
        try:
            async with self.engine.connect() as connection:  # returning the connection to the pool rolls back uncommitted changes
                yield connection
        except (DBAPIError, psycopg.Error) as error:
            raise _translated(error) from error
        except (PoolTimeout, OSError) as error:
            raise DatabaseAway(str(error)) from error

    async def close(self) -> None:
        """Close all connections."""
        await self.engine.dispose()


async def read_one_instant(connection: AsyncConnection) -> None:
    """Make the transaction read-only, with all reads from one snapshot. Must be its first statement."""
    await connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))


def _refuse_dead(connection: Any, record: Any, proxy: Any) -> None:  # noqa: ARG001
    """An idle connection has no data to read. If it has, the server ended it: use another one. This check costs no round trip.

    Without it, the first transaction after a restart of PostgreSQL would fail, once for every connection in the pool.
    """
    driver: psycopg.AsyncConnection[Any] = connection.driver_connection
    if not driver.closed:
        waiting = select.poll()
        waiting.register(driver.fileno(), select.POLLIN)
        if not waiting.poll(0):
            return
    raise DisconnectionError("the server has ended this connection")


def _translated(error: DBAPIError | psycopg.Error) -> Exception:
    original = error.orig if isinstance(error, DBAPIError) else error
    sqlstate = str(getattr(original, "sqlstate", None) or "")
    # By SQLSTATE first: psycopg's exception class is less precise than the code (25P03 comes as an InternalError).
    if sqlstate.startswith(_PASSING) or (isinstance(original, psycopg.OperationalError) and not sqlstate):
        return DatabaseAway(type(original).__name__)
    if isinstance(original, psycopg.InterfaceError):
        return DatabaseAway(type(original).__name__)
    if isinstance(original, psycopg.IntegrityError):
        return Taken(str(original))
    return Unstorable(str(original))
