# SPDX-License-Identifier: Apache-2.0
"""Migrations give the tables that the code has, and may be run by anybody at any time."""

from concurrent.futures import ThreadPoolExecutor

import psycopg

from broker.store import migrate
from tests.postgres import Server


def test_migrations_and_tables_say_the_same(database_url: str) -> None:
    assert migrate.find_drift(database_url) == []


def test_drift_would_be_seen(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("ALTER TABLE transfers DROP COLUMN label")
        connection.execute("DROP INDEX ix_transfers_live")
    assert len(migrate.find_drift(database_url)) == 2


def test_upgrading_again_changes_nothing(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE topology SET version = 5")
    migrate.upgrade(database_url)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT version FROM topology").fetchall() == [(5,)]
    assert migrate.find_drift(database_url) == []


def test_several_processes_upgrade_one_empty_database(postgres: Server) -> None:
    url = postgres.url("postgres")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE bare")
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(migrate.upgrade, [postgres.url("bare")] * 4))
        assert migrate.find_drift(postgres.url("bare")) == []
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP DATABASE bare")
