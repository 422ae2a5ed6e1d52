# SPDX-License-Identifier: Apache-2.0
"""A simulation's result as CSV: for each planner one row for all requests, then one for each Rmax."""

import csv
from collections.abc import Mapping
from io import StringIO
from typing import Any

_COLUMNS = (
    "planner", "rate_max_bps", "requests", "admitted", "normalized_delay_s", "acceptance_ratio", "asked_bytes", "admitted_bytes",
    "deadlines", "deadlines_met", "deadlines_missed", "congestion_factor", "utilisation", "makespan_s", "mean_rows",
    "planning_mean_us", "planning_p99_us",
)  # fmt: skip


def as_csv(result: Mapping[str, Any]) -> str:
    """`result`: what `broker.simulate.run` gives. In the rows of one Rmax only what is known by Rmax is filled in."""
    text = StringIO()
    writer = csv.DictWriter(text, _COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for each in result["planners"]:
        deadlines, planning = each["deadlines"], each["planning"]
        flat = {
            "rate_max_bps": "all",
            "deadlines": deadlines["requests"],
            "deadlines_met": deadlines["met"],
            "deadlines_missed": deadlines["missed"],
            "planning_mean_us": planning["mean_us_per_request"],
            "planning_p99_us": planning["p99_us_per_call"],
        }
        writer.writerow(each | flat)
        for one in each["classes"]:
            # Requests without an Rmax are not the row "all".
            writer.writerow(one | {"planner": each["planner"], "rate_max_bps": one["rate_max_bps"] or "none"})
    return text.getvalue()
