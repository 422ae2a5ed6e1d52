# SPDX-License-Identifier: Apache-2.0
"""Wake-ups: "there is something new on this topic", inside the process and, through Redis, between processes.

They carry nothing and may get lost; every listener (one reader of events, one of revisions, for all
streams of a process) also looks at the database every few seconds. Without Redis all still works, later.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

EVENTS = "events"
_CHANNEL = "bwb:wakeups"
_RETRY_S = 1.0


def host_topic(host: str) -> str:
    """The topic of a host's assignments."""
    return f"host:{host}"


@dataclass(eq=False)
class _Listener:
    topics: set[str] = field(default_factory=set)
    ready: asyncio.Event = field(default_factory=asyncio.Event)


class Wakeups:
    """Tells streams of this process, and by Redis those of others, that there is something new."""

    def __init__(self, redis_url: str, poll_s: float = 2.0) -> None:
        self._redis = Redis.from_url(redis_url, socket_connect_timeout=2) if redis_url else None
        self._listeners: set[_Listener] = set()
        self._outbox: asyncio.Queue[bytes] = asyncio.Queue(maxsize=10_000)
        self._poll_s = poll_s
        self._closing = False
        self.connected = False

    def announce(self, hosts: Iterable[str]) -> None:
        """Something was committed; `hosts` have new assignments. Never blocks."""
        topics = [EVENTS, *map(host_topic, hosts)]
        self.wake(topics)
        if self._redis is not None:
            with contextlib.suppress(asyncio.QueueFull):
                self._outbox.put_nowait(orjson.dumps(topics))

    async def announcements(self) -> AsyncIterator[frozenset[str]]:
        """The topics that were announced since the last turn, as they come; ends when the process closes.

        Empty: look at everything. So at first, and every `poll_s` seconds, for a wake-up may get lost.
        """
        listener = _Listener()
        self._listeners.add(listener)
        try:
            while not self._closing:
                listener.topics.clear()
                whole_at = time.monotonic() + self._poll_s
                yield frozenset()
                while not self._closing and (left := whole_at - time.monotonic()) > 0:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(listener.ready.wait(), left)
                    listener.ready.clear()
                    if listener.topics:
                        topics = frozenset(listener.topics)
                        listener.topics.clear()
                        yield topics
        finally:
            self._listeners.discard(listener)

    def close(self) -> None:
        """End every wait."""
        self._closing = True
        self.wake(())

    async def run(self) -> None:
        """Carry wake-ups to and from Redis until cancelled."""
        if self._redis is None:
            return
        try:
            await asyncio.gather(self._publish(self._redis), self._subscribe(self._redis))
        finally:
            with contextlib.suppress(RedisError, OSError):
                await self._redis.aclose()

    def wake(self, topics: Iterable[str]) -> None:
        """In this process only."""
        for listener in self._listeners:
            listener.topics.update(topics)
            listener.ready.set()

    async def _publish(self, redis: "Redis") -> None:
        while True:
            message = await self._outbox.get()
            try:
                await redis.publish(_CHANNEL, message)
            except (RedisError, OSError):
                await asyncio.sleep(_RETRY_S)  # dropped: the others poll

    async def _subscribe(self, redis: "Redis") -> None:
        while True:
            try:
                async with redis.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(_CHANNEL)
                    self.connected = True
                    async for message in pubsub.listen():
                        self.wake(orjson.loads(message["data"]))
            except (RedisError, OSError) as error:
                self.connected = False
                log.warning("no wake-ups from other processes: redis: %s", error)
                await asyncio.sleep(_RETRY_S)
