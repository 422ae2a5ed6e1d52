# SPDX-License-Identifier: Apache-2.0
"""What the worker's own desk frees goes to whoever waits, too."""

import asyncio
from types import ModuleType

import pytest

from broker.jobs import periodic
from tests.service import Service, checked


async def test_a_hold_that_runs_out_makes_the_next_one_earlier(
    service: Service,
    worker: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(periodic, "_clock", service.clock)
    await service.link()
    await service.book(hold=True, volume_bytes=10**12)
    waiting = await service.book()
    await asyncio.to_thread(worker.tick)
    assert checked(await service.client.get(f"/v1/transfers/{waiting['id']}"))["plan"] == waiting["plan"]
    service.clock.advance(301)
    await asyncio.to_thread(worker.tick)
    now = checked(await service.client.get(f"/v1/transfers/{waiting['id']}"))
    assert now["plan"]["finish"] < waiting["plan"]["finish"]
    assert now["promised_finish"] == waiting["promised_finish"]
    await service.audit()
