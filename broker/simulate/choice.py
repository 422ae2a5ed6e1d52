# SPDX-License-Identifier: Apache-2.0
"""Planners by the names that a simulation knows them by: those of the registry, `ps`, and the objectives of `optimal`."""

from collections.abc import Callable

from broker.planners import PLANNERS
from broker.planners.optimal import OBJECTIVES, Optimal
from broker.planners.signature import Planner

PACKETS = "ps"  # the baseline that plans nothing: see `broker.simulate.packets`

_OPTIMAL = {Optimal.name: OBJECTIVES[0], **{f"{Optimal.name}:{objective}": objective for objective in OBJECTIVES}}

NAMES = (*sorted({*PLANNERS, PACKETS} - _OPTIMAL.keys()), *_OPTIMAL)


def planner(name: str, time_limit_s: float, cancelled: Callable[[], bool]) -> Planner:
    """`time_limit_s` is for the solvers of one batch."""
    objective = _OPTIMAL.get(name)
    if objective is None:
        return PLANNERS[name]
    return Optimal(objective, time_limit_s=time_limit_s, cancelled=cancelled)
