# SPDX-License-Identifier: Apache-2.0
"""The pool outlives its server: what was not begun when PostgreSQL went is not lost when it is back. And rehearsals leave nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import psycopg
import pytest
from psycopg.waiting import Wait
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.store.session import Database, DatabaseAway, Unstorable


async def _number(database: Database, number: int) -> int:
    async with database.transaction() as connection:
        await connection.execute(text("SELECT pg_sleep(0.02)"))  # so that all of them are in use at once
        return int((await connection.execute(text("SELECT CAST(:number AS int)"), {"number": number})).scalar_one())


async def test_no_transaction_fails_because_the_server_was_restarted_before_it_began(database: Database, database_url: str) -> None:
    async def some() -> None:
        assert sorted(await asyncio.gather(*(_number(database, n) for n in range(16)))) == list(range(16))

    await some()
    assert database.engine.sync_engine.pool.checkedin() == 8  # type: ignore[attr-defined]
    async with await psycopg.AsyncConnection.connect(database_url) as administrator:
        # As in a restart: every session ends.
        ended = await administrator.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert len(await ended.fetchall()) == 8
    await asyncio.sleep(0.1)
    await some()


async def test_a_rehearsal_is_rolled_back(database: Database) -> None:
    async with database.rehearsal() as connection:
        await connection.execute(text("UPDATE topology SET version = version + 7"))
        assert (await connection.execute(text("SELECT version FROM topology"))).scalar_one() == 7
    async with database.transaction() as connection:
        assert (await connection.execute(text("SELECT version FROM topology"))).scalar_one() == 0


async def _idle(connection: AsyncConnection) -> None:
    """Longer than the server waits for the next statement: as an event loop that is kept busy."""
    await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '10ms'"))
    raw = await connection.get_raw_connection()
    driver = raw.driver_connection
    assert driver is not None
    await asyncio.wait_for(driver.wait(_readable()), 10)
    await connection.execute(text("SELECT 1"))


def _readable() -> Generator[Any, Any, Any]:
    """For psycopg: until the server says something by itself."""
    yield Wait.R


async def _slow(connection: AsyncConnection) -> None:
    await connection.execute(text("SET LOCAL statement_timeout = '10ms'"))
    await connection.execute(text("SELECT pg_sleep(10)"))


async def _standby(connection: AsyncConnection) -> None:
    """As on a server that has just become one."""
    await connection.execute(text("SET TRANSACTION READ ONLY"))
    await connection.execute(text("UPDATE topology SET version = version"))


@pytest.mark.parametrize("passing", [_idle, _slow, _standby])
async def test_what_passes_is_no_fault_of_the_request(
    database: Database, passing: Callable[[AsyncConnection], Awaitable[None]]
) -> None:
    with pytest.raises(DatabaseAway):
        async with database.transaction() as connection:
            await passing(connection)
    async with database.transaction() as connection:
        assert (await connection.execute(text("SELECT 1"))).scalar_one() == 1


async def test_what_will_never_be_stored_says_so(database: Database) -> None:
    with pytest.raises(Unstorable):
        async with database.transaction() as connection:
            await connection.execute(text("SELECT CAST('many' AS bigint)"))
