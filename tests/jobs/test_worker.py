# SPDX-License-Identifier: Apache-2.0
"""A real Celery worker with beat on a real Redis."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.core.network import Link
from broker.core.units import US_PER_S
from broker.desk.admit import Admit, Policy
from broker.embedded.redis import _binary
from broker.main import wall_clock
from tests.conftest import SECRET
from tests.desk.world import GBIT, World


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    socket = tmp_path / "redis.sock"
    command = [_binary(), "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(tmp_path)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while not socket.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield f"unix://{socket}"
    server.kill()
    server.wait()


@pytest.mark.slow
async def test_a_worker_with_beat_expires_a_hold_and_audits(database_url: str, redis_url: str, tmp_path: Path) -> None:
    world = World(database_url, wall_clock)
    await world.start()
    environment = os.environ | {
        "BWB_DATABASE_URL": database_url,
        "BWB_REDIS_URL": redis_url,
        "BWB_SECRET_KEY": SECRET,
    }
    arguments = ["worker", "--beat", "--schedule", str(tmp_path / "beat"), "--concurrency", "1", "--loglevel", "warning"]
    command = [sys.executable, "-m", "celery", "--app", "broker.jobs.celery_app:app", *arguments]
    with (tmp_path / "log").open("wb") as log:
        worker = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        await world.links(Link("L1", "A", "B", GBIT))
        (held,) = await world.do(
            Admit([world.ask(hold=True, not_before_us=wall_clock() + 3600 * US_PER_S)], "me", Policy(hold_us=US_PER_S))
        )
        async with asyncio.timeout(60):
            while (await world.rows("SELECT state FROM transfers"))[0].state != "EXPIRED":
                assert worker.poll() is None, (tmp_path / "log").read_text()
                await asyncio.sleep(0.1)
        assert held.id == (await world.rows("SELECT id FROM transfers"))[0].id
        (event,) = await world.rows("SELECT actor FROM events WHERE action = 'transfer.expired'")
        assert event.actor == "clock"
    finally:
        worker.terminate()
        worker.wait(20)
        await world.stop()
