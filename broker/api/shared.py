# SPDX-License-Identifier: Apache-2.0
"""One query shared by all callers that ask while it runs: a thousand simultaneous callers cost as much as one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

Found = TypeVar("Found")


class Shared:
    """Shares one database query among callers that ask for the same at the same time."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Future[Any]] = {}

    async def __call__(self, name: str, look: Callable[[], Awaitable[Found]]) -> Found:
        """The result of `look`; callers that ask for `name` meanwhile get the same result."""
        running = self._running.get(name)
        if running is None:
            running = self._running[name] = asyncio.ensure_future(look())
            running.add_done_callback(lambda _: self._running.pop(name))
        found: Found = await asyncio.shield(running)  # a caller that disconnects does not cancel it for the others
        return found
