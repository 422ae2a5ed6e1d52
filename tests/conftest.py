# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a real PostgreSQL per test process, a fresh migrated database per test, the application on it, and tokens."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from broker.fleet import tokens
from broker.fleet.tokens import Scope
from broker.store.session import Database
from tests.postgres import Server, temporary_server
from tests.service import Clock, Service, client_of, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with temporary_server() as server:
        yield server


@pytest.fixture
def database_url(postgres: Server) -> Iterator[str]:
    url = postgres.new_database()
    yield url
    postgres.drop(url)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = Database(database_url)
    yield database
    await database.close()


@pytest.fixture
async def service(database_url: str, database: Database, clock: Clock) -> AsyncIterator[Service]:
    every = (Scope.READ, Scope.SUBMIT, Scope.OPERATE, Scope.ADMIN)
    _, secret = await tokens.create(database, clock(), name="all", scopes=every, actor="test")
    async with running(database_url, clock) as app, asyncio.timeout(120):
        yield Service(app, client_of(app, secret), database, clock)
