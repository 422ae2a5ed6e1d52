# SPDX-License-Identifier: Apache-2.0
"""Server-sent events: the text format, and the headers that keep proxies from holding them back."""

from collections.abc import AsyncIterator

from fastapi.responses import StreamingResponse

HEARTBEAT = ": still here\n\n"
HEARTBEAT_S = 10.0


def message(data: str, event: str | None = None, event_id: str | None = None) -> str:
    lines = [f"id: {event_id}"] if event_id is not None else []
    if event is not None:
        lines.append(f"event: {event}")
    lines.append(f"data: {data}")
    return "\n".join(lines) + "\n\n"


def stream(messages: AsyncIterator[str]) -> StreamingResponse:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(messages, media_type="text/event-stream", headers=headers)
