# SPDX-License-Identifier: Apache-2.0
"""One look for everybody who asks while it lasts: a thousand who ask at once cost what one does."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

Found = TypeVar("Found")


class Shared:
    """One look at the database for everybody who asks for the same at the same time."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Future[Any]] = {}

    async def __call__(self, name: str, look: Callable[[], Awaitable[Found]]) -> Found:
        """What `look` finds; whoever asks for `name` meanwhile gets the same."""
        running = self._running.get(name)
        if running is None:
            running = self._running[name] = asyncio.ensure_future(look())
            running.add_done_callback(lambda _: self._running.pop(name))
        found: Found = await asyncio.shield(running)  # who goes away ends nobody else's
        return found
