# SPDX-License-Identifier: Apache-2.0
"""Server-sent events: the text format, and the headers that keep proxies from holding them back."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

HEARTBEAT = ": still here\n\n"
HEARTBEAT_S = 10.0


def heartbeat_s() -> float:
    """Seconds that a stream may be silent for, HEARTBEAT_S at the most.

    Thousands of streams that were opened together must not all be written to at the same moment: a request at that moment would wait for all of them.
    """
    return HEARTBEAT_S * random.uniform(0.8, 1.0)  # noqa: S311 (not security relevant)


async def set_or_late(event: asyncio.Event, timeout_s: float) -> None:
    """Wait for the event, which is set at the latest after so long. `asyncio.wait_for` would make a task of each of thousands of waits."""
    timer = asyncio.get_running_loop().call_later(timeout_s, event.set)
    try:
        await event.wait()
    finally:
        timer.cancel()


def message(data: str, event: str | None = None, event_id: str | None = None) -> str:
    """One event as SSE text."""
    lines = [f"id: {event_id}"] if event_id is not None else []
    if event is not None:
        lines.append(f"event: {event}")
    lines.append(f"data: {data}")
    return "\n".join(lines) + "\n\n"


class Stream(StreamingResponse):
    """`leave` is called once it is over, also where the caller went before its first message."""

    def __init__(self, messages: AsyncIterator[str], leave: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(messages, media_type="text/event-stream", headers=headers)
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the messages; `leave` in any case."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()
