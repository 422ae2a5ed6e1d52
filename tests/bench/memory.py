# SPDX-License-Identifier: Apache-2.0
"""What the API process keeps in memory: after its start, with 1e5 reservations made through it, and started anew on them."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import uvloop

from broker.core.units import format_time
from tests.bench import admission
from tests.bench.load import drive, request
from tests.postgres import temporary_server

_LOOKED_AT = ("/v1/overview", "/v1/network/load", "/v1/transfers?limit=1000&outlook=true", "/v1/links/L1/calendar", "/v1/schedule")
_RESERVATIONS = 100_000
_BATCH = 5000  # the largest that is taken
_CLIENTS = 8
_SINGLE_S = 2.0
_SETTLED_S = 12  # what is free goes back every ten seconds


def measure() -> dict[str, Any]:
    with temporary_server() as postgres:
        url = postgres.new_database()
        with admission.server(url) as api:
            token = uvloop.run(admission.prepare(url, api.port))
            figures = {"started": _memory(api.pid), **uvloop.run(_book(api.port, token))}
            figures["booked"] = _memory(api.pid)
            uvloop.run(_look(api.port, token))
            time.sleep(_SETTLED_S)
            figures["looked_at"] = _memory(api.pid)
        with admission.server(url) as api:
            figures["started_anew"] = _memory(api.pid)
            uvloop.run(
                drive(api.port, 32, _SINGLE_S, lambda number: request("POST", "/v1/transfers", token, admission.body(number)))
            )
            figures["started_anew_after_singles"] = _memory(api.pid)
    return figures


def _memory(pid: int) -> dict[str, float]:
    """`resident` counts what the kernel holds now, mapped libraries included; `peak` the most that it ever held."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {
        name: round(int(fields[field].split()[0]) * 1024 / 1e6, 1)
        for name, field in (("resident_mb", "VmRSS"), ("peak_mb", "VmHWM"))
    }


async def _book(port: int, token: str) -> dict[str, Any]:
    """Through the API, in batches; nothing begins within the hour, so all of them stay live."""
    start = format_time(time.time_ns() // 1000 + 3_600_000_000)
    asked = [json.loads(admission.body(number)) | {"not_before": start, "rate_max_bps": 3_000_000_000} for number in range(_BATCH)]
    data = request("POST", "/v1/transfers/batch", token, json.dumps(asked).encode())
    booked = 0
    while booked < _RESERVATIONS:
        outcome = await drive(port, _CLIENTS, 0.5, lambda _: data)
        if set(outcome.statuses) != {200}:
            raise RuntimeError(f"batches were answered {outcome.statuses}")
        booked += len(outcome.latencies) * _BATCH
    return {"live_reservations": booked}


async def _look(port: int, token: str) -> None:
    """What dashboards and callers ask for."""
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"}, timeout=60
    ) as client:
        for path in _LOOKED_AT:
            answer = await client.get(path)
            answer.raise_for_status()


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
