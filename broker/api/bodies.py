# SPDX-License-Identifier: Apache-2.0
"""Bodies are bounded before they are parsed: their length, how many values they hold, and how many long ones are in the house at once.

Most requests are small, and so are their limits; a list of thousands is taken only where one belongs. Values are counted by their commas, in
bytes that nobody has parsed: eight megabytes of `[{},{},` would be millions of objects, and gigabytes.

What is not short is looked through before FastAPI gets it, with a parser that is several times as fast as Python's, and one at a time; each that
is refused gives the others a rest. So a caller who sends nonsense again and again has a small part of the time, whatever it is.
"""

import asyncio
import re
import time
from typing import Any

import orjson
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.api.errors import refusal
from broker.api.statuses import status_of
from broker.desk.ground.problems import Problem

_SMALL = 128 * 1024
_SMALL_VALUES = 20_000
_BYTES_A_VALUE = 40  # so 8 MiB hold 209,715: 100,000 capacity steps, or 10,000 transfers with everything that can be said of one
_WITHOUT_TOKEN = 32 * 1024
_HELD = 64 * 2**20  # of long bodies, all together
_AT_ONCE = 4  # long bodies that are worked on
_SHORT = 16 * 1024
_MAX_KEYS = 4096  # of one object; metadata may have 2,700
_AT_A_TIME_S = 0.004
_REST_S = 0.1
# What holds lists: of transfers, of links, of capacity steps, of ids, of reports.
_LISTS = re.compile(r"/v1/(transfers/batch|topology|simulations|links|links/[^/]+|plans|agents/[^/]+/reports)")
_OPEN = frozenset({"/v1/session", "/v1/agents/enrol"})


class Bodies:
    """Reads each body, or refuses it, and hands it on whole."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app = app
        self.limit = limit
        self._held = 0
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._looking = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Bound and read the body before the application sees it."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        limit, values = self._bounds(scope["path"])
        body = bytearray()
        try:
            if _declared(scope) > limit:
                raise _too_large(limit)
            await self._read(receive, limit, body)
            if body.count(b",") > values:
                raise Problem(
                    "too-large", f"the body holds more than {values} values; send several smaller requests", {"limit": values}
                )
            if len(body) > _SHORT:
                async with self._looking:
                    await _look_through(body)
        except Problem as problem:
            self._release(body)
            await self._rest(body)
            headers = {"Retry-After": "1"} if status_of(problem) == 503 else {}
            await refusal(problem, headers | {"Connection": "close"})(scope, receive, send)
            return
        except ClientDisconnect:
            self._release(body)
            return
        try:
            if len(body) <= _SHORT:
                await self.app(scope, _whole(bytes(body), receive), send)
                return
            async with self._turns:
                await self._watched(scope, body, receive, send)
        finally:
            self._release(body)

    async def _watched(self, scope: Scope, body: bytearray, receive: Receive, send: Send) -> None:
        refused = False

        async def sent(message: Message) -> None:
            nonlocal refused
            refused = refused or (message["type"] == "http.response.start" and message["status"] in (400, 413, 422))
            await send(message)

        await self.app(scope, _whole(bytes(body), receive), sent)
        if refused:
            await self._rest(body)

    async def _rest(self, body: bytearray) -> None:
        if len(body) > _SHORT:
            async with self._looking:
                await asyncio.sleep(_REST_S)

    def _bounds(self, path: str) -> tuple[int, int]:
        if path in _OPEN:
            return min(_WITHOUT_TOKEN, self.limit), _SMALL_VALUES
        if _LISTS.fullmatch(path):
            return self.limit, max(_SMALL_VALUES, self.limit // _BYTES_A_VALUE)
        return min(_SMALL, self.limit), _SMALL_VALUES

    async def _read(self, receive: Receive, limit: int, body: bytearray) -> None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part = message.get("body", b"")
            body += part
            self._held += len(part)
            if len(body) > limit:
                raise _too_large(limit)
            if len(body) > _SMALL and self._held > _HELD:
                raise Problem("unavailable", "too many long bodies at once; try again")
            more = message.get("more_body", False)

    def _release(self, body: bytearray) -> None:
        self._held -= len(body)


async def _look_through(body: bytearray) -> None:
    """Raises Problem for invalid JSON and for objects with thousands of fields. Yields to other tasks in between."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as wrong:
        raise Problem("malformed", f"the body is not JSON: {wrong}") from None
    began = time.perf_counter()
    waiting: list[Any] = [document] if isinstance(document, dict | list) else []
    number = 0
    while waiting:
        number += 1
        item = waiting.pop()
        if isinstance(item, dict) and len(item) > _MAX_KEYS:
            raise Problem("too-large", f"an object with {len(item)} fields; at most {_MAX_KEYS}", {"limit": _MAX_KEYS})
        waiting.extend(part for part in (item.values() if isinstance(item, dict) else item) if isinstance(part, dict | list))
        if number % 64 == 0 and time.perf_counter() - began > _AT_A_TIME_S:
            await asyncio.sleep(0)
            began = time.perf_counter()


def _declared(scope: Scope) -> float:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value[:20]) if value.isdigit() else float("inf")
    return 0


def _too_large(limit: int) -> Problem:
    return Problem("too-large", f"the body is larger than {limit} bytes; send several smaller requests", {"limit_bytes": limit})


def _whole(body: bytes, receive: Receive) -> Receive:
    given = False

    async def whole() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return whole
