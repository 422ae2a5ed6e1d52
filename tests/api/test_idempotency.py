# SPDX-License-Identifier: Apache-2.0
"""Idempotency-Key: however often and wherever a request is repeated, it is carried out once and answered the same."""

import asyncio
from typing import Any

import httpx

from broker.fleet.tokens import Scope
from tests.api.refused import problem
from tests.conftest import Service, checked, running

BODY: dict[str, Any] = {"source": "A", "destination": "B", "volume_bytes": 125_000_000, "label": "x"}


async def count(service: Service) -> int:
    return len(checked(await service.client.get("/v1/transfers"))["items"])


async def post(service: Service, body: Any = BODY, key: str = "k1", path: str = "/v1/transfers") -> httpx.Response:
    return await service.client.post(path, json=body, headers={"Idempotency-Key": key})


async def test_the_same_key_and_body_is_one_booking_and_one_answer(service: Service) -> None:
    await service.link()
    first = await post(service)
    again = await post(service)
    assert (again.status_code, again.json(), again.headers["location"]) == (201, first.json(), first.headers["location"])
    assert await count(service) == 1
    other = await post(service, key="k2")
    assert other.json()["id"] != first.json()["id"]
    await service.audit()


async def test_the_same_key_with_another_body_is_refused(service: Service) -> None:
    await service.link()
    checked(await post(service), 201)
    problem(await post(service, BODY | {"volume_bytes": 1}), 422, "idempotency-key-reused", "Idempotency-Key")
    problem(await post(service, [BODY], path="/v1/transfers/batch"), 422, "idempotency-key-reused")
    assert await count(service) == 1


async def test_keys_of_different_callers_never_meet(service: Service) -> None:
    await service.link()
    other = service.as_token(await service.token(Scope.SUBMIT))
    checked(await post(service), 201)
    checked(await other.post("/v1/transfers", json=BODY | {"volume_bytes": 1}, headers={"Idempotency-Key": "k1"}), 201)
    assert await count(service) == 2


async def test_a_refusal_is_remembered_whole(service: Service) -> None:
    """Also when it could be admitted by now: the answer to this key has been given."""
    await service.link(capacity_bps=10**6)
    there = await service.book(volume_bytes=1_000_000)
    wanted = BODY | {"deadline": "2026-01-01T00:00:09Z", "volume_bytes": 1_000_000}
    refused = problem(await post(service, wanted), 409, "infeasible")
    assert refused["binding"]["reservations"] == [there["id"]]
    checked(await service.client.post(f"/v1/transfers/{there['id']}/cancel"))
    assert (await post(service, wanted)).json() == refused
    checked(await post(service, wanted, key="k2"), 201)


async def test_sixteen_at_once_are_one(service: Service, database_url: str) -> None:
    """In one process, and in two on one database."""
    await service.link()
    async with running(database_url, service.clock) as other:
        headers = dict(service.client.headers) | {"Idempotency-Key": "k1"}
        transport = httpx.ASGITransport(other, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://broker", headers=headers) as second:
            clients = [service.client, second] * 8
            answers = await asyncio.gather(*(c.post("/v1/transfers", json=BODY, headers={"Idempotency-Key": "k1"}) for c in clients))
    assert {a.status_code for a in answers} == {201}
    assert len({a.json()["id"] for a in answers}) == 1
    assert await count(service) == 1
    await service.audit()


async def test_a_batch_is_repeated_whole(service: Service) -> None:
    await service.link()
    batch = [BODY, BODY | {"destination": "X"}, BODY | {"volume_bytes": 1}]
    first = checked(await post(service, batch, path="/v1/transfers/batch"))
    assert [item["status"] for item in first["items"]] == [201, 422, 201]
    assert checked(await post(service, batch, path="/v1/transfers/batch")) == first
    assert await count(service) == 2


async def test_a_malformed_request_spends_no_key(service: Service) -> None:
    await service.link()
    problem(await post(service, BODY | {"volume_bytes": 0}), 422)
    checked(await post(service), 201)
