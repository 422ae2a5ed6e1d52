# SPDX-License-Identifier: Apache-2.0
"""Plans and simulations as jobs: what is answered at once, what is shown meanwhile, who may do what."""

import asyncio
from typing import Any

import pytest

from broker.jobs.long import look_for_work
from broker.settings import Settings
from tests.api.refused import problem
from tests.conftest import Service, checked


async def work(service: Service, **settings: Any) -> None:
    """What a worker does when it looks."""
    await look_for_work(service.database, service.clock, Settings(**settings), lambda: False)


async def test_thin(service: Service) -> None:
    await service.link()
    t = [await service.book(1_250_000_000) for _ in range(3)]
    r = await service.client.post("/v1/plans", json={"objective": "completion"})
    job = checked(r, 202)
    assert r.headers["location"] == f"/v1/plans/{job['id']}"
    await work(service)
    done = checked(await service.client.get(r.headers["location"]))
    print(done)
    assert 0
