# SPDX-License-Identifier: Apache-2.0
"""A load generator that costs little beside the server: keep-alive connections, requests written as ready-made bytes."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """Latencies in seconds, in order of completion; `statuses` counts answers by status."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def quantile(self, q: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else float("nan")


def request(method: str, path: str, token: str, body: bytes) -> bytes:
    head = [f"{method} {path} HTTP/1.1", "Host: broker", f"Authorization: Bearer {token}", "Content-Type: application/json"]
    head += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(head).encode() + body


class _Client(asyncio.Protocol):
    """One connection. Answers are recognised by their Content-Length alone, which every answer of the broker has."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._buffer = b""
        self._answered: asyncio.Future[None] | None = None
        self._sent_at = 0.0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport  # type: ignore[assignment]

    async def ask(self, data: bytes) -> None:
        assert self.transport is not None
        self._answered = asyncio.get_running_loop().create_future()
        self._sent_at = time.perf_counter()
        self.transport.write(data)
        await self._answered

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        at = head.index(b"content-length:") + 15
        length = int(head[at : (head.find(b"\r\n", at) if head.find(b"\r\n", at) > 0 else len(head))])
        if len(self._buffer) < end + 4 + length:
            return
        self._outcome.latencies.append(time.perf_counter() - self._sent_at)
        status = int(head[9:12])
        self._outcome.statuses[status] = self._outcome.statuses.get(status, 0) + 1
        self._buffer = self._buffer[end + 4 + length :]
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionError("the server closed the connection"))


async def drive(port: int, clients: int, seconds: float, data: Callable[[int], bytes], rate: float | None = None) -> Outcome:
    """`clients` connections ask as fast as they are answered, or together `rate` times a second; `data(i)` is the i-th request."""
    outcome = Outcome()
    loop = asyncio.get_running_loop()
    connections = [(await loop.create_connection(lambda: _Client(outcome), "127.0.0.1", port))[1] for _ in range(clients)]
    number = 0
    begin = time.perf_counter()
    stop = begin + seconds

    async def one(connection: _Client, index: int) -> None:
        nonlocal number
        turn = begin + index * (clients / rate) / clients if rate else begin
        while (now := time.perf_counter()) < stop:
            if rate:
                if turn > now:
                    await asyncio.sleep(turn - now)
                turn += clients / rate
            number += 1
            await connection.ask(data(number))

    await asyncio.gather(*(one(connection, index) for index, connection in enumerate(connections)))
    outcome.seconds = time.perf_counter() - begin
    for connection in connections:
        if connection.transport is not None:
            connection.transport.close()
    return outcome
