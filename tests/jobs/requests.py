# SPDX-License-Identifier: Apache-2.0
"""Requests of long jobs."""

PLAN = {
    "objective": "completion",
    "project": None,
    "links": None,
    "transfers": None,
    "time_limit_s": 5,
    "review_s": 60,
    "apply": True,
}


# Minutes of work, so that whatever ends it early is what is tested.
SLOW = {"network": {"links": [{"id": "L1", "source": "A", "target": "B", "capacity_bps": 10**9}]},
        "requests": 20_000, "load": 0.9, "planners": ["optimal"]}  # fmt: skip
