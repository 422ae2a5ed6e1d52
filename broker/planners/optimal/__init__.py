# SPDX-License-Identifier: Apache-2.0
"""The joint planner `optimal`. One concept per file, in the order in which a batch passes them.

planner (input and output), batch, lists (the plans to beat), expansion (time and paths as arrays), programs, solver (the only
access to OR-Tools), bounds (what is proven), paths (one at a time), rounding (integer plans), sheets (calendars to try plans on),
carry, congestion, most, completion (the objectives), measure (the exact value of plans), reasons (of refusals).
"""

from broker.planners.optimal.measure import OBJECTIVES, Objective
from broker.planners.optimal.planner import DEFAULT_TIME_LIMIT_S, Optimal, Solution

__all__ = ["DEFAULT_TIME_LIMIT_S", "OBJECTIVES", "Objective", "Optimal", "Solution"]
