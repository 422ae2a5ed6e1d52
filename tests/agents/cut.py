# SPDX-License-Identifier: Apache-2.0
"""A TCP relay that can be cut: connections stay open and carry nothing, as in a network that lost its way, not as with a process that died."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator


class Relay:
    """Passes bytes between `port` and `target` until `cut`; `mend` breaks what hung meanwhile and passes again."""

    def __init__(self, port: int, target: int) -> None:
        self.port, self._target = port, target
        self._open: asyncio.Event
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def cut(self) -> None:
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(10)

    def mend(self) -> None:
        asyncio.run_coroutine_threadsafe(self._mend(), self._loop).result(10)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def stop(self) -> None:
        self.mend()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _listen(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _cut(self) -> None:
        self._open.clear()

    async def _mend(self) -> None:
        if not self._open.is_set():
            for writer in list(self._writers):
                writer.transport.abort()
            self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._open.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(back)
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
        except OSError:
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                await self._open.wait()  # what was on its way is lost with its connection
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()


@contextlib.contextmanager
def relay(port: int, target: int) -> Iterator[Relay]:
    made = Relay(port, target)
    made.start()
    try:
        yield made
    finally:
        made.stop()
