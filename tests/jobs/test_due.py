# SPDX-License-Identifier: Apache-2.0
"""What happens by the clock: holds run out, bookings without an agent begin and end, the past is forgotten."""

from typing import Any

from sqlalchemy import text

from broker.core.units import US_PER_S
from broker.desk.desk import Desk
from broker.desk.due import settle
from broker.store import retention
from tests.conftest import Service, checked

GRACE_US = 60 * US_PER_S


async def tick(service: Service, seconds: float) -> int:
    """Let time pass, and a worker look at what is due then."""
    service.clock.advance(seconds)
    return await settle(service.database, Desk(service.database, service.clock), service.clock(), GRACE_US)


async def state(service: Service, booked: dict[str, Any]) -> str:
    return str(checked(await service.client.get(f"/v1/transfers/{booked['id']}"))["state"])


async def test_a_hold_runs_out_and_gives_back(service: Service) -> None:
    await service.link()
    times = {"not_before": "2026-01-02T00:00:00Z", "deadline": "2026-01-02T00:00:01Z"}
    held, kept = await service.book(hold=True, **times), await service.book(hold=True)
    checked(await service.client.post(f"/v1/transfers/{kept['id']}/commit"))
    assert await tick(service, 299) == 1  # `kept` has ended by the clock meanwhile
    assert [await state(service, t) for t in (held, kept)] == ["HELD", "FINISHED"]
    assert await tick(service, 2) == 1
    assert await state(service, held) == "EXPIRED"
    assert await tick(service, 1000) == 0
    history = checked(await service.client.get(f"/v1/transfers/{held['id']}/events"))
    assert [(e["action"], e["actor"]) for e in history][1:] == [("transfer.expired", "clock")]
    await service.book(**times)
    await service.audit()


async def test_bookings_without_an_agent_go_by_the_clock(service: Service) -> None:
    await service.link()
    booked = await service.book(not_before="2026-01-01T00:01:00Z", volume_bytes=1_250_000_000)
    paused = await service.book(not_before="2026-01-01T00:01:00Z", volume_bytes=1_250_000_000)
    checked(await service.client.post(f"/v1/transfers/{paused['id']}/pause"))
    seen = []
    for seconds in (59, 2, 8, 2):
        await tick(service, seconds)
        seen.append(await state(service, booked))
    assert seen == ["RESERVED", "ACTIVE", "ACTIVE", "FINISHED"]
    done = checked(await service.client.get(f"/v1/transfers/{booked['id']}"))
    assert (done["bytes_done"], done["plan"]["segments"]) == (1_250_000_000, booked["plan"]["segments"])
    assert await state(service, paused) == "RESERVED", "what is paused has no time"
    await service.audit()


async def test_two_workers_at_once_do_it_once(service: Service) -> None:
    import asyncio

    await service.link()
    for _ in range(5):
        await service.book(hold=True)
    service.clock.advance(301)
    now = service.clock()
    await asyncio.gather(*(settle(service.database, Desk(service.database, service.clock), now, GRACE_US) for _ in range(2)))
    log = checked(await service.client.get("/v1/audit-log", params={"search": "transfer.expired"}))["items"]
    assert len(log) == len({event["subject"] for event in log}) == 5
    await service.audit()


async def test_forgetting_keeps_what_lives(service: Service) -> None:
    await service.link()
    ended = await service.book()
    canceled = await service.book(volume_bytes=1_250_000_000)
    checked(await service.client.post(f"/v1/transfers/{canceled['id']}/cancel"))
    long = await service.book(volume_bytes=125_000_000 * 86_400 * 40)  # forty days
    window = {"begin": "2026-01-01T00:00:00Z", "end": "2026-01-01T01:00:00Z", "bps": 10**9}
    checked(await service.client.post("/v1/links/L1/windows", json=window), 201)
    await service.client.post("/v1/transfers", json={"source": "A"}, headers={"Idempotency-Key": "k"})
    await tick(service, 100)
    assert await state(service, ended) == "FINISHED"
    before = await ledger(service)
    assert await prune(service, 30) == {}
    assert await ledger(service) == before
    service.clock.advance(31 * 86_400)
    later = await service.book(not_before="2026-03-01T00:00:00Z")
    gone = await prune(service, 30)
    assert set(gone) == {"ledger", "events", "link_windows"}
    assert {row.transfer_id for row in await ledger(service)} == {long["id"], later["id"]}
    assert await state(service, canceled) == "CANCELED", "the transfer itself is kept"
    head = checked(await service.client.get("/v1/links/L1"))["version"]
    assert head == len(before) + 1, "versions go on where they were"
    await service.audit()
    # A process that starts now counts what is left: nothing fits beside the forty days.
    quote = {"source": "A", "destination": "B", "volume_bytes": 125_000_000}
    plan = checked(await service.client.post("/v1/quotes", json=quote))["quotes"][0]["plan"]
    desk = Desk(service.database, service.clock)
    await desk.warm_up()
    assert plan["start"] >= long["plan"]["finish"]
    assert desk.books.calendars["L1"].free_at(service.clock.now_us) == 0


async def test_both_signs_of_a_booking_are_forgotten_together(service: Service) -> None:
    """A booking that was planned anew has rows that end at different times; half of it must not stay behind."""
    await service.link()
    booked = await service.book(volume_bytes=125_000_000 * 3600)  # an hour
    service.clock.advance(600)
    checked(await service.client.patch(f"/v1/transfers/{booked['id']}", json={"volume_bytes": 125_000_000 * 1800}))
    service.clock.advance(600)
    checked(await service.client.post(f"/v1/transfers/{booked['id']}/cancel"))
    rows = await ledger(service)
    ends = sorted({row.end_us for row in rows})
    assert len(ends) == 2
    async with service.database.transaction() as connection:
        await connection.execute(text("UPDATE transfers SET updated_us = 0"))
    async with service.database.transaction() as connection:
        await retention.prune(connection, ends[0] + 1, 0)  # between the two
    assert await ledger(service) == rows
    async with service.database.transaction() as connection:
        await retention.prune(connection, ends[1] + 1, 0)
    assert await ledger(service) == []


async def ledger(service: Service) -> list[Any]:
    async with service.database.transaction() as connection:
        return list((await connection.execute(text("SELECT * FROM ledger ORDER BY version"))).all())


async def prune(service: Service, days: int) -> dict[str, int]:
    async with service.database.transaction() as connection:
        gone = await retention.prune(connection, service.clock(), days * 86_400 * US_PER_S)
    return {table: rows for table, rows in gone.items() if rows}
