# SPDX-License-Identifier: Apache-2.0
"""Bodies are bounded before they are parsed: their length, how many values they hold, and how many long ones are in the house at once.

Most requests are small, and so are their limits; a list of thousands is taken only where one belongs. Values are counted by their commas, in
bytes that nobody has parsed: eight megabytes of `[{},{},` would be millions of objects, and gigabytes.
"""

import asyncio
import re

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.api.errors import refusal
from broker.desk.problems import Problem

_SMALL = 128 * 1024
_SMALL_VALUES = 20_000
_MOST_VALUES = 400_000  # 100,000 capacity steps, or 10,000 transfers with everything that can be said of one
_WITHOUT_TOKEN = 32 * 1024
_HELD = 64 * 2**20  # of long bodies, all together
_AT_ONCE = 2  # long bodies that are worked on
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        except Problem as problem:
            self._release(body)
            headers = {"Retry-After": "1"} if problem.status == 503 else {}
            await refusal(problem, headers | {"Connection": "close"})(scope, receive, send)
            return
        except ClientDisconnect:
            self._release(body)
            return
        try:
            if len(body) <= _SMALL:
                await self.app(scope, _whole(bytes(body), receive), send)
                return
            async with self._turns:
                await self.app(scope, _whole(bytes(body), receive), send)
        finally:
            self._release(body)

    def _bounds(self, path: str) -> tuple[int, int]:
        if path in _OPEN:
            return min(_WITHOUT_TOKEN, self.limit), _SMALL_VALUES
        if _LISTS.fullmatch(path):
            return self.limit, max(_MOST_VALUES, self.limit // 20)
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
