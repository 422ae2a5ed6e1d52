# SPDX-License-Identifier: Apache-2.0
"""How long a new process needs until it knows 1e5 live reservations again."""

import asyncio
import os
import time
from typing import Any

from broker.core.identifiers import identifier
from broker.core.network import Link
from broker.desk.admission.admit import Admit
from broker.desk.ground.policy import Policy
from broker.desk.network.links import CreateLinks
from broker.desk.service.desk import Desk
from broker.store.session import Database
from tests.asks import make_ask
from tests.postgres import temporary_server

_LINKS = 10
_RESERVATIONS = 100_000


def _clock() -> int:
    return time.time_ns() // 1000


async def _fill(database: Database) -> None:
    desk = Desk(database, _clock, Policy())
    runner = asyncio.create_task(desk.run())
    await desk.submit(CreateLinks([Link(f"L{n}", f"A{n}", f"B{n}", 10_000_000_000) for n in range(_LINKS)], "bench"))
    start = _clock() + 3_600_000_000
    for first in range(0, _RESERVATIONS, 5000):
        asks = [
            make_ask(
                identifier("tr", _clock(), os.urandom(10)),
                f"A{n % _LINKS}",
                f"B{n % _LINKS}",
                10_000_000 + n % 977,
                not_before_us=start,
                rate_max_bps=3_000_000_000,
            )
            for n in range(first, first + 5000)
        ]
        await desk.submit(Admit(asks, "bench", Policy()))
    runner.cancel()


def measure() -> dict[str, Any]:
    with temporary_server() as postgres:
        url = postgres.new_database()

        async def filled_and_reloaded() -> dict[str, Any]:
            database = Database(url)
            await _fill(database)
            begin = time.perf_counter()
            fresh = Desk(database, _clock, Policy())
            await fresh.warm_up()
            seconds = time.perf_counter() - begin
            await database.close()
            points = sum(calendar.n for calendar in fresh.replica.calendars.values())
            return {"live_reservations": _RESERVATIONS, "reload_s": round(seconds, 3), "change_points": points}

        return asyncio.run(filled_and_reloaded())
