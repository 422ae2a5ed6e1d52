# SPDX-License-Identifier: Apache-2.0
"""The application on a database and a clock of its own, clients of it, and what tests say of its answers."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from fastapi import FastAPI

from broker.core.units import format_time
from broker.fleet import tokens
from broker.fleet.tokens import Scope
from broker.main import create_app
from broker.settings import Settings
from broker.store.session import Database

START_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
SECRET = "s" * 40


@dataclass
class Clock:
    """A clock that tests move."""

    now_us: int = START_US

    def __call__(self) -> int:
        self.now_us += 1  # two readings are never equal, as on a real clock
        return self.now_us

    def advance(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)


def checked(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, (response.status_code, response.text)
    return response.json() if response.content else None


def client_of(app: FastAPI, token: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # Faults of ours shall show as the 500 that a caller would see, not as a traceback of the test.
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://broker", headers=headers)


@dataclass
class Service:
    """A running application and a client with all scopes."""

    app: FastAPI
    client: httpx.AsyncClient
    database: Database
    clock: Clock
    _made: dict[str, httpx.AsyncClient] = field(default_factory=dict)

    def as_token(self, token: str) -> httpx.AsyncClient:
        if token not in self._made:
            self._made[token] = client_of(self.app, token)
        return self._made[token]

    async def token(self, *scopes: Scope, host: str | None = None) -> str:
        made = await tokens.create(self.database, self.clock(), name="test", scopes=scopes, actor="test", host=host)
        return made[1]

    async def link(
        self, link_id: str = "L1", source: str = "A", target: str = "B", capacity_bps: int = 10**9, **more: Any
    ) -> dict[str, Any]:
        body = {"id": link_id, "source": source, "target": target, "capacity_bps": capacity_bps, **more}
        return checked(await self.client.post("/v1/links", json=body), 201)

    async def book(self, volume_bytes: int = 125_000_000, **more: Any) -> dict[str, Any]:
        body = {"source": "A", "destination": "B", "volume_bytes": volume_bytes, **more}
        return checked(await self.client.post("/v1/transfers", json=body), 201)

    async def enrol(self, host: str, node: str, nic_bps: int = 10**10) -> httpx.AsyncClient:
        """Enrol a host as its agent would; a client that speaks for it."""
        body = {"host": host, "node": node, "nic_bps": nic_bps}
        secret = checked(await self.client.post("/v1/hosts/enrolment-tokens", json=body), 201)["token"]
        enrolment = {"token": secret, "data_address": "127.0.0.1:7411"}
        return self.as_token(checked(await client_of(self.app, "").post("/v1/agents/enrol", json=enrolment), 201)["agent_token"])

    async def audit(self) -> None:
        """No invariant is broken, by SQL alone."""
        found = checked(await self.client.get("/v1/audit"))
        assert found["clean"], found["violations"]


@asynccontextmanager
async def running(database_url: str, clock: Callable[[], int], **options: Any) -> AsyncIterator[FastAPI]:
    """An application with its desk at work. Any number may run on one database."""
    # Tests of other things see what they did themselves.
    given: dict[str, Any] = {"pull_forward": "off", "planning_workers": 0} | options
    app = create_app(Settings(database_url=database_url, secret_key=SECRET, **given), clock)
    async with app.router.lifespan_context(app):
        yield app


def at(seconds: float) -> str:
    return format_time(START_US + int(seconds * 1_000_000))
