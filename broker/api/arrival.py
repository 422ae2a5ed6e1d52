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
        scope["arrived_us"] = self.clock()
        await self.app(scope, receive, send)


def server_time(request: Request, now_us: int) -> str:
    """The middle of the time that the broker has had the request, to be called as the answer is made.

    An agent holds it against the middle of its own sending and receiving; the difference is then NTP's offset (RFC 5905, section 8),
    and what the broker needed for the answer cancels out.
    """
    return format_time((int(request.scope["arrived_us"]) + now_us) // 2)
