# SPDX-License-Identifier: Apache-2.0
"""Signing in with a token: what the cookie may, what it may not without a word from our own page, and when it ends."""

import asyncio
from contextlib import aclosing
from functools import partial
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from starlette.requests import Request

from broker.api.attempts import Attempts
from broker.api.callers import caller
from broker.api.feed import PUBLIC, Wanted
from broker.api.routes.events import _events
from broker.fleet.tokens import Scope
from broker.store import retention
from tests.api.problems import problem
from tests.service import Clock, Service, at, checked, client_of, running

OURS = {"X-BWB-CSRF": "1"}


async def browser(service: Service, *scopes: Scope, base_url: str = "http://broker") -> httpx.AsyncClient:
    """A client that has signed in with a fresh token, and holds nothing but the cookie."""
    client = client_of(service.app, "")
    client.base_url = httpx.URL(base_url)
    checked(await client.post("/v1/session", json={"token": await service.token(*scopes)}), 201)
    return client


async def test_a_session_does_what_its_token_may(service: Service, clock: Clock) -> None:
    token = await service.token(Scope.SUBMIT)
    client = client_of(service.app, "")
    answer = await client.post("/v1/session", json={"token": token})
    assert checked(answer, 201) == {
        "id": answer.json()["id"],
        "name": "test",
        "scopes": ["submit"],
        "expires": answer.json()["expires"],
    }
    set_cookie = answer.headers["set-cookie"]
    assert set_cookie.startswith("bwb_session=") and token not in set_cookie
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"} <= set(set_cookie.split("; ")) and "Secure" not in set_cookie
    assert checked(await client.get("/v1/session")) == answer.json()
    checked(await client.get("/v1/transfers"))
    assert problem(await client.get("/v1/tokens"), 403, "forbidden")["scope"] == "admin"
    await service.link()
    made = checked(
        await client.post("/v1/transfers", json={"source": "A", "destination": "B", "volume_bytes": 1}, headers=OURS), 201
    )
    assert made["owner"] == answer.json()["id"]
    assert (await client.delete("/v1/session", headers=OURS)).status_code == 204
    assert not client.cookies
    problem(await client.get("/v1/transfers"), 401, "unauthorized")
    whole = checked(await service.client.get("/v1/session"))
    assert (whole["name"], whole["expires"], whole["scopes"]) == ("all", None, ["admin", "operate", "read", "submit"])


async def test_the_cookie_of_https(service: Service) -> None:
    client = await browser(service, Scope.READ, base_url="https://broker")
    (cookie,) = client.cookies.jar
    assert cookie.name == "__Host-bwb_session" and cookie.secure
    checked(await client.get("/v1/transfers"))
    plain = client_of(service.app, "")
    plain.cookies.set("bwb_session", "x", domain="broker.local")
    problem(await plain.get("https://broker/v1/transfers"), 401, "unauthorized")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-BWB-CSRF": "0"},
        OURS | {"Origin": "http://evil.example"},
        OURS | {"Origin": "https://broker"},
        OURS | {"Origin": "null"},
        OURS | {"Origin": "http://broker:81"},
        OURS | {"Sec-Fetch-Site": "cross-site"},
        OURS | {"Sec-Fetch-Site": "same-site"},
        OURS | {"Sec-Fetch-Site": "none", "Origin": "http://broker"},
    ],
)
async def test_what_changes_anything_must_come_from_our_own_page(service: Service, headers: dict[str, str]) -> None:
    client = await browser(service, Scope.OPERATE)
    body = {"id": "L9", "source": "A", "target": "B", "capacity_bps": 1}
    problem(await client.post("/v1/links", json=body, headers=headers), 403, "csrf")
    problem(await client.delete("/v1/session", headers=headers), 403, "csrf")
    assert checked(await client.get("/v1/links", headers=headers)) == []
    for good in (OURS, OURS | {"Origin": "http://broker", "Sec-Fetch-Site": "same-origin"}):
        checked(await client.post("/v1/links", json=body | {"id": f"L{len(good)}"}, headers=good), 201)
    # A program with a token is no browser: nobody can make it send that.
    checked(await service.client.post("/v1/links", json=body, headers=headers), 201)


async def test_nobody_is_signed_in_by_a_foreign_page(service: Service) -> None:
    token = await service.token(Scope.READ)
    answer = await client_of(service.app, "").post("/v1/session", json={"token": token}, headers={"Origin": "http://evil.example"})
    problem(answer, 403, "csrf")
    assert "set-cookie" not in answer.headers


async def test_behind_a_proxy(database_url: str, service: Service, clock: Clock) -> None:
    """It ends TLS and speaks http to us: BWB_PUBLIC_URL says what people see."""
    async with running(database_url, clock, public_url="https://bwb.example.org/") as app:
        client = client_of(app, "")
        answer = await client.post("/v1/session", json={"token": await service.token(Scope.OPERATE)})
        assert answer.headers["set-cookie"].startswith("__Host-bwb_session=") and "Secure" in answer.headers["set-cookie"]
        headers = OURS | {"Origin": "https://bwb.example.org", "Cookie": answer.headers["set-cookie"].split(";")[0]}
        body = {"id": "L1", "source": "A", "target": "B", "capacity_bps": 1}
        checked(await client.post("/v1/links", json=body, headers=headers), 201)


async def test_who_may_not_sign_in(service: Service, clock: Clock) -> None:
    client = client_of(service.app, "")
    problem(await client.post("/v1/session", json={"token": "bwb_wrong"}), 401, "unauthorized")
    problem(await client.post("/v1/session", json={"token": await service.token(Scope.AGENT, host="h")}), 403, "forbidden")
    problem(await client.post("/v1/session", json={}), 422, "invalid", "token")
    body = {"name": "short", "scopes": ["read"], "expires": at(100)}
    short = checked(await service.client.post("/v1/tokens", json=body), 201)["token"]
    clock.advance(101)
    problem(await client.post("/v1/session", json={"token": short}), 401, "unauthorized")
    assert not client.cookies


async def test_a_session_ends_by_itself(service: Service, clock: Clock) -> None:
    used, left = await browser(service, Scope.READ), await browser(service, Scope.READ)
    for _ in range(23):
        clock.advance(1800)
        service.app.state.broker.sessions.forget()
        checked(await used.get("/v1/transfers"))
    problem(await left.get("/v1/transfers"), 401, "unauthorized")
    clock.advance(1801)
    problem(await used.get("/v1/transfers"), 401, "unauthorized")
    async with service.database.transaction() as connection:
        await retention.prune(connection, clock(), 10**15)
        assert (await connection.execute(text("SELECT count(*) FROM sessions"))).scalar_one() == 0


async def test_a_session_ends_with_its_token(service: Service, clock: Clock) -> None:
    body = {"name": "t", "scopes": ["read"], "expires": at(1000)}
    made = checked(await service.client.post("/v1/tokens", json=body), 201)
    client = client_of(service.app, "")
    assert checked(await client.post("/v1/session", json={"token": made["token"]}), 201)["expires"] == at(1000)
    checked(await client.get("/v1/links"))
    checked(await service.client.delete(f"/v1/tokens/{made['id']}"), 204)
    problem(await client.get("/v1/links"), 401, "unauthorized")


async def test_the_stream_ends_with_the_session(service: Service) -> None:
    client = await browser(service, Scope.READ)
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": "/v1/events", "scheme": "http", "server": ("broker", 80), "query_string": b"",
        "headers": [(b"cookie", cookie.encode()), (b"host", b"broker")], "app": service.app,
    }  # fmt: skip
    broker, who = service.app.state.broker, partial(caller, Request(scope))
    listener = await broker.feed.listen(Wanted(PUBLIC), (await who()).id)
    stream = _events(broker, listener, None, who)
    async with asyncio.timeout(20), aclosing(stream):
        assert (await anext(stream)).startswith("id: ")
        await service.link()
        assert "link.created" in await anext(stream)
        await client.delete("/v1/session", headers=OURS)
        assert [message async for message in stream] == []


async def test_what_is_kept_of_sessions(service: Service) -> None:
    """In the audit log who came and went, and the secret nowhere."""
    client = await browser(service, Scope.READ)
    (cookie,) = client.cookies.jar
    who = checked(await client.get("/v1/session"))["id"]
    await client.delete("/v1/session", headers=OURS)
    told = checked(await service.client.get("/v1/audit-log"))["items"]
    assert [(event["action"], event["actor"]) for event in told[:2]] == [("session.closed", who), ("session.opened", who)]
    await browser(service, Scope.READ)
    async with service.database.transaction() as connection:
        for table in ("sessions", "events"):
            rows = await connection.exec_driver_sql(f"SELECT CAST(t AS text) FROM {table} AS t")
            assert not any(str(cookie.value) in row[0] for row in rows)


async def test_who_fails_is_held_back_and_nobody_else_of_his_address(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    client = client_of(service.app, "")
    for _ in range(10):
        problem(await client.post("/v1/session", json={"token": "bwb_wrong"}), 401, "unauthorized")
    refused = await client.post("/v1/session", json={"token": "bwb_wrong"})
    problem(refused, 429, "too-many-attempts")
    assert 1 <= int(refused.headers["retry-after"]) <= 5
    token = await service.token(Scope.READ)
    checked(await client.post("/v1/session", json={"token": token}), 201)
    lines = [record.getMessage() for record in caplog.records if "sign-in" in record.getMessage()]
    assert lines == ["sign-in from 127.0.0.1 refused: unauthorized"] * 10
    assert "bwb_wrong" not in caplog.text and token not in caplog.text


async def test_a_forwarded_address_counts_from_trusted_proxies_only(database_url: str, service: Service, clock: Clock) -> None:
    wrong: dict[str, Any] = {"json": {"token": "bwb_wrong"}, "headers": {"X-Forwarded-For": "192.0.2.7"}}
    async with running(database_url, clock, trusted_proxies="127.0.0.0/8") as app:
        for _ in range(11):
            last = await client_of(app, "").post("/v1/session", **wrong)
        problem(last, 429, "too-many-attempts")
        problem(await client_of(app, "").post("/v1/session", json=wrong["json"]), 401, "unauthorized")
    for number in range(11):  # nobody is trusted: each is one and the same address
        headers = {"X-Forwarded-For": f"192.0.2.{number}"}
        last = await client_of(service.app, "").post("/v1/session", json=wrong["json"], headers=headers)
    problem(last, 429, "too-many-attempts")


def test_the_log_of_failures_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    attempts = Attempts()
    for number in range(5000):
        attempts.failed(str(number), "unauthorized")
    assert len(caplog.records) <= 21
