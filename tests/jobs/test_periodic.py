# SPDX-License-Identifier: Apache-2.0
"""What happens by the clock: holds and late starts expire, bookings without agents run their course, audits are kept, the past is forgotten."""

import asyncio
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import text

from broker.core.units import US_PER_S
from broker.desk.ground.policy import Policy
from broker.desk.service.desk import Desk
from broker.desk.service.timers import run_timers
from broker.jobs import periodic
from broker.store import retention
from broker.store.transfers import Patience
from tests.api.readings import metrics
from tests.service import START_US, Service, at, checked

DAY = 86_400


async def run_due(service: Service) -> int:
    """As the worker's task does it, with the test's clock."""
    return await run_timers(service.database, Desk(service.database, service.clock, Policy()), service.clock(), Patience())


async def state(service: Service, transfer: dict[str, Any]) -> str:
    return checked(await service.client.get(f"/v1/transfers/{transfer['id']}"))["state"]


async def test_a_hold_that_nobody_commits_expires(service: Service) -> None:
    await service.link()
    held, committed = [await service.book(hold=True, not_before=at(1000)) for _ in range(2)]
    await service.client.post(f"/v1/transfers/{committed['id']}/commit")
    service.clock.advance(299)
    assert await run_due(service) == 0
    service.clock.advance(2)
    assert await run_due(service) == 1
    assert (await state(service, held), await state(service, committed)) == ("EXPIRED", "RESERVED")
    gone = checked(await service.client.get(f"/v1/transfers/{held['id']}"))
    assert gone["plan"]["segments"] == [] and gone["waiting_reason"]["code"] == "expired"
    assert await run_due(service) == 0
    await service.audit()


async def test_managed_transfers_whose_agents_never_start_expire(service: Service) -> None:
    await service.link()
    await service.enrol("h1", "A")
    await service.enrol("h2", "B")
    transfer = await service.book(source="h1", destination="h2", payload={"path": "x"}, not_before=at(100))
    service.clock.now_us = START_US + 159 * US_PER_S
    assert await run_due(service) == 0
    service.clock.advance(2)
    assert await run_due(service) == 1
    assert await state(service, transfer) == "EXPIRED"
    await service.audit()


async def test_bookings_without_agents_run_by_the_clock(service: Service) -> None:
    await service.link()
    short, long = await service.book(not_before=at(10)), await service.book(1_250_000_000, not_before=at(10))
    seen = []
    for moment in (5, 10.5, 11.5, 30):
        service.clock.now_us = START_US + int(moment * US_PER_S)
        await run_due(service)
        seen.append((await state(service, short), await state(service, long)))
        await service.audit()
    assert seen == [("RESERVED", "RESERVED"), ("ACTIVE", "RESERVED"), ("FINISHED", "ACTIVE"), ("FINISHED", "FINISHED")]
    done = checked(await service.client.get(f"/v1/transfers/{long['id']}"))
    assert done["bytes_done"] == done["volume_bytes"] and done["plan"] == long["plan"]


async def test_a_worker_that_slept_through_everything(service: Service) -> None:
    """Start and finish are due at once; paused ones wait for their owner."""
    await service.link()
    transfer, paused = await service.book(), await service.book()
    await service.client.post(f"/v1/transfers/{paused['id']}/pause")
    service.clock.advance(DAY)
    for _ in range(2):
        await run_due(service)
    assert (await state(service, transfer), await state(service, paused)) == ("FINISHED", "RESERVED")


async def test_two_workers_at_once(service: Service) -> None:
    await service.link()
    for _ in range(30):
        await service.book(1000, hold=True)
    service.clock.advance(301)
    await asyncio.gather(*(run_due(service) for _ in range(3)))
    found = await metrics(service)
    assert found['bwb_transfers{state="EXPIRED"}'] == 30
    expired = checked(await service.client.get("/v1/audit-log", params={"search": "transfer.expired"}))["items"]
    assert len({event["subject"] for event in expired}) == len(expired) == 30
    await service.audit()


async def test_the_audit_is_kept_and_shows_in_metrics(
    service: Service, worker: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(periodic, "_clock", service.clock)
    await service.link()
    await service.book()
    await asyncio.to_thread(worker.audit_invariants)
    clean = await metrics(service)
    assert clean["bwb_audit_timestamp_seconds"] >= START_US / 1e6
    assert sum(value for name, value in clean.items() if name.startswith("bwb_audit_violations")) == 0
    async with service.database.transaction() as connection:
        booked = "INSERT INTO ledger SELECT 'L1', version + 1, 'tr_x', :begin, :begin + 1000000, 1000000001 FROM links"
        await connection.execute(text(booked), {"begin": START_US + DAY * US_PER_S})
        await connection.execute(text("UPDATE links SET version = version + 1"))
    assert not checked(await service.client.get("/v1/audit"))["clean"]
    await asyncio.to_thread(worker.audit_invariants)
    broken = await metrics(service)
    assert broken['bwb_audit_violations{check="over_capacity"}'] == 1
    async with service.database.transaction() as connection:
        rows = (await connection.execute(text("SELECT took_us, violations FROM audits ORDER BY id"))).all()
    assert [sorted(row.violations) for row in rows] == [[], ["over_capacity"]]
    assert all(row.took_us > 0 for row in rows)


async def test_the_tasks_outlive_the_database(worker: ModuleType, database_url: str, service: Service) -> None:
    await asyncio.to_thread(worker.tick)
    async with service.database.transaction() as connection:
        await connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        )
    for _ in range(2):  # the first finds its connections broken, and says so in the log only
        for task in (worker.tick, worker.audit_invariants, worker.prune):
            await asyncio.to_thread(task)
    async with service.database.transaction() as connection:
        kept = (await connection.execute(text("SELECT count(*) FROM audits"))).scalar_one()
    assert kept >= 1


async def test_pruning_keeps_what_lives(service: Service) -> None:
    await service.link()
    agent = await service.enrol("h1", "A")
    old = await service.book()
    paused = await service.book()
    await service.client.post(f"/v1/transfers/{paused['id']}/pause")
    body = {"source": "A", "destination": "B", "volume_bytes": 1000, "not_before": at(39 * DAY), "deadline": at(41 * DAY)}
    future = checked(await service.client.post("/v1/transfers", json=body, headers={"Idempotency-Key": "k"}), 201)
    window = {"begin": at(100), "end": at(200)}
    checked(await service.client.post("/v1/links/L1/windows", json=window), 201)
    service.clock.advance(10)
    await run_due(service)
    service.clock.advance(40 * DAY)
    checked(await agent.post("/v1/agents/h1/reports", json={}))
    young = await service.book()
    async with service.database.transaction() as connection:
        gone = await retention.prune(connection, service.clock(), 30 * DAY * US_PER_S)
    assert gone["ledger"] == 1 and gone["link_windows"] == 1 and gone["idempotency_keys"] == 1 and gone["events"] > 3
    assert {item["id"] for item in checked(await service.client.get("/v1/transfers"))["items"]} == {
        transfer["id"] for transfer in (old, paused, future, young)
    }
    await service.audit()
    # The calendar of a desk that starts now is that of one that never stopped, and versions go on.
    version = checked(await service.client.get("/v1/links/L1"))["version"]
    await service.book()
    assert checked(await service.client.get("/v1/links/L1"))["version"] == version + 1
    checked(await service.client.post(f"/v1/transfers/{paused['id']}/resume"))
    await service.audit()
