# SPDX-License-Identifier: Apache-2.0
"""A broker that listens: the application under uvicorn in a thread, on a free port, with a real PostgreSQL and the wall clock.

For what speaks HTTP from outside: the synchronous client, the command line, the documentation's examples.
"""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from broker.api.connections import Guarded
from broker.client import BrokerClient
from broker.fleet import tokens
from broker.fleet.tokens import Scope
from broker.main import create_app
from broker.settings import Settings
from broker.store.session import Database
from tests.ports import free_port

SECRET = "s" * 40
ALL = (Scope.READ, Scope.SUBMIT, Scope.OPERATE, Scope.ADMIN)


@dataclass(frozen=True)
class Live:
    url: str
    token: str
    state_dir: Path

    def client(self, token: str | None = None) -> BrokerClient:
        return BrokerClient(self.url, self.token if token is None else token, patience_s=5)

    @property
    def environment(self) -> dict[str, str]:
        """Of a shell whose commands find this broker, and nothing else of ours."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BWB_")}
        return kept | {"BWB_STATE_DIR": str(self.state_dir), "BWB_PATIENCE_S": "2", "NO_COLOR": "1", "TERM": "dumb"}


class Server:
    """Start and stop at will, on the same port: a broker that restarts, as its clients see it."""

    def __init__(self, database_url: str, **options: Any) -> None:
        self._settings = Settings(database_url=database_url, secret_key=SECRET, **options)
        self.port = free_port()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        config = uvicorn.Config(
            create_app(self._settings),
            host="127.0.0.1",
            port=self.port,
            log_level="error",
            timeout_graceful_shutdown=1,
            http=Guarded,
            ws="none",
            proxy_headers=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            assert self._thread.is_alive() and time.monotonic() < deadline, "the API does not start"
            time.sleep(0.01)

    def stop(self) -> None:
        assert self._server is not None and self._thread is not None
        self._server.should_exit = True
        self._thread.join(20)


@contextmanager
def live_server(database_url: str, directory: Path, **options: Any) -> Iterator[tuple[Live, Server]]:
    """A running broker and a state directory that leads clients to it, as `bwb up` writes it."""
    token = asyncio.run(_token(database_url))
    server = Server(database_url, **options)
    directory.mkdir(exist_ok=True)
    (directory / "admin.token").write_text(token + "\n")
    (directory / "bwb.json").write_text(f'{{"url": "{server.url}", "pids": {{}}}}\n')
    server.start()
    try:
        yield Live(server.url, token, directory), server
    finally:
        server.stop()


async def _token(database_url: str) -> str:
    database = Database(database_url)
    try:
        _, secret = await tokens.create(database, time.time_ns() // 1000, name="tests", scopes=ALL, actor="test")
        return secret
    finally:
        await database.close()
