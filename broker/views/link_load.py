# SPDX-License-Identifier: Apache-2.0
"""A read-only copy of every link's gamma(t), beside the desk's own: brought up to date from the ledger on demand, without a lock.

It was true when it was read; nothing is ever planned on it.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from broker.core.calendar import Calendar
from broker.core.scans import Int64Array
from broker.core.units import span_edges
from broker.desk.ground.replica import Replica
from broker.store import bookings
from broker.store.bookings import Head
from broker.store.session import Database


class Load(NamedTuple):
    """Of each span of time the instant with the largest share booked, as that share; None where the link carries nothing at all."""

    link_id: str
    shares: list[float | None]


class LinkLoad:
    """Reads what every link carries; keeps its own replica, which nothing is planned on."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock
        self._replica = Replica()
        self._looking = asyncio.Lock()

    async def replica(self) -> Replica:
        """For reading, before the next `await`."""
        async with self._looking:
            async with self._database.transaction() as connection:
                if await bookings.topology_version(connection) != self._replica.topology_version:
                    await self._replica.load_topology(connection)
                versions = await bookings.read_heads(connection)
                heads = {name: Head(version, 0) for name, version in versions.items() if name in self._replica.calendars}
                await self._replica.catch_up(connection, heads, self._clock())
            return self._replica

    async def load(self, begin_us: int, end_us: int, steps: int) -> list[Load]:
        """Every link's, on [begin, end) in so many equal spans. The past before now is not known here."""
        replica = await self.replica()
        if end_us - begin_us == 1:
            return [Load(link_id, [share_at(calendar, begin_us)]) for link_id, calendar in replica.calendars.items()]
        edges = np.array(span_edges(begin_us, end_us, steps)[:-1], np.int64)
        return [Load(link_id, shares(calendar, edges, end_us)) for link_id, calendar in replica.calendars.items()]


def share_at(calendar: Calendar, at_us: int) -> float | None:
    """Of one instant, without arrays: the map of now asks for every link, and most of the time would be calls of NumPy."""
    capacity = calendar.capacity_at(at_us)
    booked = capacity - calendar.free_at(at_us)
    if capacity > 0:
        return round(booked / capacity, 4)
    return 1.0 if booked > 0 else None


def shares(calendar: Calendar, edges: Int64Array, end_us: int) -> list[float | None]:
    """Of each span from one edge to the next the largest. `edges`: shape (steps,), us, ascending."""
    capacity_times = np.array([at for at, _ in calendar.capacity], np.int64)
    capacity_rates = np.array([rate for _, rate in calendar.capacity], np.int64)
    times, free = calendar.times[: calendar.n], calendar.free[: calendar.n]
    changes = np.concatenate((times, capacity_times))
    inside = changes[(changes > edges[0]) & (changes < end_us)]
    instants = np.unique(np.concatenate((edges, inside)))
    capacity = capacity_rates[np.searchsorted(capacity_times, instants, side="right") - 1]
    booked = capacity - free[np.searchsorted(times, instants, side="right") - 1]
    share = np.where(capacity > 0, booked / np.maximum(capacity, 1), np.where(booked > 0, 1.0, -1.0))
    highest = np.maximum.reduceat(share, np.searchsorted(instants, edges)).round(4)
    return [None if one < 0 else one for one in highest.tolist()]
