# SPDX-License-Identifier: Apache-2.0
"""Wake-ups: "there is something new on this topic", inside the process and, through Redis, between processes.

They carry nothing and may get lost; whoever waits also looks at the database every few seconds. Without Redis all still works, later.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Iterator

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

EVENTS = "events"
_CHANNEL = "bwb:wakeups"
_RETRY_S = 1.0


def host_topic(host: str) -> str:
    return f"host:{host}"


class Wakeups:
    def __init__(self, redis_url: str, poll_s: float = 2.0) -> None:
        self._redis = Redis.from_url(redis_url, socket_connect_timeout=2) if redis_url else None
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._outbox: asyncio.Queue[bytes] = asyncio.Queue(maxsize=10_000)
        self._poll_s = poll_s
        self._closing = False
        self.connected = False

    def announce(self, hosts: Iterable[str]) -> None:
        """Something was committed; `hosts` have new assignments. Never blocks."""
        topics = [EVENTS, *map(host_topic, hosts)]
        self._wake(topics)
        if self._redis is not None:
            with contextlib.suppress(asyncio.QueueFull):
                self._outbox.put_nowait(orjson.dumps(topics))

    @contextlib.contextmanager
    def _listening(self, topic: str) -> Iterator[asyncio.Event]:
        event = asyncio.Event()
        self._waiting.setdefault(topic, set()).add(event)
        try:
            yield event
        finally:
            self._waiting[topic].discard(event)
            if not self._waiting[topic]:
                del self._waiting[topic]

    async def on(self, topic: str) -> AsyncIterator[None]:
        """Yields at once, then whenever the topic is announced and at least every `poll_s` seconds; ends when the process closes."""
        with self._listening(topic) as event:
            while not self._closing:
                event.clear()
                yield
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), self._poll_s)

    def close(self) -> None:
        """Let every stream end."""
        self._closing = True
        self._wake(list(self._waiting))

    async def run(self) -> None:
        """Carry wake-ups to and from Redis until cancelled."""
        if self._redis is None:
            return
        try:
            await asyncio.gather(self._publish(self._redis), self._subscribe(self._redis))
        finally:
            with contextlib.suppress(RedisError, OSError):
                await self._redis.aclose()

    def _wake(self, topics: Iterable[str]) -> None:
        for topic in topics:
            for event in self._waiting.get(topic, ()):
                event.set()

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
                        self._wake(orjson.loads(message["data"]))
            except (RedisError, OSError) as error:
                self.connected = False
                log.warning("no wake-ups from other processes: redis: %s", error)
                await asyncio.sleep(_RETRY_S)
