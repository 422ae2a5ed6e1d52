# SPDX-License-Identifier: Apache-2.0
"""Health, metrics, and life without PostgreSQL or Redis."""

import asyncio
import socket

import pytest
from fastapi import FastAPI

from broker.fleet import tokens
from broker.fleet.tokens import Scope
from broker.store.session import Database
from tests.api.bodies import GOOD
from tests.api.problems import problem
from tests.api.readings import metrics
from tests.postgres import Server, temporary_server
from tests.service import Clock, Service, at, checked, client_of, running


async def test_metrics_say_what_happened(service: Service, clock: Clock) -> None:
    await service.link()
    agent = await service.enrol("h1", "A")
    held = await service.book(hold=True)
    await service.book(planner="fbls")
    for bad in ({"deadline": at(0.5)}, {"source": "X"}, {"planner": "none"}):
        await service.client.post("/v1/transfers", json=GOOD | {"volume_bytes": 10**9} | bad)
    await service.client.post("/v1/transfers/batch", json=[GOOD, GOOD | {"source": "X"}])
    clock_says = {"clock": {"offset_us": -1500, "error_us": 300}}
    checked(await agent.post("/v1/agents/h1/reports", json=clock_says))
    found = await metrics(service)
    assert found['bwb_admissions_total{planner="vbls"}'] == 2
    assert found['bwb_admissions_total{planner="fbls"}'] == 1
    assert found['bwb_refusals_total{reason="infeasible"}'] == 1
    assert found['bwb_refusals_total{reason="unknown-node"}'] == 2
    assert found['bwb_refusals_total{reason="unknown-planner"}'] == 1
    assert found['bwb_admission_seconds_count{kind="single"}'] == 5
    assert found['bwb_admission_seconds_count{kind="batch"}'] == 1
    assert found['bwb_admission_seconds_sum{kind="single"}'] > 0
    assert found['bwb_ledger_version{link="L1"}'] == 3
    assert found['bwb_transfers{state="HELD"}'] == 1 and found['bwb_transfers{state="RESERVED"}'] == 2
    assert found['bwb_agents{status="up"}'] == 1 and found['bwb_agents{status="down"}'] == 0
    assert found['bwb_agent_clock_offset_seconds{host="h1"}'] == -0.0015
    assert found["bwb_audit_timestamp_seconds"] == 0
    assert found['bwb_promises{status="kept"}'] == 2 and found['bwb_promises{status="broken"}'] == 0
    assert found['bwb_link_booked_share{link="L1"}'] == 1.0
    clock.advance(91)
    await service.client.post(f"/v1/transfers/{held['id']}/cancel")
    later = await metrics(service)
    assert later['bwb_agents{status="down"}'] == 1
    assert later.get('bwb_transfers{state="HELD"}', 0) == 0 and later['bwb_transfers{state="CANCELED"}'] == 1


async def test_health(service: Service) -> None:
    stranger = client_of(service.app, "")
    assert checked(await stranger.get("/healthz"))["status"] == "ok"
    assert checked(await stranger.get("/readyz"))["status"] == "ready"


@pytest.mark.real_time
@pytest.mark.slow
async def test_postgresql_goes_and_comes_back(clock: Clock) -> None:
    """503 with Retry-After meanwhile; then all goes on without a restart, with nothing lost."""
    with temporary_server() as server:
        url = server.new_database()
        async with running(url, clock) as app:
            service = await _with_token(app, url, clock)
            await service.link()
            first = await service.book()
            for _ in range(2):
                await _away(server, service)
                checked(await service.client.get("/readyz"))
                assert checked(await service.client.get(f"/v1/transfers/{first['id']}")) == first
                await service.book()
                await service.audit()
            await service.database.close()


async def _away(server: Server, service: Service) -> None:
    await asyncio.to_thread(server.kill)
    calls = [
        service.client.post("/v1/transfers", json=GOOD),
        service.client.post("/v1/transfers", json=GOOD),
        service.client.get("/v1/transfers"),
        service.client.post("/v1/links", json={"id": "L2", "source": "A", "target": "B", "capacity_bps": 1}),
        service.client.get("/metrics"),
        service.client.get("/readyz"),
    ]
    for response in await asyncio.gather(*calls):
        assert response.status_code == 503, response.text
        assert int(response.headers["retry-after"]) >= 1
    problem(await service.client.post("/v1/transfers", json=GOOD), 503, "unavailable")
    assert checked(await service.client.get("/healthz"))["status"] == "ok"
    await asyncio.to_thread(server.start)


async def test_started_without_postgresql(clock: Clock) -> None:
    """A broker that comes up before its database waits for it."""
    with temporary_server() as server:
        url = server.new_database()
        await asyncio.to_thread(server.kill)
        async with running(url, clock) as app:
            assert (await client_of(app, "x").get("/readyz")).status_code == 503
            await asyncio.to_thread(server.start)
            service = await _with_token(app, url, clock)
            await service.link()
            await service.book()
            await service.audit()
            await service.database.close()


async def _with_token(app: FastAPI, url: str, clock: Clock) -> Service:
    database = Database(url, pool_size=2)
    every = (Scope.READ, Scope.SUBMIT, Scope.OPERATE, Scope.ADMIN)
    _, secret = await tokens.create(database, clock(), name="all", scopes=every, actor="test")
    return Service(app, client_of(app, secret), database, clock)


async def test_without_redis_all_goes_on(database_url: str, clock: Clock) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        redis = f"redis://127.0.0.1:{nobody.getsockname()[1]}/0"
        async with running(database_url, clock, redis_url=redis) as app:
            service = await _with_token(app, database_url, clock)
            await service.link()
            await service.book()
            assert checked(await service.client.get("/readyz")) == {"status": "ready", "wakeups": False}
            await service.audit()
            await service.database.close()
