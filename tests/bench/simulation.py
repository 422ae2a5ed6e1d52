# SPDX-License-Identifier: Apache-2.0
"""Simulated requests per second: one link in the compiled loops, and a whole network through the planners."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker.cli.network_file import read_network
from broker.simulate import Specification, run
from broker.simulate.packets import delays_s
from broker.simulate.paper import CHANNEL_BPS, LINK_BPS, Point, draw_files
from broker.simulate.single_link import fbls_finishes, vbls_finishes

_REQUESTS = 200_000
_ESNET = Path(__file__).parents[1] / "data/esnet-network.json"


def _per_s(work: Callable[[], object]) -> int:
    """The median of five."""
    work()  # compile, or read the machine code
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return round(_REQUESTS / sorted(times)[2])


def measure() -> dict[str, Any]:
    files = draw_files(Point(0.9, 1, _REQUESTS))
    arguments = files.arrivals_us, files.bits, files.rate_bps, LINK_BPS
    document = {
        "load": 0.9,
        "requests": 2000,
        "planners": ["vbls"],
        "rates": [{"rate_max_bps": 10**9}, {"rate_max_bps": 10**10}],
    }
    network, specification = read_network(_ESNET).network, Specification.from_document(document)
    times = []
    for _ in range(2):  # the first one finds the paths, which the network keeps
        begin = time.perf_counter()
        run(specification, network, lambda share, text: None, lambda: False, time.perf_counter)
        times.append(time.perf_counter() - begin)
    return {
        "vbls_one_link_requests_per_s": _per_s(lambda: vbls_finishes(*arguments, CHANNEL_BPS)),
        "fbls_one_link_requests_per_s": _per_s(lambda: fbls_finishes(*arguments)),
        "ps_one_link_requests_per_s": _per_s(lambda: delays_s(*arguments)),
        "vbls_esnet_requests_per_s": round(2000 / times[1]),
        "vbls_esnet_without_paths_requests_per_s": round(2000 / times[0]),
    }
