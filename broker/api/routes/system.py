# SPDX-License-Identifier: Apache-2.0
"""Health and metrics. They need no token: they tell nothing of any transfer."""

import asyncio

from fastapi import Response

from broker.api import render
from broker.api.context import BrokerDependency
from broker.api.contract.parts import OPEN, TEXT
from broker.api.operator_schemas import HealthOut
from broker.api.routing import make_router
from broker.core.units import US_PER_S
from broker.store import bookings
from broker.store.session import DatabaseAway

router = make_router("system")

_PATIENCE_S = 2.0


@router.get("/healthz", operation_id="checkHealth", response_model=HealthOut, openapi_extra=OPEN)
async def healthz() -> Response:
    """The process runs."""
    return render.answer({"status": "ok"})


@router.get(
    "/readyz",
    operation_id="checkReadiness",
    response_model=HealthOut,
    responses={503: {"model": HealthOut, "description": "not ready"}},
    openapi_extra=OPEN,
)
async def readyz(broker: BrokerDependency) -> Response:
    """The process can admit: PostgreSQL answers. The answer also tells whether Redis does, which does not matter for it."""

    async def look() -> None:
        async with asyncio.timeout(_PATIENCE_S), broker.database.transaction() as connection:
            await bookings.topology_version(connection)

    try:
        await broker.shared("ready", look)
    except (DatabaseAway, TimeoutError) as error:
        return render.answer({"status": "waiting for the database", "detail": str(error)}, 503, {"Retry-After": "1"})
    return render.answer({"status": "ready", "wakeups": broker.wakeups.connected})


@router.get(
    "/metrics",
    operation_id="getMetrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": TEXT}}},
    openapi_extra=OPEN,
)
async def metrics(broker: BrokerDependency) -> Response:
    """For Prometheus, in its text format."""

    async def look() -> bytes:
        now_us = broker.clock()
        shares = {load.link_id: load.shares[0] for load in await broker.link_load.load(now_us, now_us + 1, 1)}
        async with broker.database.transaction() as connection:
            return await broker.metrics.exposition(connection, now_us, broker.settings.agent_lost_s * US_PER_S, shares)

    body = await broker.shared("metrics", look)
    return Response(body, media_type="text/plain; version=0.0.4; charset=utf-8")
