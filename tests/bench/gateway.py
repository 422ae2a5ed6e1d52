# SPDX-License-Identifier: Apache-2.0
"""The laboratory's bottleneck: how much it forwards in packets of 1500 bytes, what that costs, and how late it is at 1 Gb/s."""

import json
import shutil
import subprocess
import time
from typing import Any

from broker.lab import Bottleneck, Lab, why_not

_SECONDS = 5
_MIN_PORT_WAIT_S = 10


def measure() -> dict[str, Any]:
    """Real CUBIC across it, sender and receiver on the same cores: without a limit, and on a link of 1 Gb/s and 10 ms."""
    missing = [f"no {tool} on PATH; as root, `make tools` installs it" for tool in ("iperf3", "ss") if shutil.which(tool) is None]
    if reasons := [*why_not(), *missing]:
        return {"skipped": "; ".join(reasons)}
    unlimited = _run(Bottleneck(capacity_bps=100_000_000_000, buffer_bytes=4_000_000))
    limited = _run(Bottleneck(capacity_bps=1_000_000_000, delay_us=5_000, buffer_bytes=2_500_000))
    return {"unlimited": unlimited, "at_1_gbps_10_ms": limited}


def _run(bottleneck: Bottleneck) -> dict[str, Any]:
    with Lab(["a"], ["c"], bottleneck) as lab:
        source, sink = lab.host("a"), lab.host("c")
        sink.start(["iperf3", "--server", "--one-off"], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + _MIN_PORT_WAIT_S
        while not sink.run(["ss", "-Hltn", "sport = :5201"]).stdout.strip():
            assert time.monotonic() < deadline, "iperf3 does not listen"
            time.sleep(0.01)
        before = lab.gateway.statistics()
        report = json.loads(source.run(["iperf3", "--client", sink.address, "--time", str(_SECONDS), "--json"]).stdout)
        after = lab.gateway.statistics()
    forward, back = after["directions"]["left-right"], after["directions"]["right-left"]
    seconds = report["end"]["sum_sent"]["seconds"]
    carried = {
        name: forward["forwarded"][name] - before["directions"]["left-right"]["forwarded"][name] for name in ("packets", "bytes")
    }
    returned = back["forwarded"]["packets"] - before["directions"]["right-left"]["forwarded"]["packets"]
    return {
        "gbps": round(carried["bytes"] * 8 / seconds / 1e9, 3),
        "packets_per_s": round(carried["packets"] / seconds),
        "acknowledgements_per_s": round(returned / seconds),
        "goodput_mbps": round(report["end"]["sum_received"]["bits_per_second"] / 1e6, 1),
        "processor_percent_of_a_core": {
            "data": round(
                forward["processor_us"] / seconds / 1e4, 1
            ),  # the receiver's kernel work is done by the thread that delivers
            "acknowledgements": round(back["processor_us"] / seconds / 1e4, 1),
        },
        "lateness_us": {name: forward["lateness_us"][name] for name in ("p50", "p99", "p999", "max")},
        "realtime": after["realtime"],
    }
