# SPDX-License-Identifier: Apache-2.0
"""One-time tokens of hosts are seen and ended: none is good any more once its host has joined or was removed."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from broker.store import bookings
from tests.api.problems import problem
from tests.service import Clock, Service, checked, client_of

TOKENS = "/v1/hosts/enrolment-tokens"


async def make(service: Service, host: str = "h1") -> dict[str, Any]:
    return checked(await service.client.post(TOKENS, json={"host": host, "node": "A", "nic_bps": 10**10}), 201)


async def join(service: Service, made: dict[str, Any]) -> httpx.Response:
    body = {"token": made["token"], "data_address": "192.0.2.7:7411"}
    return await client_of(service.app, "").post("/v1/agents/enrol", json=body)


async def states(service: Service) -> dict[str, str]:
    return {item["id"]: item["state"] for item in checked(await service.client.get(TOKENS))}


async def test_tokens_are_listed_and_revoked(service: Service, clock: Clock) -> None:
    await service.link()
    first, second, third = [await make(service, host) for host in ("h1", "h2", "h3")]
    listed = await service.client.get(TOKENS)
    assert [item["host"] for item in checked(listed)] == ["h3", "h2", "h1"]
    assert not any(made["token"] in listed.text for made in (first, second, third)), "the secret is never shown again"
    checked(await service.client.delete(f"{TOKENS}/{first['id']}"), 204)
    problem(await join(service, first), 401, "unauthorized")
    checked(await join(service, second), 201)
    for gone in (first, second, {"id": "enr_none"}, {"id": "%00"}):
        problem(await service.client.delete(f"{TOKENS}/{gone['id']}"), 404, "not-found")
    clock.advance(3601)
    assert await states(service) == {first["id"]: "revoked", second["id"]: "used", third["id"]: "expired"}
    said = checked(await service.client.get("/v1/audit-log", params={"action": "enrolment_token.revoked"}))["items"]
    assert [(event["subject"], event["after"]) for event in said] == [("h1", {"id": first["id"]})]


async def test_an_older_token_cannot_take_over_a_host_that_joined_since(service: Service) -> None:
    await service.link()
    older, used = await make(service), await make(service)
    agent = service.as_token(checked(await join(service, used), 201)["agent_token"])
    problem(await join(service, older), 401, "unauthorized")
    checked(await agent.get("/v1/agents/h1/assignments"))
    assert await states(service) == {older["id"]: "revoked", used["id"]: "used"}
    newer = await make(service)
    checked(await join(service, newer), 201)
    problem(await agent.get("/v1/agents/h1/assignments"), 401, "unauthorized")


async def test_no_token_outlives_the_removal_of_its_host(service: Service) -> None:
    await service.link()
    checked(await join(service, await make(service)), 201)
    left, other = await make(service), await make(service, "h2")
    checked(await service.client.delete("/v1/hosts/h1"), 204)
    problem(await join(service, left), 401, "unauthorized")
    checked(await join(service, other), 201)
    assert [host["name"] for host in checked(await service.client.get("/v1/hosts"))] == ["h2"]


@pytest.mark.parametrize("ends", [lambda made: f"{TOKENS}/{made['id']}", lambda _: "/v1/hosts/h1"], ids=["revoked", "removed"])
async def test_joining_against_the_end_of_the_token(ends: Callable[[dict[str, Any]], str], service: Service) -> None:
    """Whichever comes first, the other sees it: never a host of a token that was ended, nor an ended token that is still good."""
    await service.link()
    checked(await join(service, await make(service)), 201)
    for _ in range(5):
        made = await make(service)
        joined, ended = await asyncio.gather(join(service, made), service.client.delete(ends(made)))
        assert (joined.status_code, ended.status_code) in {(201, 204), (201, 404), (401, 204)}, (joined.text, ended.text)
        assert (await join(service, made)).status_code == 401
        if ends(made) == "/v1/hosts/h1":
            assert (await states(service))[made["id"]] == ("used" if joined.status_code == 201 else "revoked")
        else:
            assert (joined.status_code == 201) == (ended.status_code == 404), "of two at once, one gets it"
        if not checked(await service.client.get("/v1/hosts")):
            checked(await join(service, await make(service)), 201)


async def test_making_one_waits_for_a_removal_that_has_begun(service: Service) -> None:
    """Else it would be made before the removal, by its time, and be missed by what the removal revokes."""
    await service.link()
    async with service.database.transaction() as removal:
        await bookings.lock_topology(removal)
        making = asyncio.create_task(make(service))
        while not making.done() and not (await removal.execute(text("SELECT 1 FROM pg_locks WHERE NOT granted"))).all():
            await asyncio.sleep(0.005)
        assert not making.done()
    made = await making
    assert (await states(service))[made["id"]] == "open"
