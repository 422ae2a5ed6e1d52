# SPDX-License-Identifier: Apache-2.0
"""When a request arrived: the half of a time stamp that agents set their clocks by, taken before anything else is done."""

from collections.abc import Callable

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.core.units import format_time


class Arrival:
    """Notes the time at which each request comes in."""

    def __init__(self, app: ASGIApp, clock: Callable[[], int]) -> None:
        self.app = app
        self.clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note when the request came."""
        scope["arrived_us"] = self.clock()
        await self.app(scope, receive, send)


def server_times(request: Request, now_us: int) -> dict[str, str | int]:
    """`server_time`, the middle of the time that the broker has had the request, and `server_took_us`, how long that was; to be called
    as the answer is made.

    An agent holds the first against the middle of its own sending and receiving: the difference is NTP's offset (RFC 5905, section 8). What
    the broker needed for the answer was not on the way, and so does not count into the offset's error bound.
    """
    arrived_us = int(request.scope["arrived_us"])
    return {"server_time": format_time((arrived_us + now_us) // 2), "server_took_us": max(now_us - arrived_us, 0)}
