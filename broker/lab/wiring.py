# SPDX-License-Identifier: Apache-2.0
"""The wiring of hosts and routers, as `ip` commands.

left hosts -- bridge | router == bottleneck == router | bridge -- right hosts          data, 10.71.1.0/24 and 10.71.2.0/24
all hosts  -- bridge -- root namespace                                                 control, a /24 of 198.18.0.0/15
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from broker.lab import iproute
from broker.lab.host import Host, Side
from broker.lab.registry import Claim

BOTTLENECK = "bottleneck"  # the TUN device in each router
_NUMBERS: dict[Side, int] = {"left": 1, "right": 2}
_FIRST_HOST = 10
_NO_IPV6 = {"net.ipv6.conf.all.disable_ipv6": "1"}
_BRIDGE_FILTER = "net.bridge.bridge-nf-call-iptables"  # costs a tenth of the emulator threads' work, where the module is loaded


@dataclass(frozen=True, slots=True)
class Wiring:
    """The wiring of a laboratory: addresses, MTU, offloads, congestion control, sysctls."""

    claim: Claim
    mtu_bytes: int
    segmentation_offload: bool
    congestion_control: str
    sysctls: Mapping[str, str]  # of every host

    @property
    def control_address(self) -> str:
        """The control address of the root namespace."""
        return self.claim.control_address(1)

    def router(self, side: Side) -> str:
        """The namespace of the router."""
        return f"{self.claim.name}-{side}"

    def hosts(self, sides: Mapping[Side, tuple[str, ...]], started: Callable[[Any], None]) -> dict[str, Host]:
        """The hosts, before anything is created."""
        place = count(2)  # host number on the control network; the root namespace is 1
        return {
            name: Host(
                name=name,
                side=side,
                address=f"10.71.{_NUMBERS[side]}.{number}",
                control_address=self.claim.control_address(next(place)),
                namespace=f"{self.claim.name}-host-{name}",
                _started=started,
            )
            for side, names in sides.items()
            for number, name in enumerate(names, _FIRST_HOST)
        }

    def make(self, hosts: Mapping[str, Host]) -> None:
        """Create everything but the bottleneck. The namespaces must exist. Raises LabError."""
        for side in _NUMBERS:
            self._make_router(side)
        self._connect_root()
        for host in hosts.values():
            self._connect(host)

    def route(self) -> None:
        """Route traffic for the other side through the bottleneck, which must exist."""
        for side, number in _NUMBERS.items():
            line = f"route add 10.71.{3 - number}.0/24 dev {BOTTLENECK} src 10.71.{number}.1"
            iproute.batch(self.router(side), [line])

    def _make_router(self, side: Side) -> None:
        no_filter = {_BRIDGE_FILTER: "0"} if Path("/proc/sys", *_BRIDGE_FILTER.split(".")).exists() else {}
        iproute.sysctl(self.router(side), {"net.ipv4.ip_forward": "1", **_NO_IPV6, **no_filter})
        lines = [
            "link set lo up",
            f"link add data mtu {self.mtu_bytes} type bridge mcast_snooping 0",
            "link set data up",
            f"address add 10.71.{_NUMBERS[side]}.1/24 dev data",
        ]
        if side == "left":
            lines += ["link add control type bridge mcast_snooping 0", "link set control up"]
        iproute.batch(self.router(side), lines)

    def _connect_root(self) -> None:
        device, left = self.claim.device, self.router("left")
        iproute.batch(
            None,
            [
                f"link add {device} type veth peer name root netns {left}",
                f"address add {self.control_address}/24 dev {device}",
                f"link set {device} up",
            ],
        )
        iproute.batch(left, ["link set root master control up"])

    def _connect(self, host: Host) -> None:
        """Connect a host. Its routes set the congestion control, because a namespace may only choose a default that all users may use."""
        router, left, lan = self.router(host.side), self.router("left"), f"10.71.{_NUMBERS[host.side]}"
        data, control = f"d{host.address.rpartition('.')[2]}", f"c{host.control_address.rpartition('.')[2]}"
        segments = "" if self.segmentation_offload else " gso_max_segs 1"
        by = f"dev data src {host.address} congctl {self.congestion_control}"
        iproute.sysctl(host.namespace, {**_NO_IPV6, **self.sysctls})
        iproute.batch(
            host.namespace,
            [
                "link set lo up",
                f"link add data mtu {self.mtu_bytes} type veth peer name {data} mtu {self.mtu_bytes} netns {router}",
                f"link set data up{segments}",
                f"address add {host.address}/24 dev data noprefixroute",
                f"link add control type veth peer name {control} netns {left}",
                "link set control up",
                f"address add {host.control_address}/24 dev control",
                f"route add {lan}.0/24 {by}",
            ],
        )
        iproute.batch(router, [f"link set {data} master data up"])
        iproute.batch(left, [f"link set {control} master control up"])
        iproute.batch(host.namespace, [f"route add default via {lan}.1 {by}"])
