# SPDX-License-Identifier: Apache-2.0
"""A link between two hosts is cut for five seconds, with a real broker (docs/faults.md names the tests of the other faults)."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.client import ENDED, BrokerClient
from broker.core.units import parse_time
from broker.lab import Bottleneck, Lab
from broker.lab.preflight import why_not
from broker.lab.trace import TICK_US, per_tick, read

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.agents,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason="SKIPPED, what a cut link does to a transfer: " + "; ".join(why_not())),
]

RATE = 40_000_000
CUT_S = 5.0
# Of a full packet of 1500 bytes 1448 are payload; two packets more or less are how a window falls.
WIRE = 1500 / 1448
WINDOW = 50  # ticks: 500 ms


def test_a_link_that_is_cut_for_five_seconds(tmp_path: Path) -> None:
    bottleneck = Bottleneck(capacity_bps=100_000_000, delay_us=2_000, buffer_bytes=500_000)
    with Lab(left=["a"], right=["c"], bottleneck=bottleneck, directory=tmp_path) as lab:
        lab.start_broker().declare_links(RATE)
        lab.start_agent("a")
        lab.start_agent("c")
        with lab.broker.client() as broker:
            _cut(lab, broker)
            assert broker.audit()["clean"]


def _cut(lab: Lab, broker: BrokerClient) -> None:
    content = os.urandom(20_000_000)  # 4 s: it shall not be over before the cut, on a busy machine either
    (lab.agents["a"].out / "cut.bin").write_bytes(content)
    transfer = broker.submit({"source": "a", "destination": "c", "volume_bytes": len(content), "payload": {"path": "cut.bin"}})[
        "id"
    ]
    _until(lambda: broker.transfer(transfer)["bytes_done"] > 0, 60, "it moves")
    lab.gateway.cut()
    cut_us = time.time_ns() // 1000
    time.sleep(CUT_S)  # the fault itself
    lab.gateway.restore()
    restored_us = time.time_ns() // 1000
    try:
        _until(lambda: broker.transfer(transfer)["state"] in ENDED, 180, "it ends")
    except AssertionError:
        print(broker.transfer(transfer), *broker.history(transfer), sep="\n")
        raise
    ended = broker.transfer(transfer)
    assert ended["state"] == "FINISHED", ended
    assert (lab.agents["c"].inbox / "cut.bin").read_bytes() == content
    history = [event["action"] for event in broker.history(transfer)]
    assert "transfer.rebooked" in history, f"what could not be sent any more was not booked anew: {history}"

    time.sleep(0.3)  # the trace lags
    ticks = per_tick(read(lab.gateway.trace), "offered", lambda row: row.direction == "left-right" and row.protocol == "tcp")
    during = sum(carried for at, carried in ticks if cut_us + 300_000 < at < restored_us)
    assert during < 100_000, f"{during} bytes were sent into a cut link"
    allowed = RATE / 8 * WIRE * WINDOW * TICK_US / 1e6 * 1.01 + 4 * 1500
    worst = max(sum(carried for _, carried in ticks[at : at + WINDOW]) for at in range(len(ticks) - WINDOW))
    assert worst <= allowed, f"{worst} bytes in 500 ms, booked are {allowed:.0f}: what was missed was made up for by a burst"
    assert ended["actual_finish"]
    late_s = (parse_time(ended["actual_finish"]) - restored_us) / 1e6
    print(f"worst 500 ms: {worst / allowed:.3f} of what is allowed; finished {late_s:.1f} s after the link was back")


def _until(condition: Callable[[], Any], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)
