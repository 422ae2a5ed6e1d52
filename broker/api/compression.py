# SPDX-License-Identifier: Apache-2.0
"""gzip for large answers: lists, calendars and topologies are JSON that shrinks to a fifth.

Only what GET answers, and nothing of agents: compressed, an answer's length tells how alike its parts are, and who chooses one part could guess a
secret beside it (BREACH). Tokens are shown by POST alone, and an agent's assignments hold keys beside labels and paths that others chose.
Streams go out as they come. The work is done in slices between which other requests have their turn.
"""

import asyncio
import re
import zlib

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LEAST = 8 * 1024  # below, a round trip costs more than the bytes saved
_SLICE = 64 * 1024  # less than a millisecond of work
_LEVEL = 1  # of 9: the others take several times as long for a tenth of the size
_GZIP = 16 + zlib.MAX_WBITS
_KEYS = "/v1/agents/"
_MEDIA = re.compile(rb"application/json|text/(plain|csv)")
_REFUSED = re.compile(rb"\s*q=0(\.0*)?\s*")


class Compression:
    """Compresses an answer where its caller takes gzip and it is worth it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Compress large answers for callers that take gzip."""
        if scope["type"] == "http" and scope["method"] == "GET" and not scope["path"].startswith(_KEYS) and accepts_gzip(scope):
            await self.app(scope, receive, _Answer(send).sent)
        else:
            await self.app(scope, receive, send)


def accepts_gzip(scope: Scope) -> bool:
    """Does the caller take gzip (RFC 9110, section 12.5.3)?"""
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            for coding in value.split(b","):
                called, _, weight = coding.partition(b";")
                if called.strip() in (b"gzip", b"*"):
                    return _REFUSED.fullmatch(weight) is None
    return False


class _Answer:
    """One answer: its head waits for its body, which shows whether it is whole and large."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._head: Message | None = None

    async def sent(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_fit(message):
            self._head = message
            return
        head, self._head = self._head, None
        if head is not None:
            body = message.get("body", b"")
            if not message.get("more_body") and len(body) >= _LEAST:
                packed = await _compress(body)
                head["headers"] = _headers(head["headers"], len(packed))
                message = {**message, "body": packed}
            await self._send(head)
        await self._send(message)


def _is_fit(head: Message) -> bool:
    names = {name.lower(): value for name, value in head["headers"]}
    return head["status"] == 200 and b"content-encoding" not in names and _MEDIA.match(names.get(b"content-type", b"")) is not None


async def _compress(body: bytes) -> bytes:
    packing = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    parts = []
    for begin in range(0, len(body), _SLICE):
        parts.append(packing.compress(body[begin : begin + _SLICE]))
        await asyncio.sleep(0)
    return b"".join([*parts, packing.flush()])


def _headers(given: list[tuple[bytes, bytes]], length: int) -> list[tuple[bytes, bytes]]:
    """The headers of the compressed answer. Its ETag is weak, because it identifies the content and not the bytes."""
    headers = [(name, value) for name, value in given if name.lower() not in (b"content-length", b"etag")]
    tags = [(name, b"W/" + value) for name, value in given if name.lower() == b"etag"]
    return [*headers, *tags, (b"content-length", b"%d" % length), (b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
