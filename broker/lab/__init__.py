# SPDX-License-Identifier: Apache-2.0
"""The laboratory: hosts, routers, a bottleneck, a broker and agents in network namespaces; for tests, experiments, `bwb lab`.

with Lab(left=["a", "b"], right=["c"], bottleneck=Bottleneck(capacity_bps=500_000_000, delay_us=5_000)) as lab:
    lab.host("c").start(["iperf3", "--server", "--one-off"])
    lab.host("a").run(["iperf3", "--client", lab.host("c").address])
"""

from broker.lab.errors import LabError
from broker.lab.gateway import Bottleneck, Gateway
from broker.lab.host import Host
from broker.lab.lab import Lab
from broker.lab.preflight import why_not
from broker.lab.sweeping import sweep

__all__ = ["Bottleneck", "Gateway", "Host", "Lab", "LabError", "sweep", "why_not"]
