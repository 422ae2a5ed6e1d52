# SPDX-License-Identifier: Apache-2.0
"""The joint planner `optimal`. One idea per file, in the order in which a batch passes them.

planner (what comes in and goes out), batch, lists (what must be beaten), expansion (time and paths as arrays), programs, solver (the
only door to OR-Tools), bounds (what is proven), paths (one at a time), rounding (integer plans), sheets (calendars to try them on), carry,
congestion, most, completion (the objectives), measure (what plans are worth, exactly), reasons (why not).
"""

from broker.planners.optimal.measure import OBJECTIVES, Objective
from broker.planners.optimal.planner import DEFAULT_TIME_LIMIT_S, Optimal, Solution

__all__ = ["DEFAULT_TIME_LIMIT_S", "OBJECTIVES", "Objective", "Optimal", "Solution"]
