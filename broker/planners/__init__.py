# SPDX-License-Identifier: Apache-2.0
"""Planners: pure functions from a request and calendars to a plan. One file per planner, one registry, one signature.

A planner reads the calendars and changes nothing; the desk checks each plan with `core.plan.verify` before it books.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, verify
from broker.core.request import DEFAULT_PLANNER, NO_OPTIONS, Options, Request
from broker.planners.alap import Alap
from broker.planners.fbls import Fbls
from broker.planners.ifs import Ifs
from broker.planners.offers import find_binding, find_counter_offer
from broker.planners.optimal import Optimal
from broker.planners.signature import Planner, Traits
from broker.planners.spaghetti import Spaghetti
from broker.planners.vbls import Vbls
from broker.planners.vifi import Vifi

PLANNERS: dict[str, Planner] = {
    planner.name: planner for planner in (Vbls(), Fbls(), Spaghetti(), Vifi(), Alap(), Ifs(), Optimal())
}
# Replans the rest of a transfer when its own plan has failed: as early as possible, at whatever rates are free.
REPLANNER = Vbls.name

_UNKNOWN = Traits(books=False)


def traits_of(name: str) -> Traits:
    """The traits of a planner by its name; the weakest traits for an unknown planner."""
    planner = PLANNERS.get(name)
    return _UNKNOWN if planner is None else planner.traits


@cache  # once per process
def warm_up() -> None:
    """Compile every scan (or load it from the cache), so that the first request does not wait for this."""
    links = [Link("1", "A", "B", 1000), Link("2", "A", "B", 1000), Link("3", "B", "C", 1000)]
    network, calendars = Network(links), {link.id: Calendar(link.capacity()) for link in links}
    for calendar in calendars.values():
        calendar.book(0, 1_000_000, 1)
        calendar.book_all(*np.array([[0], [1_000_000], [0]]))  # the bookings of another desk
    for request in _warm_up_requests():
        for planner in PLANNERS.values():
            if planner.traits.time_limit:
                continue  # it would load its solver: see `warm_up_searches`
            plan = planner.plan(request, network, calendars, fewest_rows=True)
            planner.largest_volume(request, network, calendars)
            if isinstance(plan, Plan) and planner.traits.books:
                verify(request, plan, network.links, calendars)
            elif request.options == NO_OPTIONS:
                find_counter_offer(planner, request, network, calendars)
        find_binding(request, network, calendars)


def warm_up_searches() -> None:
    """Load the solvers of planners with a time limit, where those are used."""
    link = Link("1", "A", "B", 1000)
    for planner in PLANNERS.values():
        if planner.traits.time_limit:
            request = Request("warm-up", "A", "B", 200, 0, deadline_us=5_000_000)
            planner.plan(request, Network([link]), {"1": Calendar(link.capacity())})


def _warm_up_requests() -> Iterator[Request]:
    """Requests that together reach every scan: both classes, paths of one and two links, limits that bind, refusals."""
    for destination in ("B", "C"):
        volume = Request("warm-up", "A", destination, 200, 0, deadline_us=5_000_000)  # more than fits before the change at 1 s
        duration = replace(volume, volume_bytes=None, duration_us=2_000_000)
        for request in (volume, duration):
            yield request
            yield replace(request, options=Options(most_segments=1))
            yield replace(request, options=Options(shortest_segment_us=3_000_000))
            yield replace(request, options=Options(split=True))
        yield replace(volume, volume_bytes=2_000, rate_max_bps=10, rate_min_bps=5)
        yield replace(duration, duration_us=6_000_000)


__all__ = ["DEFAULT_PLANNER", "PLANNERS", "REPLANNER", "Planner", "traits_of", "warm_up", "warm_up_searches"]
