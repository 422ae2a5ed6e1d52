# SPDX-License-Identifier: Apache-2.0
"""Durable admissions over REST against a validated no-op POST on the same server."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import uvloop

from broker.fleet import tokens
from broker.fleet.tokens import Scope
from broker.store.session import Database
from tests.bench.load import Outcome, drive, request
from tests.ports import free_port
from tests.postgres import Server, temporary_server

_LINKS = 8


class Api(NamedTuple):
    port: int
    pid: int


@contextmanager
def server(database_url: str) -> Iterator[Api]:
    """One API process (`bwb serve`'s settings)."""
    port = free_port()
    environment = {
        **os.environ,
        "BWB_DATABASE_URL": database_url,
        "BWB_SECRET_KEY": "b" * 40,
        "BWB_REDIS_URL": "",
        "BWB_BODY_LIMIT_BYTES": str(2**26),
        "BWB_TOKEN_RATE": "0",  # one token for all clients, as no workflow manager is
    }
    command = [sys.executable, "-m", "uvicorn", "--factory", "tests.bench.app:create_app", "--port", str(port),
               "--no-access-log", "--log-level", "warning",
               "--loop", "uvloop", "--http", "httptools"]  # fmt: skip
    process = subprocess.Popen(command, env=environment)
    try:
        for _ in range(600):
            try:
                if httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.05)
        yield Api(port, process.pid)
    finally:
        process.terminate()
        process.wait(20)


def fdatasync_us(directory: Path) -> float:
    """Median microseconds of one 8 kB write and fdatasync in `directory`."""
    times = []
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        for _ in range(200):
            begin = time.perf_counter()
            os.pwrite(file.fileno(), b"x" * 8192, 0)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begin)
    return round(sorted(times)[100] * 1e6, 1)


def body(number: int) -> bytes:
    link = number % _LINKS
    return json.dumps(
        {"source": f"A{link}", "destination": f"B{link}", "volume_bytes": 12_500_000 + number % 1000, "rate_max_bps": 200_000_000}
    ).encode()


async def prepare(database_url: str, port: int) -> str:
    database = Database(database_url)
    every = (Scope.READ, Scope.SUBMIT, Scope.OPERATE, Scope.ADMIN)
    _, token = await tokens.create(database, time.time_ns() // 1000, name="bench", scopes=every, actor="bench")
    await database.close()
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"}) as client:
        for link in range(_LINKS):
            created = {"id": f"L{link}", "source": f"A{link}", "target": f"B{link}", "capacity_bps": 400_000_000_000}
            (await client.post("/v1/links", json=created)).raise_for_status()
    return token


async def _singles(port: int, token: str, path: str, seconds: float, clients: int = 32, rate: float | None = None) -> Outcome:
    return await drive(port, clients, seconds, lambda number: request("POST", path, token, body(number)), rate)


async def _batches(port: int, token: str, seconds: float, size: int, clients: int) -> float:
    data = request("POST", "/v1/transfers/batch", token, b"[" + b",".join(body(number) for number in range(size)) + b"]")
    outcome = await drive(port, clients, seconds, lambda _: data)
    assert set(outcome.statuses) == {200}, outcome.statuses
    return outcome.rate * size


def measure(seconds: float = 5.0) -> dict[str, Any]:
    with temporary_server(durable=True) as postgres:
        return _measure(postgres, seconds)


def _measure(postgres: Server, seconds: float) -> dict[str, Any]:
    url = postgres.new_database()
    with server(url) as (port, _):

        async def all_of_it() -> dict[str, Any]:
            token = await prepare(url, port)
            await _singles(port, token, "/v1/transfers", 1.0)
            no_op = await _singles(port, token, "/v1/no-op", seconds)
            single = await _singles(port, token, "/v1/transfers", seconds)
            assert set(single.statuses) == {201}, single.statuses
            half = await _singles(port, token, "/v1/transfers", seconds, rate=single.rate / 2)
            batch = await _batches(port, token, seconds, 1000, 4)
            return {
                "no_op_per_s": round(no_op.rate),
                "single_per_s": round(single.rate),
                "single_to_no_op": round(single.rate / no_op.rate, 3),
                "single_p50_ms": round(single.quantile(0.5) * 1000, 2),
                "half_load_p50_ms": round(half.quantile(0.5) * 1000, 2),
                "half_load_p99_ms": round(half.quantile(0.99) * 1000, 2),
                "batch_per_s": round(batch),
                "fdatasync_us": fdatasync_us(postgres.directory),
                "clients": 32,
            }

        return uvloop.run(all_of_it())


if __name__ == "__main__":
    print(json.dumps(measure(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0), indent=1))
