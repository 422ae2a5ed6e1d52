# SPDX-License-Identifier: Apache-2.0
"""Migrations: they make what `tables` says, and may be run again, at once and by several."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from broker.store import migrate
from tests.postgres import Server


@pytest.fixture
def empty(postgres: Server):  # type: ignore[no-untyped-def]
    """A database without a schema."""
    url = postgres.url("empty")
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE empty")
    yield url
    postgres.drop(url)


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


def test_migrations_and_tables_say_the_same(database_url: str) -> None:
    assert migrate.drift(database_url) == []


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE hosts DROP COLUMN clock", "CREATE TABLE more (x int)", "DROP INDEX ix_ledger_transfer", "ALTER TABLE links ALTER slot_us TYPE int"],
)
def test_a_difference_is_seen(database_url: str, change: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(change)
    assert migrate.drift(database_url)


def test_upgrading_twice_changes_nothing(empty: str) -> None:
    migrate.upgrade(empty)
    with psycopg.connect(empty) as connection:
        connection.execute("UPDATE topology SET version = 7")
    before = tables(empty)
    migrate.upgrade(empty)
    assert tables(empty) == before and "ledger" in before
    with psycopg.connect(empty) as connection:
        assert connection.execute("SELECT version FROM topology").fetchall() == [(7,)]


def test_several_upgrade_at_once(empty: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: migrate.upgrade(empty), range(4))) == [None] * 4
    assert migrate.drift(empty) == []
