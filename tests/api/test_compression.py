# SPDX-License-Identifier: Apache-2.0
"""gzip: large answers where they are wanted compressed, and never what holds a secret or does not end."""

import gzip
import zlib
from typing import Any

import httpx
import pytest
from httpx import ASGITransport, AsyncClient
from starlette.types import Receive, Scope, Send

from broker.api.compression import Compression
from tests.service import Service, checked

BODY = b'{"rate_bps": 1000000000, "path": ["L1"]}' * 5000
ZIPPED = {"Accept-Encoding": "gzip"}


def app_that_answers(
    body: bytes = BODY, media: str = "application/json", *, parts: int = 1, more: dict[str, str] | None = None
) -> Compression:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        given = [(b"content-type", media.encode()), *((name.encode(), value.encode()) for name, value in (more or {}).items())]
        await send({"type": "http.response.start", "status": int(scope["path"].rpartition("/")[2] or 200), "headers": given})
        for part in range(parts):
            await send({"type": "http.response.body", "body": body, "more_body": part < parts - 1})

    return Compression(answer)


async def ask(app: Any, path: str = "/v1/links/", method: str = "GET", **headers: str) -> httpx.Response:
    async with AsyncClient(transport=ASGITransport(app), base_url="http://broker") as client:
        return await client.request(method, path, headers=ZIPPED | headers)


async def test_large_answers_are_compressed() -> None:
    answer = await ask(app_that_answers(more={"etag": '"7"'}))
    assert answer.headers["content-encoding"] == "gzip" and answer.headers["vary"] == "Accept-Encoding"
    assert int(answer.headers["content-length"]) < len(BODY) / 6
    assert answer.content == BODY
    assert answer.headers["etag"] == 'W/"7"'  # other bytes, same revision


@pytest.mark.parametrize(
    ("app", "asked"),
    [
        (app_that_answers(), {"path": "/v1/agents/h1/assignments/200"}),  # keys beside labels and paths that others chose
        (app_that_answers(), {"method": "POST"}),  # answers that show a new token
        (app_that_answers(), {"path": "/404"}),
        (app_that_answers(b"{}"), {}),
        (app_that_answers(parts=3), {}),  # a stream goes out as it comes
        (app_that_answers(media="text/event-stream"), {}),
        (app_that_answers(media="image/png"), {}),
    ],
)
async def test_other_answers_are_not(app: Compression, asked: dict[str, Any]) -> None:
    assert "content-encoding" not in (await ask(app, **asked)).headers


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [("gzip", 1), ("br, gzip;q=0.5", 1), ("*", 1), ("gzip;q=0", 0), ("gzip; q=0.0", 0), ("identity", 0), ("xgzip", 0), ("", 0)],
)
async def test_who_takes_it(accepted: str, zipped: bool) -> None:
    answer = await ask(app_that_answers(), **{"Accept-Encoding": accepted})
    assert ("content-encoding" in answer.headers) == bool(zipped)
    assert answer.content == BODY


async def test_what_is_compressed_already_stays() -> None:
    answer = await ask(app_that_answers(gzip.compress(BODY), more={"content-encoding": "gzip"}))
    assert answer.content == BODY


async def test_a_list_and_the_contract(service: Service) -> None:
    """Through the whole application; and a weak tag is good for asking again."""
    await service.link(available=[{"from": f"2026-01-01T00:{n // 60:02}:{n % 60:02}Z", "bps": 10**9 - n} for n in range(3000)])
    answer = await service.client.get("/v1/links", headers=ZIPPED)
    assert answer.headers["content-encoding"] == "gzip" and len(checked(answer)[0]["available"]) == 3000
    link = await service.client.get("/v1/links/L1", headers=ZIPPED)
    assert link.headers["etag"].startswith('W/"')
    changed = await service.client.patch("/v1/links/L1", json={"metric": 1}, headers={"If-Match": link.headers["etag"]})
    assert checked(changed)["metric"] == 1
    transfer = await service.book()
    weak = {"If-None-Match": f'W/"{transfer["revision"]}"'}
    assert (await service.client.get(f"/v1/transfers/{transfer['id']}", headers=weak)).status_code == 304
    for headers in (ZIPPED, {"Accept-Encoding": "identity"}):
        async with service.client.stream("GET", "/openapi.json", headers=headers) as stream:
            raw = b"".join([part async for part in stream.aiter_raw()])
        text = zlib.decompress(raw, 16 + zlib.MAX_WBITS) if headers is ZIPPED else raw
        assert text.startswith(b'{"openapi"') and int(stream.headers["content-length"]) == len(raw)
