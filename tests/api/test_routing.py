# SPDX-License-Identifier: Apache-2.0
"""What an operation does not know is refused by name: query parameters, media types, methods. And every request has an id."""

import re
from typing import Any

import pytest

from tests.api.problems import problem
from tests.service import Service, checked

ASK: dict[str, Any] = {"source": "A", "destination": "B", "volume_bytes": 1000}


async def test_unknown_query_parameters(service: Service) -> None:
    """A misspelt filter that is ignored answers with everything, and a misspelt `preview` cancels."""
    await service.link()
    transfer = await service.book()
    client = service.client
    said = problem(await client.get("/v1/transfers", params={"labl": "x", "limit": 1}), 422, "invalid", "labl")
    assert "limit" in said["detail"] and "cursor" in said["detail"]  # the way out: what there is
    problem(await client.post(f"/v1/transfers/{transfer['id']}/cancel", params={"preveiw": True}), 422, "invalid", "preveiw")
    assert checked(await client.get(f"/v1/transfers/{transfer['id']}"))["state"] == "RESERVED"
    problem(await client.post("/v1/transfers", params={"preview": True}, json=ASK), 422, "invalid", "preview")  # it has none
    problem(await client.get("/v1/links?=&=1"), 422, "invalid")
    crowd = problem(await client.get("/v1/links", params={f"p{n}": "x" * 100 for n in range(200)}), 422, "invalid")
    assert len(crowd["errors"]) == 20 and crowd["errors_total"] == 200
    checked(await client.get("/v1/transfers", params={"limit": 1, "state": ["ACTIVE", "RESERVED"]}))


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/", ""]
)
async def test_bodies_that_are_not_json(service: Service, media: str) -> None:
    answer = await service.client.post("/v1/transfers", content=b'{"source": "A"}', headers={"Content-Type": media})
    assert "application/json" in problem(answer, 415, "unsupported-media-type")["detail"]
    assert answer.headers["accept"] == "application/json"


async def test_bodies_without_a_media_type(service: Service) -> None:
    problem(await service.client.post("/v1/transfers", content=b"{}"), 415, "unsupported-media-type")
    problem(await service.client.post("/v1/transfers"), 422, "invalid", "body")  # nothing came: what is missing is a body


async def test_json_by_other_names(service: Service) -> None:
    await service.link()
    for media in ("application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"):
        answer = await service.client.post("/v1/links/L1/windows", content=b"{}", headers={"Content-Type": media})
        problem(answer, 422, "invalid", "begin")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/transfers", "GET, POST"),
        ("PUT", "/v1/transfers/tr_1", "GET, PATCH"),
        ("PUT", "/v1/links/L1", "DELETE, GET, PATCH"),
        ("GET", "/v1/quotes", "POST"),
        ("POST", "/metrics", "GET"),
        ("HEAD", "/v1/session", "DELETE, GET, POST"),
    ],
)
async def test_methods_that_are_not_there(service: Service, method: str, path: str, allowed: str) -> None:
    response = await service.client.request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)
    if method != "HEAD":
        problem(response, 405, "method-not-allowed")


async def test_request_ids(service: Service) -> None:
    """One for each answer, good or bad; a caller's own where it is fit for a header and a log."""
    client = service.client
    first, second = [(await client.get("/v1/links")).headers["x-request-id"] for _ in range(2)]
    assert first != second and re.fullmatch(r"[0-9a-f]+-[0-9a-f]+", first)
    answer = await client.get("/v1/links/none", headers={"X-Request-ID": "wf-7:step.2"})
    assert problem(answer, 404, "not-found")["request_id"] == "wf-7:step.2"
    for unfit in ("", "x" * 65, "a b", 'a"b', "é"):
        answer = await client.get("/v1/links", headers=[(b"X-Request-ID", unfit.encode())])
        assert re.fullmatch(r"[0-9a-f]+-[0-9a-f]+", answer.headers["x-request-id"])
