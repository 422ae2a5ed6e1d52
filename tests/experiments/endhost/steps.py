# SPDX-License-Identifier: Apache-2.0
"""A transfer whose booked rate changes: down for background traffic on the link, and up again behind it."""

import time
from typing import Any

from broker.core.units import format_time, parse_time, volume_of
from tests.experiments.endhost.analysis import change_us
from tests.experiments.endhost.run import Steps
from tests.experiments.endhost.setting import MAX_STOLEN, payload_bps
from tests.experiments.endhost.stage import LEAD_US, LINK, PAIRS, Stage
from tests.experiments.endhost.strategies import Flow, booked_bytes, check, look, segment_of
from tests.lab.fitness import Processors

MECHANISMS = ("pacing", "htb", "window", "userland")
REPETITIONS = 2
_HIGH_BPS, _LOW_BPS = 300_000_000, 150_000_000
_SEGMENT_US = 2_200_000
_TRACE_LAG_S = 0.35


def run(stage: Stage, mechanism: str, rtt_us: int, repetition: int) -> Steps:
    """One transfer of three segments at 300, 150 and 300 Mb/s."""
    (source, sink), *_ = PAIRS
    size = volume_of(_HIGH_BPS, 2 * _SEGMENT_US) + volume_of(_LOW_BPS, _SEGMENT_US)
    stage.file(source, size)
    stage.trace.skip()
    before, processors = stage.emulator(), Processors.now()
    watch = stage.watches[sink]
    watch.begin()
    # Two windows are booked before the transfer: one call more to the broker than usual.
    begin_us = time.time_ns() // 1000 + LEAD_US[rtt_us] + 200_000
    low = {"begin": format_time(begin_us + _SEGMENT_US), "end": format_time(begin_us + 2 * _SEGMENT_US)}
    change = stage.client.add_window(LINK, {**low, "bps": _LOW_BPS, "kind": "background"})
    asked = {"planner": "vbls", "rate_max_bps": _HIGH_BPS, "mechanism": mechanism, "not_before": format_time(begin_us)}
    transfer = stage.submit(source, sink, size, **asked)
    check(transfer, begin_us, [_HIGH_BPS, _LOW_BPS, _HIGH_BPS])
    flow = Flow(source, sink, size, watch)
    look([flow], begin_us, booked_bytes(size, _HIGH_BPS) * 8e6 / _LOW_BPS, fine=False)
    stage.ended(transfer["id"], size, source, 60)
    time.sleep(_TRACE_LAG_S)
    stage.clear()
    for window in change["windows"]:
        stage.client.remove_window(LINK, window["id"])
    fault = stage.emulator().since(before).fault() or Processors.now().robbed_since(processors, MAX_STOLEN)
    return _steps(stage, flow, transfer, mechanism, rtt_us, repetition, fault)


def _steps(
    stage: Stage, flow: Flow, transfer: dict[str, Any], mechanism: str, rtt_us: int, repetition: int, fault: str | None
) -> Steps:
    booked = [(parse_time(s["begin"]), parse_time(s["end"]), s["rate_bps"]) for s in transfer["plan"]["segments"]]
    counts = stage.trace.offered(stage.lab.host(flow.source).address, booked[0][0], flow.size)
    last = counts[-2].at_us
    return Steps(
        mechanism,
        rtt_us,
        repetition,
        [round(change_us(counts, begin) - begin, 1) for begin, _, _ in booked[1:]],
        [segment_of(counts, begin, min(end, last), rate) for begin, end, rate in booked],
        fault,
    )


assert payload_bps() > _HIGH_BPS
