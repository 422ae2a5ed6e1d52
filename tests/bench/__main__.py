# SPDX-License-Identifier: Apache-2.0
"""Run everything, or the parts that are named: python -m tests.bench planner dashboard ..."""

import json
import os
import platform
import sys

from tests.bench import admission, agent, dashboard, gateway, optimal, planner, reload, replan, simulation, startup

PARTS = {
    "planner": planner.measure,
    "optimal": optimal.measure,
    "admission": admission.measure,
    "reload": reload.measure,
    "replan": replan.measure,
    "simulation": simulation.measure,
    "startup": startup.measure,
    "agent": agent.measure,
    "gateway": gateway.measure,
    "dashboard": dashboard.measure,
}


def main() -> None:
    wanted = sys.argv[1:] or list(PARTS)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    figures: dict[str, object] = {
        "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    }
    for name in wanted:
        print(f"measuring: {name} ...", file=sys.stderr, flush=True)
        figures[name] = PARTS[name]()
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
