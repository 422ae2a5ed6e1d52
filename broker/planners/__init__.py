# SPDX-License-Identifier: Apache-2.0
"""Planners: pure functions from a request and calendars to a plan. One file per planner, one registry, one signature.

A planner reads the calendars and changes nothing; whoever books re-checks its plan with `core.plan.verify`.
"""

from broker.planners.fbls import Fbls
from broker.planners.signature import Planner
from broker.planners.vbls import Vbls

PLANNERS: dict[str, Planner] = {planner.name: planner for planner in (Vbls(), Fbls())}
DEFAULT_PLANNER = "vbls"

__all__ = ["DEFAULT_PLANNER", "PLANNERS", "Planner"]
