# SPDX-License-Identifier: Apache-2.0
"""The pool outlives its server: what was not begun when PostgreSQL went is not lost when it is back. And rehearsals leave nothing."""

import asyncio

import psycopg
from sqlalchemy import text

from broker.store.session import Database


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
