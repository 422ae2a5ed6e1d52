# SPDX-License-Identifier: Apache-2.0
"""Planners: pure functions from a request and calendars to a plan. One file per planner, one registry, one signature.

A planner reads the calendars and changes nothing; whoever books re-checks its plan with `core.plan.verify`.
"""

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, verify
from broker.core.request import Request
from broker.planners.alap import Alap
from broker.planners.fbls import Fbls
from broker.planners.ifs import Ifs
from broker.planners.optimal import Optimal
from broker.planners.signature import Planner
from broker.planners.spaghetti import Spaghetti
from broker.planners.vbls import Vbls
from broker.planners.vifi import Vifi

PLANNERS: dict[str, Planner] = {
    planner.name: planner for planner in (Vbls(), Fbls(), Spaghetti(), Vifi(), Alap(), Ifs(), Optimal())
}
DEFAULT_PLANNER = "vbls"


def warm_up() -> None:
    """Compile every scan (or read it from the cache), so that the first request does not wait for it."""
    links = [Link("1", "A", "B", 1000), Link("2", "B", "C", 1000)]
    network, calendars = Network(links), {link.id: Calendar(link.capacity()) for link in links}
    for calendar in calendars.values():
        calendar.book(0, 1_000_000, 1)
    for destination in ("B", "C"):
        request = Request("warm-up", "A", destination, 1, 0, deadline_us=1_000_000)
        for planner in PLANNERS.values():
            if isinstance(planner, Optimal):
                continue  # it compiles nothing of its own, and would load the solver
            plan = planner.plan(request, network, calendars, fewest_rows=True)
            planner.largest_volume(request, network, calendars)
            if isinstance(plan, Plan):
                verify(request, plan, network.links, calendars)


__all__ = ["DEFAULT_PLANNER", "PLANNERS", "Planner", "warm_up"]
