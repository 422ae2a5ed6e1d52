# SPDX-License-Identifier: Apache-2.0
"""After `warm_up` nothing is left to compile: no request waits for it while it holds the locks of links."""

import subprocess
import sys

_PROGRAM = """
import sys
import numpy as np
from numba.core.registry import CPUDispatcher
from dataclasses import replace
from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.request import Options, Request
from broker.planners import PLANNERS, warm_up
from broker.planners.offers import find_binding, find_counter_offer

def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith("broker.")]
    found = {f"{m.__name__}.{name}": f for m in modules for name, f in vars(m).items() if isinstance(f, CPUDispatcher)}
    return {name: list(map(str, function.signatures)) for name, function in found.items()}

warm_up()
before = compiled()
links = [Link("1", "A", "B", 10**9), Link("2", "A", "C", 10**9), Link("3", "C", "B", 10**9, channel_bps=10**6, slot_us=10)]
network = Network(links)
calendars = {link.id: Calendar(link.capacity()) for link in links}
for i in range(100):
    for calendar in calendars.values():
        calendar.book(i * 1000, i * 1000 + 500, 10**8)
        calendar.book_all(*np.array([[i * 1000 + 500], [i * 1000 + 600], [10**8]]))
asked = Request("r", "A", "B", 10**6, 0, 9 * 10**8, 10**6, 50_000)
for options in (Options(), Options(paths=1), Options(path=("2", "3")), Options(split=True), Options(most_segments=3),
                Options(shortest_segment_us=700), Options(most_segments=2, shortest_segment_us=900, paths=1)):
    for volume, duration in ((10**6, None), (10**9, None), (None, 2_000), (None, 60_000)):
        request = replace(asked, options=options, volume_bytes=volume, duration_us=duration)
        find_binding(request, network, calendars)
        for planner in PLANNERS.values():
            if not planner.traits.time_limit:
                planner.plan(request, network, calendars)
                planner.largest_volume(request, network, calendars)
                find_counter_offer(planner, request, network, calendars)
late = {name: signatures for name, signatures in compiled().items() if signatures != before[name]}
assert not late, late
"""


def test_nothing_is_left_to_compile() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
