# SPDX-License-Identifier: Apache-2.0
"""What event streams that wait for something else cost admissions: their 99th percentile, and processor time of the API for each."""

import asyncio
import os
import resource
from functools import partial
from typing import Any

import psutil
import uvloop

from tests.bench.admission import body, prepare, server
from tests.bench.load import drive, request
from tests.postgres import temporary_server

STREAMS = (0, 400, 5000, 0)  # none at both ends: one disturbed run without streams must not flatter those with them
RATE, SECONDS, CLIENTS = 100.0, 8.0, 8
_AT_ONCE = 100  # streams that are opened together
_OTHER_FILES = 200


class _Idle(asyncio.Protocol):
    """A stream whose subject nothing happens to. It reads what comes, and keeps nothing."""

    def __init__(self, ask: bytes) -> None:
        self._ask = ask
        self.begun: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(self._ask)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        if not self.begun.done():
            self.begun.set_result(data.startswith(b"HTTP/1.1 200"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.begun.done():
            self.begun.set_result(False)


async def _open(port: int, token: str, number: int) -> list[_Idle]:
    loop = asyncio.get_running_loop()
    opened: list[_Idle] = []
    for first in range(0, number, _AT_ONCE):
        asks = [
            request("GET", f"/v1/events?subject=nothing-{index}", token, b"")
            for index in range(first, min(first + _AT_ONCE, number))
        ]
        made = await asyncio.gather(*(loop.create_connection(partial(_Idle, ask), "127.0.0.1", port) for ask in asks))
        opened += [protocol for _, protocol in made]
        assert all(await asyncio.gather(*(protocol.begun for _, protocol in made))), "a stream was refused"
    return opened


async def _measured(database_url: str, idle: int) -> dict[str, Any]:
    with server(database_url) as api:
        token = await prepare(database_url, api.port)
        streams = await _open(api.port, token, idle)
        process = psutil.Process(api.pid)
        submit = lambda index: request("POST", "/v1/transfers", token, body(index))  # noqa: E731
        await drive(api.port, CLIENTS, 1.0, submit, RATE)  # warm
        before = process.cpu_times()
        outcome = await drive(api.port, CLIENTS, SECONDS, submit, RATE)
        after = process.cpu_times()
        used = after.user + after.system - before.user - before.system
        figures = {
            "streams": idle,
            "admissions": len(outcome.latencies),
            "statuses": outcome.statuses,
            "p50_ms": round(outcome.quantile(0.5) * 1e3, 2),
            "p99_ms": round(outcome.quantile(0.99) * 1e3, 2),
            "cpu_ms_each": round(used / len(outcome.latencies) * 1e3, 3),
            "rss_mb": round(process.memory_info().rss / 2**20),
        }
        for stream in streams:
            stream.transport.abort()  # type: ignore[attr-defined]
        await asyncio.sleep(0.5)  # until the loop has closed them: the server ends when its connections have
    return figures


def measure() -> dict[str, Any]:
    """Against the better run with no stream: `p99_ratio`, `cpu_ratio`. As many as descriptors allow, which `streams` then says."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(STREAMS) + _OTHER_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, wanted)), hard))
    room = max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OTHER_FILES, 0)
    os.environ["BWB_STREAM_LIMIT"] = str(max(STREAMS))
    found = []
    try:
        with temporary_server(durable=True) as database:
            for idle in STREAMS:
                found.append(uvloop.run(_measured(database.new_database(), min(idle, room))))
    finally:
        del os.environ["BWB_STREAM_LIMIT"]
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    keys = (("p99", "p99_ms"), ("cpu", "cpu_ms_each"))
    none = {key: min(one[key] for one in found if one["streams"] == 0) for _, key in keys}
    ratios = [{f"{name}_ratio": round(one[key] / none[key], 3) for name, key in keys} for one in found]
    return {"rate": RATE, "idle": [one | ratio for one, ratio in zip(found, ratios, strict=True)]}
