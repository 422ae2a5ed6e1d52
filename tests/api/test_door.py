# SPDX-License-Identifier: Apache-2.0
"""Who may come in before a body is read, how often, and how much he may bring."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import QueuePool

from broker.api.door import Door, Rates
from broker.api.rates import Buckets
from broker.desk.ground.problems import Problem
from broker.fleet.tokens import Scope
from broker.store import access as tokens_in_store
from broker.store import bookings
from broker.store.session import Database, DatabaseAway
from tests.api.bodies import GOOD, JSON
from tests.api.problems import problem
from tests.service import Clock, Service, checked, client_of, running

UNREAD = ("/v1/transfers", "/v1/transfers/batch", "/v1/quotes", "/v1/simulations", "/v1/agents/h/reports", "/v1/none")


@pytest.mark.parametrize("path", UNREAD)
async def test_a_stranger_brings_no_body_in(path: str, service: Service) -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("it was read")
        yield b""

    for token in ("", "bwb_wrong"):
        answer = await client_of(service.app, token).post(path, content=never(), headers=JSON)
        problem(answer, 401, "unauthorized")
        assert answer.headers["connection"] == "close" and answer.headers["www-authenticate"] == "Bearer"


async def test_nobody_is_a_stranger_because_the_database_is_away(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart without PostgreSQL no token is known: that is no reason to count its callers among those who try tokens out."""
    access = service.app.state.broker.access

    async def away(*_: object) -> None:
        raise DatabaseAway("gone")

    with monkeypatch.context() as gone:
        gone.setattr(tokens_in_store, "token_by_hash", away)
        access.forget()
        for _ in range(60):
            problem(await service.client.get("/v1/links"), 503, "unavailable")
    checked(await service.client.get("/v1/links"))


async def test_few_visitors_are_worked_on_at_once(service: Service) -> None:
    """And whoever does not read his answer keeps nobody from getting one."""
    working, most, begun, read = 0, 0, 0, asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal working, most, begun
        working += 1
        most = max(most, working)
        for _ in range(5):
            await asyncio.sleep(0)
        working -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun += 1
        await read.wait()

    async def ignore(message: Any = None) -> Any:
        return message

    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/docs", "headers": [], "query_string": b"", "scheme": "http"}
    scope |= {"client": ("192.0.2.1", 1), "server": ("broker", 80), "app": service.app}
    door = Door(app, Rates.of(service.app.state.settings))
    visits = [asyncio.create_task(door({**scope}, ignore, ignore)) for _ in range(40)]
    async with asyncio.timeout(10):
        while begun < len(visits):
            await asyncio.sleep(0)
    assert 1 < most <= 4
    read.set()
    await asyncio.gather(*visits)


async def test_bodies_of_those_without_a_token_are_small(service: Service) -> None:
    stranger = client_of(service.app, "")
    for path in ("/v1/session", "/v1/agents/enrol"):
        found = problem(await stranger.post(path, content=b'{"0":1,' * 5000, headers=JSON), 413, "too-large")
        assert found["limit_bytes"] == 32 * 1024


async def test_values_are_counted_before_they_are_parsed(service: Service) -> None:
    many = b"[" + b"{}," * 2_700_000 + b"{}]"
    found = problem(await service.client.post("/v1/transfers/batch", content=many, headers=JSON), 413, "too-large")
    assert found["limit"] < 500_000
    many = b'{"source":[' + b"1," * 30_000 + b"1]}"
    problem(await service.client.post("/v1/transfers", content=many, headers=JSON), 413, "too-large")


async def test_a_crowd_of_mistakes_is_told_in_a_few(service: Service) -> None:
    bodies: list[tuple[str, str, Any]] = [
        ("POST", "/v1/transfers", {str(number): 1 for number in range(3000)}),
        ("POST", "/v1/transfers/batch", [{}] * 9000),
        ("POST", "/v1/transfers/batch", [GOOD | {str(number): 1 for number in range(3000)}]),
        ("PUT", "/v1/topology", {"links": [{}] * 9000}),
        ("POST", "/v1/links", {"id": "L", "source": "A", "target": "B", "capacity_bps": 1, "available": [{}] * 50_000}),
    ]
    for method, path, body in bodies:
        answer = await service.client.request(method, path, content=json.dumps(body), headers=JSON)
        found = problem(answer, 422, "invalid")
        assert 1 <= len(found["errors"]) <= 20 and found.get("errors_total", 0) < 100 and len(answer.content) < 8000


async def test_mistakes_of_a_batch_name_their_items(service: Service) -> None:
    found = problem(await service.client.post("/v1/transfers/batch", json=[GOOD, {}, GOOD | {"source": 5}]), 422, "invalid")
    assert [error["field"] for error in found["errors"]] == ["1.source", "1.destination", "2.source"]


async def test_a_token_is_limited_with_headers_that_say_how(database_url: str, service: Service, clock: Clock) -> None:
    token, other = await service.token(Scope.READ), await service.token(Scope.READ)
    async with running(database_url, clock, token_rate=0.001, token_burst=3) as app:
        for _ in range(3):
            checked(await client_of(app, token).get("/v1/planners"))
        refused = await client_of(app, token).get("/v1/planners")
        problem(refused, 429, "too-many-requests")
        assert int(refused.headers["retry-after"]) > 0
        assert refused.headers["ratelimit-policy"] == '"token";q=3;w=3000'
        assert refused.headers["ratelimit"].startswith('"token";r=0;t=')
        checked(await client_of(app, other).get("/v1/planners"))


async def test_unknown_tokens_use_up_their_address_and_hold_up_nobody_who_is_known(
    database_url: str, service: Service, clock: Clock
) -> None:
    token = await service.token(Scope.READ)
    async with running(database_url, clock, unknown_rate=0.001, unknown_burst=3) as app:
        checked(await client_of(app, token).get("/v1/planners"))
        for number in range(3):
            problem(await client_of(app, f"bwb_{number}").get("/v1/planners"), 401, "unauthorized")
        problem(await client_of(app, "bwb_4").get("/v1/planners"), 429, "too-many-requests")
        assert await _look_ups(app, "bwb_5") == 0
        checked(await client_of(app, token).get("/v1/planners"))


async def _look_ups(app: FastAPI, token: str) -> int:
    database: Database = app.state.broker.database
    pool = database.engine.pool
    assert isinstance(pool, QueuePool)
    before = pool.checkedout()
    problem(await client_of(app, token).get("/v1/planners"), 429, "too-many-requests")
    return pool.checkedout() - before


async def test_pages_and_health_are_limited_by_address(database_url: str, service: Service, clock: Clock) -> None:
    async with running(database_url, clock, address_rate=0.001, address_burst=2) as app:
        for _ in range(2):
            checked(await client_of(app, "").get("/healthz"))
        problem(await client_of(app, "").get("/healthz"), 429, "too-many-requests")


async def test_the_desk_goes_on_when_all_other_connections_are_taken(service: Service) -> None:
    await service.link()
    await service.book()
    pool = service.app.state.broker.database.engine
    held = [await pool.connect() for _ in range(service.app.state.settings.database_pool)]
    try:
        checked(await service.client.post("/v1/transfers", json=GOOD), 201)
    finally:
        for one in held:
            await one.close()


async def test_a_wrong_enrolment_token_locks_nothing(service: Service) -> None:
    body = {"token": "bwe_wrong", "data_address": "127.0.0.1:7411"}
    async with service.database.transaction() as connection:
        await bookings.lock_topology(connection)
        problem(await client_of(service.app, "").post("/v1/agents/enrol", json=body), 401, "unauthorized")


def test_a_bucket_fills_again_and_is_forgotten() -> None:
    now = 0.0
    buckets = Buckets("token", 2, 3, lambda: now)
    for _ in range(3):
        buckets.take("a")
    with pytest.raises(Problem) as refused:
        buckets.take("a")
    assert refused.value.more["retry_after_s"] == 1
    now = 0.5
    buckets.take("a")
    with pytest.raises(Problem):
        buckets.take("a")
    buckets.give_back("a")
    buckets.take("a")
    for number in range(20_000):
        buckets.take(str(number))
    assert len(buckets._full) == 10_000
