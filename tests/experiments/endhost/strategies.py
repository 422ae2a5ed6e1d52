# SPDX-License-Identifier: Apache-2.0
"""One repetition of a strategy: book, wait, and look at the sinks' kernels meanwhile."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.core.units import MICROBITS_PER_BYTE, format_time, parse_time, volume_of
from broker.desk.ground.start_signals import word_us
from tests.experiments.endhost.analysis import Count, mean_rate
from tests.experiments.endhost.run import Part, Run, Segment
from tests.experiments.endhost.setting import MAX_STOLEN, Strategy, ideal_us, payload_bps, shares_bps, volumes
from tests.experiments.endhost.stage import AGENT_PRIORITY, LEAD_US, PAIRS, PLAIN_PORT, SINK_NICE, Stage, measuring
from tests.experiments.endhost.watch import Watch
from tests.lab.fitness import Processors

ROOT = Path(__file__).parents[3]

# Less than that comes before the booked start: HELLO, PROOF, and the single bytes by which an agent opens its congestion window.
HANDSHAKE_BYTES = 16_384
_COARSE_S, _FINE_S = 0.010, 0.001
_FINE_FROM = 0.95  # of the volume
_QUIET_S = 0.02
_TRACE_LAG_S = 0.35
# Looks at a sink that were further apart than that around its last byte do not say when it came.
_MAX_BLIND_US = 5_000


@dataclass(frozen=True, slots=True)
class Flow:
    """One transfer under way: who brings what to whom, and where to look."""

    source: str
    sink: str
    size: int
    watch: Watch


def run(stage: Stage, strategy: Strategy, rtt_us: int, repetition: int) -> Run:
    """One repetition. AssertionError when a transfer did not bring what it should."""
    sizes = volumes(rtt_us)
    for (source, _), size in zip(PAIRS, sizes, strict=True):
        stage.file(source, size)
    stage.trace.skip()
    before, repeated, processors = stage.emulator(), stage.retransmitted_bytes(), Processors.now()
    begin = {"ifs": _plain, "vifi": _vifi, "spaghetti": _spaghetti}[strategy.name.partition("-")[0]]
    begin_us, flows, rates, finish = begin(stage, strategy, rtt_us, sizes)
    blind_us = look(flows, begin_us, ideal_us(rtt_us), fine=strategy.signal is not None)
    finish()
    time.sleep(
        max(0, begin_us / 1e6 + max(flow.watch.last_us(flow.size) - begin_us for flow in flows) / 1e6 + _TRACE_LAG_S - time.time())
    )
    emulator = stage.emulator().since(before)
    parts = [part(flow, begin_us, rtt_us) for flow in flows]
    last = [part.last_us for part in parts]
    fault = emulator.fault() or Processors.now().robbed_since(processors, MAX_STOLEN)
    if fault is None and blind_us > _MAX_BLIND_US:
        fault = f"the sinks were not looked at for more than {_MAX_BLIND_US // 1000} ms at the end"
    return Run(
        strategy.name,
        rtt_us,
        repetition,
        max(last),
        ideal_us(rtt_us),
        parts,
        stage.retransmitted_bytes() - repeated,
        emulator.dropped,
        round(emulator.mean_late_us, 2),
        gap_us=gap_us(flows) if strategy.signal else None,
        segments=[
            segment
            for flow, rate in zip(flows, rates, strict=True)
            if rate and (segment := sent(stage, flow, begin_us, rate)) is not None
        ],
        discarded=fault,
        stolen=round(Processors.now().stolen_since(processors), 5),
    )


# -- beginning ----------------------------------------------------------------------------------------------------------------------


def _said(mover: subprocess.Popen[str]) -> str:
    assert mover.stdout is not None
    return mover.stdout.readline()


def _plain(stage: Stage, strategy: Strategy, rtt_us: int, sizes: Sequence[int]) -> Any:
    """IFS: two movers without a booking."""
    flows, receivers, senders, digests = [], [], [], []
    for (source, sink), size in zip(PAIRS, sizes, strict=True):
        watch = stage.plain_watches[sink]
        watch.begin()
        file = stage.file(source, size)
        digests.append(file.digest)
        where = f"{stage.lab.host(sink).address}:{PLAIN_PORT}"
        receivers.append(_mover(stage, sink, "receive", where, stage.agents[sink].inbox / file.path.name))
        senders.append(_mover(stage, source, "send", where, file.path, receivers[-1]))
        flows.append(Flow(source, sink, size, watch))
    for sender in senders:
        assert _said(sender) == "ready\n"
    # After a pause, as the agents': a window that handshakes have opened is closed again.
    begin_us = time.time_ns() // 1000 + 200_000
    for sender in senders:
        assert sender.stdin is not None
        sender.stdin.write(f"{begin_us}\n")
        sender.stdin.flush()

    def finish() -> None:
        for receiver, sender, digest in zip(receivers, senders, digests, strict=True):
            assert _said(receiver) == f"{digest}\n"
            assert (receiver.wait(20), sender.wait(20)) == (0, 0)
            for pipe in (receiver.stdin, receiver.stdout, sender.stdin, sender.stdout):
                assert pipe is not None
                pipe.close()
        stage.clear()

    return begin_us, flows, [0] * len(flows), finish


def _mover(stage: Stage, host: str, role: str, where: str, path: Path, after: Any = None) -> "subprocess.Popen[str]":
    if after is not None:
        assert after.stdout.readline() == "ready\n"
    urgency = ["chrt", "--fifo", str(AGENT_PRIORITY)] if role == "send" else ["nice", "-n", str(SINK_NICE)]
    mover = [sys.executable, "-m", "tests.experiments.endhost.plain", role, where, str(path)]
    return stage.lab.host(host).start([*urgency, *mover], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _spaghetti(stage: Stage, strategy: Strategy, rtt_us: int, sizes: Sequence[int]) -> Any:
    """A third and two thirds of the link, each from the common start to the end of its booking."""
    begin_us = _forget(stage, rtt_us)
    flows, submitted = [], []
    for (source, sink), size, rate in zip(PAIRS, sizes, shares_bps(), strict=True):
        deadline_us = begin_us + -(-booked_bytes(size, rate) * MICROBITS_PER_BYTE // rate)
        asked = {"planner": "spaghetti", "rate_max_bps": rate, "mechanism": strategy.mechanism}
        times = {"not_before": format_time(begin_us), "deadline": format_time(deadline_us)}
        submitted.append(stage.submit(source, sink, size, **asked, **times))
        check(submitted[-1], begin_us, [rate])
        flows.append(Flow(source, sink, size, stage.watches[sink]))
    return begin_us, flows, shares_bps(), lambda: _finished(stage, submitted, flows)


def _vifi(stage: Stage, strategy: Strategy, rtt_us: int, sizes: Sequence[int]) -> Any:
    """One after the other at the full rate of the link, the smaller first."""
    begin_us = _forget(stage, rtt_us)
    (first, second), (small, large) = PAIRS, sizes
    # Both are released at once (section 3.1): the second could begin as soon as the first one ends.
    asked: dict[str, Any] = {"planner": "vifi", "rate_max_bps": payload_bps(), "not_before": format_time(begin_us)}
    leader = stage.submit(*first, small, **asked)
    check(leader, begin_us, [payload_bps()])
    follower = stage.submit(*second, large, **asked, after=leader["id"], signal={"kind": strategy.signal})
    check(follower, parse_time(leader["plan"]["finish"]) + word_us(follower["signal"]), [payload_bps()])
    flows = [Flow(*pair, size, stage.watches[pair[1]]) for pair, size in zip(PAIRS, sizes, strict=True)]
    return begin_us, flows, [0, 0], lambda: _finished(stage, [leader, follower], flows)


def _forget(stage: Stage, rtt_us: int) -> int:
    for watch in stage.watches.values():
        watch.begin()
    return time.time_ns() // 1000 + LEAD_US[rtt_us]


def booked_bytes(size: int, rate_bps: int) -> int:
    """What the broker books for a file: its margin by default is 1 % and 50 ms (docs/adr/0008)."""
    return size + -(-size // 100) + volume_of(rate_bps, 50_000)


def check(transfer: Mapping[str, Any], begin_us: int, rates: Sequence[int]) -> None:
    """AssertionError unless the broker booked what the strategy means."""
    segments = transfer["plan"]["segments"]
    assert parse_time(segments[0]["begin"]) == begin_us, transfer
    found = [segment["rate_bps"] for segment in segments]
    assert all(abs(a / b - 1) < 1e-4 for a, b in zip(found, rates, strict=True)), (found, rates)


def _finished(stage: Stage, submitted: Sequence[Mapping[str, Any]], flows: Sequence[Flow]) -> None:
    for transfer, flow in zip(submitted, flows, strict=True):
        stage.ended(transfer["id"], flow.size, flow.source, 60)
    stage.clear()


# -- looking ------------------------------------------------------------------------------------------------------------------------


def look(flows: Sequence[Flow], begin_us: int, expected_us: float, fine: bool) -> int:
    """Watch the sinks until all has come; answers the longest time between two looks around a last byte, in microseconds.

    Looks are 1 ms apart towards the end of a flow, throughout where `fine`, else 10 ms: they cost a little of the same two cores.
    """
    time.sleep(max(begin_us / 1e6 - time.time() - _COARSE_S, 0))
    give_up = time.time() + 5 * expected_us / 1e6 + 20
    open_flows = {flow.sink: flow for flow in flows}
    quiet_since = time.monotonic()
    looked = {flow.sink: time.time_ns() // 1000 for flow in flows}
    blind = dict.fromkeys(looked, 0)
    with measuring():
        while open_flows or time.monotonic() - quiet_since < _QUIET_S:
            assert time.time() < give_up, f"not everything arrived: {[flow.watch.received() for flow in flows]}"
            for flow in flows:
                had = flow.watch.received()
                flow.watch.take()
                now = time.time_ns() // 1000
                if flow.watch.received() != had:
                    blind[flow.sink] = now - looked[flow.sink]
                    quiet_since = time.monotonic()
                looked[flow.sink] = now
                if flow.watch.received() >= flow.size or flow.watch.gone():
                    open_flows.pop(flow.sink, None)
            near = fine or not open_flows or any(f.watch.received() > _FINE_FROM * f.size for f in open_flows.values())
            time.sleep(_FINE_S if near else _COARSE_S)
    return max(blind.values())


def part(flow: Flow, begin_us: int, rtt_us: int) -> Part:
    first = flow.watch.first_us(HANDSHAKE_BYTES)
    return Part(flow.size, None if first is None else first - begin_us - rtt_us // 2, flow.watch.last_us(flow.size) - begin_us)


def gap_us(flows: Sequence[Flow]) -> float:
    """From the last byte of the first transfer to the first of the second, each at its sink: the paths are equally long."""
    first = flows[1].watch.first_us(HANDSHAKE_BYTES)
    assert first is not None
    return first - flows[0].watch.last_us(flows[0].size)


def sent(stage: Stage, flow: Flow, begin_us: int, rate_bps: int) -> Segment | None:
    """The mean rate at which a source offered its file to the bottleneck, up to the last tick that was all its own."""
    counts = stage.trace.offered(stage.lab.host(flow.source).address, begin_us, flow.size)
    if len(counts) < 3:
        return None
    return segment_of(counts, begin_us, counts[-2].at_us, rate_bps)


def segment_of(counts: Sequence[Count], begin_us: float, end_us: float, rate_bps: int) -> Segment:
    return Segment(round((end_us - begin_us) / 1e6, 3), rate_bps, round(mean_rate(counts, begin_us, end_us)))
