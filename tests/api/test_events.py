# SPDX-License-Identifier: Apache-2.0
"""Events: the history of a transfer, the audit log, and the live stream that loses nothing."""

import asyncio
from contextlib import aclosing, suppress
from functools import partial
from itertools import pairwise
from typing import Any

import httpx
from fastapi import Request
from sqlalchemy import event

from broker.api import sse
from broker.api.callers import caller
from broker.api.feed import Wanted
from broker.api.routes.events import _events
from broker.api.routes.events import stream as stream_of
from broker.core.units import format_time
from broker.fleet import tokens
from broker.fleet.tokens import Scope
from broker.store import events
from broker.store.events import Event, Position
from tests.api.problems import problem
from tests.api.streams import newest, note, noted, streamed, take
from tests.service import Clock, Service, at, checked


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


async def test_the_stream_is_live_and_resumes(service: Service) -> None:
    await service.link()
    async with streamed(service) as stream:
        assert (await anext(stream)).startswith("id: ")  # from where to go on, before anything has happened
        booking = asyncio.create_task(service.book())
        first = await take(stream, 1)
        assert first[0][1]["subject"] == (await booking)["id"]
        others = [(await service.book(1000))["id"] for _ in range(10)]
        live = await take(stream, 10)
        assert [data["subject"] for _, data in live] == others
    # A client that reconnects with the last id that it saw misses nothing and sees nothing twice.
    for seen in (0, 4, 9):
        async with streamed(service, Position.parse(live[seen][0])) as stream:
            assert await take(stream, 9 - seen) == live[seen + 1 :]
    async with streamed(service, Position.parse(first[0][0]), Wanted(subject=others[3])) as stream:
        assert [data["subject"] for _, data in await take(stream, 1)] == [others[3]]


async def test_a_transaction_that_commits_late_is_not_skipped(service: Service) -> None:
    """Its events have lower numbers than those that others saw meanwhile."""
    start = await newest(service)
    async with streamed(service, start) as stream:
        await anext(stream)
        async with service.database.transaction() as late:
            await events.append(late, [note(service, "late")])
            await noted(service, "early")
            async with service.database.transaction() as connection:
                assert await events.after(connection, start) == [], "what is behind an open transaction waits for it"
        told = await take(stream, 2)
    assert sorted(data["subject"] for _, data in told) == ["early", "late"]
    async with service.database.transaction() as connection:
        again = await events.after(connection, Position.parse(told[0][0]))
    assert [str(stored.position) for stored in again] == [told[1][0]]


async def test_a_stream_tells_only_what_was_asked(service: Service) -> None:
    await service.link()
    async with (
        streamed(service, None, Wanted(project="p")) as of_project,
        streamed(service, None, Wanted(states=frozenset({"CANCELED"}))) as canceled,
        streamed(service, None, Wanted(project="q", terminal=True)) as ended,
    ):
        for stream in (of_project, canceled, ended):
            await anext(stream)
        first, second = (await service.book(1000, project="p"))["id"], (await service.book(1000, project="q"))["id"]
        for transfer in (first, second):
            checked(await service.client.post(f"/v1/transfers/{transfer}/cancel"))
        told = [await take(stream, number) for stream, number in ((of_project, 2), (canceled, 2), (ended, 1))]
    assert [[(data["subject"], data["action"].removeprefix("transfer.")) for _, data in one] for one in told] == [
        [(first, "admitted"), (first, "canceled")], [(first, "canceled"), (second, "canceled")], [(second, "canceled")]
    ]  # fmt: skip


async def test_queries_do_not_grow_with_the_streams(service: Service) -> None:
    """400 that wait for something else cost an event nothing, and so do 400 that it concerns."""
    broker = service.app.state.broker
    asked: list[str] = []
    event.listen(broker.database.engine.sync_engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    idle = [await broker.feed.listen(Wanted(subject="nothing"), f"tok_{number % 9}") for number in range(400)]
    alike = [await broker.feed.listen(Wanted(subject="this"), f"tok_{number % 9}") for number in range(400)]
    async with streamed(service) as stream:
        await anext(stream)
        asked.clear()
        await noted(service, "this")
        await take(stream, 1)
    assert len([statement for statement in asked if "FROM events" in statement]) <= 2
    assert not any(listener.waiting for listener in idle) and all(listener.waiting for listener in alike)
    assert len({id(heard) for listener in alike for heard in await listener.heard(1)}) == 1, "an event is kept once"
    for listener in idle + alike:
        broker.feed.leave(listener)
    assert len(broker.feed) == 0


async def test_a_slow_reader_is_told_to_resume(service: Service) -> None:
    many = [f"s{number}" for number in range(200)]
    async with streamed(service) as stream, streamed(service) as quick:
        start = (await anext(stream)).split("\n")[0].removeprefix("id: ")
        await anext(quick)
        await noted(service, *many[:100])
        assert [data["subject"] for _, data in await take(quick, 100)] == many[:100]
        await noted(service, *many[100:])
        assert [data["subject"] for _, data in await take(quick, 100)] == many[100:]
        rest = [message async for message in stream]
    assert len(rest) == 1 and f"event: resume\nid: {start}\n\n" in rest[0], rest
    async with streamed(service, Position.parse(start)) as stream:
        assert [data["subject"] for _, data in await take(stream, 200)] == many


async def test_a_token_has_so_many_streams(service: Service) -> None:
    await service.link()
    broker, transfer = service.app.state.broker, await service.book()
    listeners = [await broker.feed.listen(Wanted(), transfer["owner"]) for _ in range(broker.settings.stream_limit)]
    for path in ("/v1/events", f"/v1/transfers/{transfer['id']}?wait=9"):
        refused = await service.client.get(path)
        problem(refused, 429, "too-many-streams")
        assert int(refused.headers["retry-after"]) >= 1 and refused.json()["limit"] == len(listeners)
    await broker.feed.listen(Wanted(), "tok_of_somebody_else")
    broker.feed.leave(listeners[0])
    broker.feed.leave(listeners[0])
    await broker.feed.listen(Wanted(), transfer["owner"])


async def test_a_stream_that_ends_leaves_nothing_behind(service: Service) -> None:
    """Also one whose caller was gone before the first message."""
    feed = service.app.state.broker.feed
    listener = await feed.listen(Wanted(subject="x"), "tok_a")

    async def gone(message: Any) -> None:
        raise OSError("gone")

    answer = sse.Stream(_events(service.app.state.broker, listener, None, feed.run), partial(feed.leave, listener))
    with suppress(Exception, BaseExceptionGroup):
        await answer({"type": "http", "asgi": {"spec_version": "2.4"}}, asyncio.Event().wait, gone)  # type: ignore[arg-type]
    assert (len(feed), feed._of_subject) == (0, {})


# -- who may see what --------------------------------------------------------------------------------------------------------------------


async def everything(service: Service, who: httpx.AsyncClient) -> set[str]:
    """The actions that a caller's stream tells from the first event on."""
    end = await newest(service)
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "app": service.app, "query_string": b"", "scheme": "http",
             "server": ("broker", 80), "headers": [(name.lower().encode(), value.encode()) for name, value in who.headers.items()]}  # fmt: skip
    request = Request(scope | {"headers": [*scope["headers"], *cookies(who)]})
    answer = await stream_of(request, service.app.state.broker, await caller(request), "0-0", None, None, None, False)
    assert isinstance(answer, sse.Stream)
    told = set()
    async with asyncio.timeout(20), aclosing(answer.body_iterator) as messages:  # type: ignore[type-var]
        async for message in messages:
            assert isinstance(message, str)
            lines = dict(line.split(": ", 1) for line in message.strip().split("\n"))
            told |= {lines["event"]} if "event" in lines else set()
            if Position.parse(lines["id"]) >= end:
                break
    answer._leave()
    return told


def cookies(who: httpx.AsyncClient) -> list[tuple[bytes, bytes]]:
    return [(b"cookie", "; ".join(f"{name}={value}" for name, value in who.cookies.items()).encode())] if who.cookies else []


async def test_a_stream_tells_nobody_what_he_may_not_ask(service: Service) -> None:
    """The whole audit log came with Last-Event-ID: 0-0 to everybody who may read."""
    await service.link()
    await service.enrol("h1", "A")
    await service.book()
    reader = await service.token(Scope.READ)
    page = service.as_token("")
    checked(await page.post("/v1/session", json={"token": reader}), 201)
    page.headers.pop("authorization", None)
    secret = {"token.created", "session.opened", "enrolment_token.created"}
    everybodys = {"link.created", "host.enrolled", "transfer.admitted"}
    await service.book(label="last")  # public, so that every stream comes to its end
    for who in (service.as_token(reader), page, service.as_token(await service.token(Scope.SUBMIT))):
        await service.book(1000)
        assert await everything(service, who) == everybodys
    admin = service.as_token(await service.token(Scope.ADMIN))
    await service.book(1000)
    assert await everything(service, admin) == everybodys | {"token.created"}
    assert await everything(service, service.client) == everybodys | secret


async def test_a_history_names_only_the_owner_to_readers(service: Service) -> None:
    await service.link()
    transfer = await service.book()
    boss, _ = await tokens.create(service.database, service.clock(), name="the boss", scopes=(Scope.OPERATE,), actor="test")
    path = f"/v1/transfers/{transfer['id']}"
    async with service.database.transaction() as connection:
        await events.append(connection, [Event(service.clock(), boss.id, "transfer.noted", "transfer", transfer["id"], None, None)])
    reader = service.as_token(await service.token(Scope.READ))
    assert [one["actor_name"] for one in checked(await reader.get(path + "/events"))] == ["all", None]
    assert [one["actor_name"] for one in checked(await service.client.get(path + "/events"))] == ["all", "the boss"]


# -- waiting for one transfer --------------------------------------------------------------------------------------------------------------


async def waits(service: Service) -> None:
    async with asyncio.timeout(20):
        while not len(service.app.state.broker.feed):
            await asyncio.sleep(0.005)


async def test_a_call_waits_for_a_change(service: Service, clock: Clock) -> None:
    await service.link()
    transfer = await service.book()
    path = f"/v1/transfers/{transfer['id']}?wait=30"
    waiting = asyncio.create_task(service.client.get(path))
    await waits(service)
    assert not waiting.done()
    checked(await service.client.patch(path.partition("?")[0], json={"label": "new"}))
    changed = await waiting
    assert (checked(changed)["label"], changed.headers["etag"]) == ("new", f'"{transfer["revision"] + 1}"')
    # What has changed already, and what has ended, is answered at once.
    old = {"If-None-Match": f'"{transfer["revision"]}"'}
    assert checked(await service.client.get(path, headers=old))["label"] == "new"
    now = {"If-None-Match": changed.headers["etag"]}
    unchanged = await service.client.get(path.replace("30", "0.01"), headers=now)
    assert (unchanged.status_code, unchanged.headers["etag"], unchanged.content) == (304, now["If-None-Match"], b"")
    checked(await service.client.post(f"/v1/transfers/{transfer['id']}/cancel"))
    assert checked(await service.client.get(path))["state"] == "CANCELED"
    assert len(service.app.state.broker.feed) == 0
    problem(await service.client.get(path.replace("30", "61")), 422, "invalid", "wait")
