# SPDX-License-Identifier: Apache-2.0
"""The API process: connects its parts. `bwb serve` runs `create_app` under uvicorn."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from broker import machine_code, memory
from broker.api import errors
from broker.api.addresses import ClientAddress, TrustedProxies
from broker.api.arrival import Arrival
from broker.api.bodies import Bodies
from broker.api.compression import Compression
from broker.api.connections import Connections, Limits
from broker.api.context import Broker
from broker.api.dashboard import FOLDER, Dashboard
from broker.api.door import Door, Rates
from broker.api.feed import Feed
from broker.api.headers import Headers
from broker.api.metrics import Metrics
from broker.api.revisions import Revisions
from broker.api.routes import (
    agents,
    documentation,
    downloads,
    events,
    hosts,
    jobs,
    links,
    overview,
    planners,
    schedule,
    session,
    submissions,
    system,
    tokens,
    topology,
    transfers,
)
from broker.api.wakeups import Wakeups
from broker.desk.ground.policy import policy_of
from broker.desk.rebalance.pull_forward import Pull, Puller
from broker.desk.service.desk import Desk
from broker.fleet.agent_files import AgentFiles
from broker.fleet.sessions import Sessions
from broker.fleet.tokens import Access
from broker.jobs.nudge import Nudge
from broker.jobs.pool import Pool
from broker.planners import warm_up
from broker.settings import Settings, networks, settings
from broker.store.events import begin_epoch
from broker.store.session import Database, DatabaseAway
from broker.views.link_load import LinkLoad

VERSION = version("bandwidth-broker")
DESK_POOL = 2  # it works on one batch at a time; the second connection is a spare if the first is lost


def wall_clock() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


def create_app(given: Settings | None = None, clock: Callable[[], int] = wall_clock) -> FastAPI:
    """The application. Its parts start with the server."""
    chosen = given or settings()
    app = FastAPI(
        title="Bandwidth broker",
        version=VERSION,
        description="Books a time-varying rate for every bulk transfer, so that it ends when it was promised.",
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # served by routes/documentation.py
    )
    app.state.settings = chosen
    app.state.clock = clock
    app.add_middleware(Bodies, limit=chosen.body_limit_bytes)
    app.add_middleware(Door, rates=Rates.of(chosen))
    errors.install(app)
    app.add_middleware(Compression)
    app.add_middleware(Headers)
    app.add_middleware(ClientAddress, trusted=TrustedProxies(networks(chosen.trusted_proxies)))
    app.add_middleware(Arrival, clock=clock)
    for module in (
        overview,
        submissions,
        transfers,
        jobs,
        links,
        planners,
        schedule,
        topology,
        hosts,
        downloads,
        agents,
        session,
        tokens,
        events,
        system,
        documentation,
    ):
        # Added directly: `include_router` would analyse every route again on the first request, which takes half a second.
        app.router.routes.extend(module.router.routes)
    app.router.default = Dashboard(Path(chosen.dashboard_files or FOLDER))
    return app


def _limits(chosen: Settings) -> Limits:
    return Limits(
        chosen.connections,
        chosen.connections_per_address,
        chosen.header_timeout_s,
        chosen.body_timeout_s,
        chosen.write_timeout_s,
        chosen.unread_bytes,
    )


def _pool(chosen: Settings) -> Pool | None:
    return (
        Pool(chosen.planning_workers, chosen.planning_budget_ms / 1000, chosen.planning_memory_mb)
        if chosen.planning_workers
        else None
    )


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    chosen: Settings = app.state.settings
    clock: Callable[[], int] = app.state.clock
    if not chosen.database_url:
        raise RuntimeError("BWB_DATABASE_URL is not set; `bwb up` brings a database of its own")
    if len(chosen.secret_key.get_secret_value()) < 32:
        raise RuntimeError("BWB_SECRET_KEY must have at least 32 characters; the agents' data-channel keys are derived from it")
    database = Database(chosen.database_url, chosen.database_pool)
    # A separate pool, so that the desk continues when other requests use all connections of the main pool.
    desk_database = Database(chosen.database_url, DESK_POOL)
    wakeups = Wakeups(chosen.redis_url)
    puller = Puller(database, clock, Pull(chosen.pull_forward), chosen.pull_candidates)
    pool = _pool(chosen)
    desk = Desk(desk_database, clock, policy_of(chosen), wakeups.announce, chosen.desk_batch, puller.freed, time.thread_time, pool)
    app.state.puller = puller
    app.state.broker = broker = Broker(
        chosen,
        clock,
        database,
        desk,
        LinkLoad(database, clock),
        Access(database, clock),
        Sessions(database, clock, chosen.session_s, chosen.session_idle_s),
        wakeups,
        Metrics(),
        Feed(database, wakeups, chosen.stream_limit),
        Revisions(database, wakeups),
        AgentFiles(chosen.agent_files),
        Nudge(chosen.redis_url),
    )
    await asyncio.to_thread(machine_code.make)
    warm_up()
    with contextlib.suppress(DatabaseAway):  # otherwise the first request loads the data
        async with database.transaction() as connection:
            await begin_epoch(connection)
        await desk.warm_up()
    memory.freeze()
    connections = Connections(_limits(chosen), TrustedProxies(networks(chosen.trusted_proxies)))
    parts = (
        connections.run(),
        desk.run(),
        puller.run(desk, broker.policy),
        wakeups.run(),
        broker.feed.run(),
        broker.revisions.run(),
        memory.give_back(),
    )
    tasks = [asyncio.create_task(part) for part in parts]
    if pool is not None:
        tasks.append(asyncio.create_task(pool.run()))
    try:
        yield {"connections": connections}  # read by broker.api.connections.Guarded
    finally:
        wakeups.close()
        broker.feed.close()
        broker.revisions.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await desk_database.close()
        await database.close()
