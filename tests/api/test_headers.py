# SPDX-License-Identifier: Apache-2.0
"""Every answer carries the headers that browsers go by: those of faults too, which nothing else wraps."""

from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from broker.api import errors
from broker.api.headers import ALWAYS, Headers
from broker.api.request_ids import OfRequest


async def test_a_fault_carries_the_headers_and_no_detail_of_itself(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Any] = []
    caplog.handler.addFilter(OfRequest())
    monkeypatch.setattr(caplog.handler, "emit", said.append)
    app = FastAPI()
    errors.install(app)
    app.add_middleware(Headers)

    @app.get("/fault")
    async def fault() -> None:
        raise RuntimeError("a secret")

    async with AsyncClient(transport=ASGITransport(app, raise_app_exceptions=False), base_url="http://broker") as client:
        answer = await client.get("/fault", headers={"X-Request-ID": "mine"})
    assert answer.status_code == 500 and answer.headers["content-type"] == "application/problem+json"
    assert {name: answer.headers.get(name) for name in ALWAYS} == ALWAYS
    assert "secret" not in answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == "mine"
    assert [record.of_request for record in said] == [" [mine]"]
