# SPDX-License-Identifier: Apache-2.0
"""A real PostgreSQL for tests and benchmarks: the one from the wheel, in a temporary directory, one per test process."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg

from broker.embedded.postgres import binaries, identity
from broker.store import migrate

_TEMPLATE = "migrated"
# For a cluster that nobody needs after its tests: nothing is waited for, and little is shared that each new connection would have to map.
_THROWN_AWAY = [
    word
    for option in ("fsync=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0",
                   "max_wal_size=128MB", "shared_buffers=32MB", "io_method=sync")
    for word in ("-c", option)
]  # fmt: skip
# A database is some 1,100 files, made and thrown away for each test: 30 ms in memory, 100 ms on a disk.
_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 4 * 2**30  # containers often have 64 MB of it


class Server:
    """`start` and `kill` at will; `new_database` gives a URL of an empty database with the newest schema, in some 30 ms."""

    def __init__(self, directory: Path, durable: bool) -> None:
        self.directory = directory
        self._who = identity()
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        if self._who.user is not None:
            os.chown(directory, self._who.user.pw_uid, self._who.user.pw_gid)
        self._run("initdb", "-D", str(self._data), "-U", "bwb", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        self.start()
        with self._administrator() as connection:
            connection.execute(f"CREATE DATABASE {_TEMPLATE}")
        migrate.upgrade(self.url(_TEMPLATE))

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def url(self, database: str) -> str:
        return f"postgresql://bwb@/{database}?host={self.directory}&port=5432"

    def new_database(self) -> str:
        self._databases += 1
        name = f"test_{self._databases}"
        with self._administrator() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE} STRATEGY FILE_COPY")
        return self.url(name)

    def drop(self, url: str) -> None:
        name = url.split("@/")[1].split("?", maxsplit=1)[0]
        with self._administrator() as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def start(self) -> None:
        options = ["-c", "listen_addresses=", "-c", "jit=off", "-c", "max_connections=200", "-c", "log_min_messages=fatal"]
        if not self._durable:
            options += _THROWN_AWAY
        command = [
            *self._who.prefix,
            str(binaries() / "postgres"),
            "-D",
            str(self._data),
            "-k",
            str(self.directory),
            "-p",
            "5432",
            *options,
        ]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, user=self._user, start_new_session=True)
        deadline = time.monotonic() + 60
        while True:
            try:
                self._administrator().close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.02)

    def kill(self) -> None:
        """kill -9 of the server and all its children, as when the machine loses power without losing the disk's cache."""
        assert self._process is not None
        parent = psutil.Process(self._process.pid)
        everybody = [parent, *parent.children(recursive=True)]  # each backend leads a session of its own
        for process in everybody:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        psutil.wait_procs(everybody, timeout=10)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)

    @property
    def _user(self) -> int | None:
        return self._who.user.pw_uid if self._who.user else None

    def _run(self, tool: str, *arguments: str) -> None:
        command = [*self._who.prefix, str(binaries() / tool), *arguments]
        subprocess.run(command, check=True, capture_output=True, user=self._user)

    def _administrator(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=5)


def _in_memory() -> Path | None:
    usable = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ENOUGH_BYTES
    return _MEMORY if usable else None


@contextmanager
def temporary_server(durable: bool = False) -> Iterator[Server]:
    directory = Path(tempfile.mkdtemp(prefix="bwb-pg-", dir=None if durable else _in_memory()))
    server = Server(directory, durable)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)
