# SPDX-License-Identifier: Apache-2.0
"""Joint planning on a real network (ESnet, 80 routers): random deadline transfers over four candidate paths each, several at once."""

import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, verify
from broker.core.request import Options, Request
from broker.planners import warm_up
from broker.planners.optimal import Optimal, Solution

ESNET = Path(__file__).parent.parent / "data/esnet-network.json"
DAY_US = 86_400_000_000
QUARTER_US = 900_000_000


def esnet() -> Network:
    rows = json.loads(ESNET.read_text())["links"]
    return Network([Link(**row) for row in rows])


def deadline_transfers(
    network: Network, n: int, seed: int, window: tuple[float, float], median_bytes: float, grid_us: int = 1, split: bool = True
) -> list[Request]:
    """`n` transfers between random routers within a day; `window`: least and largest part of the day that they are given.

    Volumes are log-normal (sigma 1). With `grid_us`, windows begin and end on that grid, as people's do.
    """
    random = np.random.default_rng(seed)
    nodes = sorted(network.nodes)
    requests: list[Request] = []
    while len(requests) < n:
        source, destination = (nodes[i] for i in random.choice(len(nodes), 2, replace=False))
        if network.route(source, destination) is None:
            continue
        length = int(random.uniform(*window) * DAY_US)
        begin = int(random.uniform(0, DAY_US - length))
        end = -(-(begin + length) // grid_us) * grid_us
        volume = int(np.exp(random.normal(np.log(median_bytes), 1)))
        options = Options(split=split)
        requests.append(
            Request(f"r{len(requests)}", source, destination, volume, begin // grid_us * grid_us, deadline_us=end, options=options)
        )
    return requests


def empty(network: Network) -> dict[str, Calendar]:
    return {link.id: Calendar(link.capacity()) for link in network.links.values()}


def verified(solution: Solution, requests: list[Request], network: Network) -> Solution:
    calendars = empty(network)
    for request, answer in zip(requests, solution.answers, strict=True):
        if isinstance(answer, Plan):
            verify(request, answer, network.links, calendars)
            for begin, end, rate, path in answer.segments:
                for link_id in path:
                    calendars[link_id].book(begin, end, rate)
    return solution


def _figures(requests: list[Request], network: Network, turns: int) -> dict[str, Any]:
    calendars = empty(network)
    took, worked = [], []
    for _ in range(turns):
        begin, work = time.perf_counter(), time.process_time()
        solution = Optimal().solve(requests, network, calendars)
        took.append(time.perf_counter() - begin)
        worked.append(time.process_time() - work)
    verified(solution, requests, network)
    assert solution.gap is not None
    return {
        "requests": len(requests),
        "variables": solution.variables,
        "solver": solution.solver,
        "seconds": round(statistics.median(took), 3),
        "cpu_seconds": round(statistics.median(worked), 3),  # what it takes on an idle machine: one thread works
        "congestion_factor": float(solution.value),
        "proven_bound": solution.bound,
        "gap_percent": round(solution.gap * 100, 6),
    }


def measure() -> dict[str, Any]:
    network = esnet()
    warm_up()
    on_the_quarter = deadline_transfers(network, 200, 1, (0.05, 0.25), 2e12, QUARTER_US)
    at_any_instant = deadline_transfers(network, 200, 1, (0.05, 0.25), 2e12)
    long_windows = deadline_transfers(network, 200, 1, (0.1, 0.5), 2e12)
    Optimal().solve(on_the_quarter[:5], network, empty(network))  # loads the solver
    return {
        "200_requests_on_the_quarter_hour": _figures(on_the_quarter, network, 5),
        "200_requests_at_any_instant": _figures(at_any_instant, network, 3),
        "1e5_variables": _figures(long_windows, network, 3),
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
