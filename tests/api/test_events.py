# SPDX-License-Identifier: Apache-2.0
"""Events: the history of a transfer, the audit log, and the live stream that loses nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import pairwise
from typing import Any

from broker.api.routes.events import _events
from broker.core.units import format_time
from broker.fleet.tokens import Scope
from broker.store import events
from broker.store.events import Event, Position
from tests.api.test_bad_input import at
from tests.conftest import Clock, Service, checked


async def test_a_history_tells_everything(service: Service, clock: Clock) -> None:
    await service.link()
    transfer = await service.book(250_000_000, hold=True)
    path = f"/v1/transfers/{transfer['id']}"
    await service.client.post(path + "/commit")
    await service.client.patch(path, json={"priority": 3, "deadline": at(100)})
    clock.advance(0.5)
    await service.client.post(path + "/pause")
    await service.client.post(path + "/resume")
    operator = service.as_token(await service.token(Scope.OPERATE))
    await operator.post(path + "/cancel")
    found = checked(await service.client.get(path + "/events"))
    told = [event["action"].removeprefix("transfer.") for event in found]
    assert told == ["admitted", "committed", "changed", "paused", "resumed", "canceled"]
    assert found[0]["before"] is None
    for former, latter in pairwise(found):
        assert latter["before"] == former["after"], (former, latter)
    assert {event["actor"] for event in found[:5]} == {transfer["owner"]} != {found[5]["actor"]}
    assert found[2]["after"]["deadline"] == at(100) and found[2]["before"].get("deadline") is None
    assert found[-1]["after"]["state"] == "CANCELED"
    assert all(event["subject"] == transfer["id"] and event["subject_kind"] == "transfer" for event in found)
    assert [event["at"] for event in found] == sorted(event["at"] for event in found)


async def test_the_audit_log(service: Service) -> None:
    await service.link()
    await service.client.patch("/v1/links/L1", json={"metric": 2})
    await service.enrol("h1", "A")
    transfer = await service.book()
    seen: list[dict[str, Any]] = []
    cursor = None
    while True:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = checked(await service.client.get("/v1/audit-log", params=query))
        seen += page["items"]
        if (cursor := page["next"]) is None:
            break
    assert [event["action"] for event in seen] == [
        "transfer.admitted", "host.enrolled", "enrolment_token.created", "link.changed", "link.created", "token.created"
    ]  # fmt: skip
    changed = seen[3]
    assert (changed["before"]["metric"], changed["after"]["metric"]) == (None, 2)
    for search in (transfer["id"], "transfer.admitted"):
        found = checked(await service.client.get("/v1/audit-log", params={"search": search}))["items"]
        assert [event["subject"] for event in found] == [transfer["id"]]


async def test_the_audit_log_is_searched(service: Service, clock: Clock) -> None:
    await service.link()
    first = await service.book(label="genome 100%_x")
    clock.advance(60)
    await service.book(label="climate")
    clock.advance(1)
    later = format_time(clock.now_us)
    clock.advance(60)
    await service.client.post(f"/v1/transfers/{first['id']}/cancel")

    async def found(**query: str) -> list[str]:
        items = checked(await service.client.get("/v1/audit-log", params=query))["items"]
        return [f"{event['action']} {event['subject_name'] or event['subject']}" for event in reversed(items)]

    admitted, canceled = "transfer.admitted genome 100%_x", "transfer.canceled genome 100%_x"
    assert await found(text="GENOME") == [admitted, canceled]
    assert await found(text="100%_") == [admitted, canceled]
    assert await found(text="1000_") == []
    assert await found(action="transfer.admitted", kind="transfer") == [admitted, "transfer.admitted climate"]
    assert await found(subject=first["id"], **{"from": later}) == [canceled]
    assert await found(action="transfer.admitted", to=later) == [admitted, "transfer.admitted climate"]
    assert await found(actor=first["owner"], action="link.created") == ["link.created L1"]
    (told,) = checked(await service.client.get("/v1/audit-log", params={"action": "link.created"}))["items"]
    assert (told["actor"], bool(told["actor_name"])) == (first["owner"], True)


# httpx's ASGI transport collects a whole body before it returns, so the stream's own generator is read; test_contract plays it over a socket.


async def take(stream: AsyncIterator[str], number: int) -> list[tuple[str, dict[str, Any]]]:
    """The next `number` events as (id, data)."""
    found = []
    async with asyncio.timeout(20):
        while len(found) < number:
            lines = dict(line.split(": ", 1) for line in (await anext(stream)).strip().split("\n"))
            if "data" in lines:
                found.append((lines["id"], json.loads(lines["data"])))
                assert lines["event"] == found[-1][1]["action"]
    return found


async def position(service: Service) -> Position:
    async with service.database.transaction() as connection:
        return await events.now(connection)


async def test_the_stream_is_live_and_resumes(service: Service) -> None:
    await service.link()
    broker = service.app.state.broker
    async with aclosing(_events(broker, await position(service), None)) as stream:
        assert (await anext(stream)).startswith("id: ")  # from where to go on, before anything has happened
        booking = asyncio.create_task(service.book())
        first = await take(stream, 1)
        assert first[0][1]["subject"] == (await booking)["id"]
        others = [(await service.book(1000))["id"] for _ in range(10)]
        live = await take(stream, 10)
        assert [data["subject"] for _, data in live] == others
    # A client that reconnects with the last id that it saw misses nothing and sees nothing twice.
    for seen in (0, 4, 9):
        async with aclosing(_events(broker, Position.parse(live[seen][0]), None)) as stream:
            assert await take(stream, 9 - seen) == live[seen + 1 :]
    async with aclosing(_events(broker, Position.parse(first[0][0]), others[3])) as stream:
        assert [data["subject"] for _, data in await take(stream, 1)] == [others[3]]


async def test_a_transaction_that_commits_late_is_not_skipped(service: Service, clock: Clock) -> None:
    """Its events have lower numbers than those that others saw meanwhile."""
    start = await position(service)

    def note(subject: str) -> Event:
        return Event(clock(), "me", "test.noted", "test", subject, None, None)

    stream = _events(service.app.state.broker, start, None)
    async with aclosing(stream):
        await anext(stream)
        async with service.database.transaction() as late:
            await events.append(late, [note("late")])
            async with service.database.transaction() as early:
                await events.append(early, [note("early")])
            async with service.database.transaction() as connection:
                assert await events.after(connection, start) == [], "what is behind an open transaction waits for it"
        told = await take(stream, 2)
    assert sorted(data["subject"] for _, data in told) == ["early", "late"]
    async with service.database.transaction() as connection:
        again = await events.after(connection, Position.parse(told[0][0]))
    assert [str(stored.position) for stored in again] == [told[1][0]]
