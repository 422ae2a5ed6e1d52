# SPDX-License-Identifier: Apache-2.0
"""A chain of ten ViFi transfers from three hosts over one link, with a lost signal and a host that dies on the way."""

import itertools
import os
import signal
import sys
import time
from collections import defaultdict
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from broker.client import BrokerClient
from broker.lab import Bottleneck, Lab
from broker.lab.preflight import why_not
from broker.lab.services import DATA_PORT
from broker.lab.trace import TICK_US, Row, read
from tests.lab.fitness import shown

_RTT_US = 20_000  # a busy machine adds some milliseconds to each signal
_PAYLOAD_BPS = 150_000_000
_SLOT_S = 0.5
_SENDERS = "ababcababa"  # c sends one, in the middle, and dies over it
_DEAD = _SENDERS.index("c")
_TIMEOUT_S = 0.15
_LOSSY_PORT = DATA_PORT + 1
# A tick in which a connection carries less than this share of what it may is only being prepared, or closed.
_BUSY = 0.1

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif(
        bool(why_not()),
        reason="SKIPPED, that no two transfers of a chain overlap and how long the link is idle: " + "; ".join(why_not()),
    ),
]


def test_a_chain_of_ten(tmp_path: Path) -> None:
    """No two of the ten are on the link at once, and it is idle for at most 10 x (1.5 RTT + 3 ms) in all.

    How idle is counted, from the emulator's trace of ticks of 10 ms, per connection, at the end of the link: a connection is on the link
    from its first to its last tick with at least 10 % of the bytes that its rate carries in a tick (less is the preparation of its
    congestion window, or an acknowledgement); within the first of these ticks it begins as late, and within the last it ends as
    early, as the bytes there take at the booked rate. Idle is the time from the end of one to the begin of the next. Behind the
    transfer that dies it counts only from the instant at which the next sender reported that nothing was heard for the timeout: what
    comes before is the dead transfer's own slot, and its detection. The round trip is that of the link's path, 20 ms; between the
    senders, which are on one side, it is next to nothing. That no two overlap must hold in every attempt, the idle time in one. Where this
    machine made a sender so late that its rest was booked anew, that rest is beside the others: such an attempt shows nothing.
    """
    allowed = 10 * (1.5 * _RTT_US + 3_000)
    attempts = itertools.count()

    def play() -> list[str]:
        directory = tmp_path / str(next(attempts))
        directory.mkdir()
        idle, overlaps = _play(directory)
        found = f"idle, ms: {[round(one / 1000, 1) for one in idle]}, sum {sum(idle) / 1000}, allowed {allowed / 1000}"
        print(found)
        return [*overlaps, *([] if sum(idle) <= allowed else [found])]

    shown(play)


def _play(tmp_path: Path) -> tuple[list[float], list[str]]:
    """Carry out the whole chain. Idle time behind each transfer but the last, in µs; and which overlapped for want of time."""
    bottleneck = Bottleneck(capacity_bps=180_000_000, delay_us=_RTT_US // 2, buffer_bytes=1_000_000)
    with Lab(left=["a", "b", "c"], right=["r"], bottleneck=bottleneck, directory=tmp_path) as lab:
        broker = lab.start_broker()
        broker.declare_links(_PAYLOAD_BPS)
        b = lab.host("b")
        # b only sends: nothing but signals comes to the address that it names.
        lossy = f"{b.address}:{_LOSSY_PORT}"
        losing = tmp_path / "lossy.log"
        with losing.open("w") as log:
            b.start([sys.executable, str(Path(__file__).with_name("lossy.py")), lossy, f"{b.address}:{DATA_PORT}"], stdout=log)
        agents = {
            name: lab.start_agent(name, ["--log-level", "debug", *(["--advertise", lossy] if name == "b" else [])])
            for name in "abcr"
        }
        volume = int(_PAYLOAD_BPS / 8 * _SLOT_S)
        for number, name in enumerate(_SENDERS):
            (agents[name].out / f"{number}").write_bytes(os.urandom(1 << 16) * (volume >> 16) + bytes(volume & 0xFFFF))
        os.sync()
        with broker.client() as client:
            items = client.submit_batch([_request(number, name, volume) for number, name in enumerate(_SENDERS)])
            names = [item["transfer"]["id"] for item in items if item["transfer"] is not None]
            chained = [client.transfer(name) for name in names]
            assert [one["after"] for one in chained] == [None, *names[:-1]]
            _until(lambda: "go_received" in agents["c"].log.read_text())
            time.sleep(_SLOT_S / 3)
            os.kill(agents["c"].process.pid, signal.SIGKILL)
            living = [name for number, name in enumerate(names) if number != _DEAD]
            ended = [client.wait(name, 60) for name in living]
            assert [one["state"] for one in ended] == ["FINISHED"] * 9, [(one["id"], one["state"]) for one in ended]
            gave_up_us = _signal_us(client, names[_DEAD + 1], "timeout")
            story = "\n".join(_story(client, name) for name in names)
        lab.gateway.stop()
        rows = read(lab.gateway.trace)
    print(story)
    assert losing.read_text().count("lost a GO") == 1
    spans = _spans(rows)
    print("\n".join(f"{begin / 1e6:.4f} {end / 1e6:.4f}" for begin, end in spans))
    assert len(spans) == 10
    idle, overlaps = [], []
    for number, ((_, end), (begin, _)) in enumerate(pairwise(spans)):
        free = gave_up_us if number == _DEAD else end
        if begin < end - TICK_US:
            overlaps.append(f"transfer {number + 1} began {(end - begin) / 1000:.1f} ms before the end of the one before")
        idle.append(max(0, begin - free))
    assert not overlaps or "transfer.rebooked" in story, overlaps
    return idle, overlaps


def _request(number: int, sender: str, volume: int) -> dict[str, Any]:
    return {
        "source": sender,
        "destination": "r",
        "volume_bytes": volume,
        "planner": "vifi",
        "mode": "managed",
        "payload": {"path": f"{number}"},
        "signal": {"kind": "direct", "timeout_s": _TIMEOUT_S},
    }


def _spans(rows: list[Row]) -> list[tuple[float, float]]:
    """When each data connection was on the link, in µs, in order."""
    full = _PAYLOAD_BPS / 8_000_000 * TICK_US * 1500 / 1448  # wire bytes of a tick
    flows: dict[tuple[Any, ...], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if row.direction == "left-right" and row.protocol == "tcp":
            flows[row.flow][row.time_us] += row.forwarded
    spans = []
    for ticks in flows.values():
        busy = sorted(tick for tick, size in ticks.items() if size >= _BUSY * full)
        if busy:
            first, last = busy[0], busy[-1]
            begin = first + TICK_US * (1 - min(1.0, ticks[first] / full))
            spans.append((begin, last + TICK_US * min(1.0, ticks[last] / full)))
    return sorted(spans)


def _signal_us(client: BrokerClient, transfer: str, code: str) -> float:
    """When a sender reported a signal, by broker time."""
    told = [event["after"] or {} for event in client.history(transfer) if event["action"] == "transfer.signal"]
    (at,) = (one["at"] for one in told if one["code"] == code)
    return datetime.fromisoformat(at).timestamp() * 1e6


def _story(client: BrokerClient, transfer: str) -> str:
    """What happened to it, for whoever reads a failure."""
    lines = [f"{event['at']} {event['actor']} {event['action']} {event['after']}" for event in client.history(transfer)]
    return "\n".join(lines)


def _until(holds: Any, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
