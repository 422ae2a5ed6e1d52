# SPDX-License-Identifier: Apache-2.0
"""Streams of events by their own generator: httpx's ASGI transport collects a whole body before it returns.

test_contract plays a stream over a socket."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from broker.api.feed import Wanted
from broker.api.routes.events import _events
from broker.store import events
from broker.store.events import Event, Position
from tests.service import Service


async def take(stream: AsyncIterator[str], number: int) -> list[tuple[str, dict[str, Any]]]:
    """The next `number` events as (id, data)."""
    found: list[tuple[str, dict[str, Any]]] = []
    async with asyncio.timeout(20):
        while len(found) < number:
            lines = dict(line.split(": ", 1) for line in (await anext(stream)).strip().split("\n"))
            if "data" in lines:
                found.append((lines["id"], json.loads(lines["data"])))
                assert lines["event"] == found[-1][1]["action"]
    return found


ANYTHING = Wanted()


@asynccontextmanager
async def streamed(
    service: Service, position: Position | None = None, wanted: Wanted = ANYTHING, owner: str = "tok_test"
) -> AsyncIterator[AsyncGenerator[str]]:
    async def anybody() -> None:
        pass

    broker = service.app.state.broker
    listener = await broker.feed.listen(wanted, owner)
    async with aclosing(_events(broker, listener, position, anybody)) as stream:
        yield stream
    broker.feed.leave(listener)


async def newest(service: Service) -> Position:
    async with service.database.transaction() as connection:
        return await events.newest(connection)


def note(service: Service, subject: str, kind: str = "test") -> Event:
    return Event(service.clock(), "me", f"{kind}.noted", kind, subject, None, None)


async def noted(service: Service, *subjects: str) -> None:
    async with service.database.transaction() as connection:
        await events.append(connection, [note(service, subject) for subject in subjects])
    service.app.state.broker.wakeups.announce(())
