# SPDX-License-Identifier: Apache-2.0
"""Re-optimisation inside the process of its own: the solver behind one small function."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.request import Request
from broker.desk.rebalance.proposal import Proposal, Snapshot, Solved, improve

Progress = Callable[[float, str], None]


class PlanTask(NamedTuple):
    """A re-optimisation to be computed: what is booked, what to improve, and how long it may take."""

    snapshot: Snapshot
    objective: str
    time_limit_s: float


def improve_plans(task: PlanTask, progress: Progress) -> Proposal:
    """The proposal that the solver finds within its time. Runs in a child process; raises Problem."""
    progress(0.0, "planning")

    def solve(requests: Sequence[Request], network: Network, calendars: Mapping[str, Calendar]) -> Solved:
        return _solve(task, requests, network, calendars, progress)

    return improve(task.snapshot, task.objective, solve)


def _solve(
    task: PlanTask, requests: Sequence[Request], network: Network, calendars: Mapping[str, Calendar], progress: Progress
) -> Solved:
    from broker.planners.optimal import Optimal  # it takes a while to load

    # The limit is the solvers'; what is around them is told to come to an end some time after it.
    give_up = time.monotonic() + 1.5 * task.time_limit_s + 2
    objective: Any = task.objective
    planner = Optimal(objective, task.time_limit_s, progress, lambda: time.monotonic() > give_up)
    solution = planner.solve(requests, network, calendars)
    return solution.answers, {
        "name": solution.solver,
        "variables": solution.variables,
        "value": float(solution.value),
        "bound": solution.bound,
        "gap": solution.gap,
        "fallback": solution.fallback,
    }
