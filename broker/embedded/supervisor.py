# SPDX-License-Identifier: Apache-2.0
"""Start the parts of the broker in order, keep them running, and stop them in reverse order."""

import asyncio
import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import broker
from broker.embedded import UpError, orphans, postgres, redis
from broker.embedded.child import Child, Program
from broker.embedded.home import Home

_START_LIMIT_S = 120.0  # a first start that compiles the planners takes most of a minute on a busy core
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.2, 10.0  # between the death of a child and its next start, doubling
_STEADY_S = 30.0  # a child that lived so long is not in a crash loop
_POLL_S = 0.02
_ONE_CTRL_C_S = 0.3  # `timeout` and some shells signal the process and then its group: that is one wish, not two


def up(state_dir: Path, host: str, port: int, report: Callable[[str], None]) -> int:
    """Run the broker until it is told to stop; the exit code. Raises UpError when it cannot start."""
    home = Home(state_dir)
    with home.lock():
        home.withdraw()  # of one that was killed
        sockets = home.sockets()
        orphans.end(home, sockets, report)
        with _listen(host, port) as listener:
            return asyncio.run(Supervisor(home, sockets, listener, report).run())


class Supervisor:
    """Starts PostgreSQL, Redis, the API and a worker, starts anew what ends, and stops all of them together."""

    def __init__(self, home: Home, sockets: Path, listener: socket.socket, report: Callable[[str], None]) -> None:
        self._home = home
        self._report = report
        self._listener = listener
        self._address, self._url = _address_of(listener)
        self._began = time.monotonic()
        self._stopping_since = 0.0

        given = {name: value for name, value in os.environ.items() if value or not name.startswith("BWB_")}
        self._postgres = None if "BWB_DATABASE_URL" in given else postgres.Postgres(home, sockets)
        self._redis = None if "BWB_REDIS_URL" in given else redis.server(home, sockets)
        if self._postgres:  # PGOPTIONS, PGPORT and their like are meant for servers of the user's
            given = {name: value for name, value in given.items() if not name.startswith("PG")}
        defaults = {
            "BWB_DATABASE_URL": postgres.url(sockets),
            "BWB_REDIS_URL": redis.url(sockets),
            "BWB_SECRET_KEY": home.secret_key(),
        }
        # Logs are for grep: tracebacks without frames around them.
        environment = defaults | given | {"BWB_STATE_DIR": str(home.path), "PYTHONUNBUFFERED": "1", "TYPER_STANDARD_TRACEBACK": "1"}
        if not os.access(Path(broker.__file__).parent, os.W_OK):  # installed read-only, and perhaps without a home directory
            environment.setdefault("NUMBA_CACHE_DIR", str(home.path / "cache"))

        def part(name: str, *command: str, patience_s: float, inherited: tuple[int, ...] = ()) -> Child:
            program = Program(name, (sys.executable, "-m", *command), environment, patience_s=patience_s, inherited=inherited)
            return Child(program, lambda: home.log(name))

        # The API inherits the socket: the port stays ours while the API restarts, and clients wait instead of being refused.
        fd = listener.fileno()
        self._api = part("api", "broker.cli.app", "serve", "--fd", str(fd), patience_s=10, inherited=(fd,))
        self._worker = part("worker", "broker.cli.app", "worker", "--beat", "--schedule", str(home.beat_schedule), patience_s=5)

    @property
    def _servers(self) -> list[Child]:
        return [server for server in (self._postgres and self._postgres.server, self._redis) if server]

    @property
    def _children(self) -> list[Child]:
        return [*self._servers, self._api, self._worker]

    # -- life ------------------------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Serve until a signal comes or a child fails for good; returns the exit code of `bwb up`."""
        working = asyncio.ensure_future(self._work())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # under nohup it stays ignored
                asyncio.get_running_loop().add_signal_handler(number, self._on_signal, working)
        try:
            with suppress(asyncio.CancelledError):
                await working
        finally:  # not part of what a signal cancels
            await self._stop()
            self._report("stopped")
        return 0

    def _on_signal(self, working: asyncio.Future[None]) -> None:
        if self._stopping_since and time.monotonic() - self._stopping_since < _ONE_CTRL_C_S:
            return
        if self._stopping_since:
            self._report("stopping by force; PostgreSQL recovers at the next start")
            for child in self._children:
                child.kill()
            self._home.withdraw()
            os._exit(1)
        self._stopping_since = time.monotonic()
        self._report("stopping (ctrl-C again to force it)")
        working.cancel()

    async def _work(self) -> None:
        try:
            async with asyncio.timeout(_START_LIMIT_S):
                await self._start()
        except TimeoutError:
            raise UpError(f"not ready after {_START_LIMIT_S:.0f} s; the logs are in {self._home.logs}") from None
        async with asyncio.TaskGroup() as keepers:
            for child in self._children:
                keepers.create_task(self._keep(child))

    async def _start(self) -> None:
        # It spends seconds on imports, which go on while PostgreSQL starts. The migrations are its first work, and only the first
        # time: a second process would import most of the same once more, and a restart must not wait for the database.
        await self._api.start(asyncio.subprocess.PIPE)
        await self._api.feed(str(self._home.path).encode())
        if self._redis:
            await self._redis.start()
        if self._postgres:
            await self._start_postgres(self._postgres)
        self._remember()
        since = time.monotonic()
        await self._until(self._answers, self._api)
        self._took("api, migrations", since)
        await self._worker.start()  # not before: its imports would take the cores from the API's
        self._home.holds(self._url)
        self._announce()
        self._report(f"ready after {time.monotonic() - self._began:.2f} s: {self._url} (admin token: {self._home.token})")

    async def _start_postgres(self, database: postgres.Postgres) -> None:
        since = time.monotonic()
        if await database.create():
            self._took("initdb", since)
            since = time.monotonic()
        await database.server.start()

        async def ready() -> bool:
            return database.is_ready()

        await self._until(ready, database.server)
        self._took("postgres", since)

    async def _stop(self) -> None:
        """Those who use the servers first. The listener closes with them, so that new clients are refused at once."""
        self._listener.close()
        await asyncio.gather(*(child.stop() for child in (self._api, self._worker)))
        await asyncio.gather(*(server.stop() for server in self._servers))
        self._home.withdraw()
        self._home.remember_children({})
        self._home.remove_outside_sockets()

    async def _keep(self, child: Child) -> None:
        delay = _FIRST_DELAY_S
        while True:
            await child.wait()
            if child.lived_s > _STEADY_S:
                delay = _FIRST_DELAY_S
            self._report(
                f"{child.name} (pid {child.pid}) {child.why_ended()}, see {child.log()}; starting it again in {delay:.1f} s"
            )
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LONGEST_DELAY_S)
            try:
                await child.start()
                self._announce()
            except OSError as error:  # out of memory, processes or disk; if it does not run, the loop comes here again
                self._report(f"starting {child.name}: {error}")

    # -- looking and telling ---------------------------------------------------------------------------------------------------

    async def _until(self, ready: Callable[[], Awaitable[bool]], child: Child) -> None:
        while not await ready():
            if child.exit_code is not None:
                raise self._failure(child)
            await asyncio.sleep(_POLL_S)

    async def _answers(self) -> bool:
        """Does /readyz answer 200? By hand: an HTTP library would cost more start-up time than the whole supervisor."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(1):
                reader, writer = await asyncio.open_connection(*self._address)
                try:
                    writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    status = await reader.readline()
                    return b" 200 " in status
                finally:
                    writer.close()
        return False

    def _took(self, part: str, since: float) -> None:
        self._report(f"{part:<16} {time.monotonic() - since:5.2f} s")

    def _failure(self, child: Child) -> UpError:
        return UpError(f"{child.name} {child.why_ended()}; its log {child.log()} ends with:\n{child.tail()}")

    def _remember(self) -> None:
        orphans.record(self._home, self._children)

    def _announce(self) -> None:
        self._remember()
        pids: dict[str, int | None] = dict.fromkeys(("api", "worker", "postgres", "redis"))
        self._home.announce(self._url, pids | {child.name: child.pid for child in self._children})


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UpError(
                f"port {port} of {host} is in use by another program; give another --port, or --port 0 for any"
            ) from error
        raise UpError(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return listener


def _address_of(listener: socket.socket) -> tuple[tuple[str, int], str]:
    """Where a client on this machine reaches it, and the URL of that."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return (host, port), f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
