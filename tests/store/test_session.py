# SPDX-License-Identifier: Apache-2.0
"""The pool outlives its server: what was not begun when PostgreSQL went is not lost when it is back."""

import asyncio

from sqlalchemy import text

from broker.store.session import Database
from tests.postgres import temporary_server


async def _number(database: Database, number: int) -> int:
    async with database.transaction() as connection:
        await connection.execute(text("SELECT pg_sleep(0.02)"))  # so that all of them are in use at once
        return int((await connection.execute(text("SELECT CAST(:number AS int)"), {"number": number})).scalar_one())


async def test_no_transaction_fails_because_the_server_was_restarted_before_it_began() -> None:
    with temporary_server(durable=True) as server:
        database = Database(server.new_database(), pool_size=4)
        try:
            for restart in range(2):
                assert sorted(await asyncio.gather(*(_number(database, n) for n in range(8)))) == list(range(8))
                assert database.engine.sync_engine.pool.checkedin() == 4, restart  # type: ignore[attr-defined]
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            assert sorted(await asyncio.gather(*(_number(database, n) for n in range(8)))) == list(range(8))
        finally:
            await database.close()


async def test_a_rehearsal_is_rolled_back(database: Database) -> None:
    async with database.rehearsal() as connection:
        await connection.execute(text("UPDATE topology SET version = version + 7"))
        assert (await connection.execute(text("SELECT version FROM topology"))).scalar_one() == 7
    async with database.transaction() as connection:
        assert (await connection.execute(text("SELECT version FROM topology"))).scalar_one() == 0
