# SPDX-License-Identifier: Apache-2.0
"""Two networks and a bottleneck between them, in network namespaces of this machine; gone when the context is left, however it is left.

    left hosts -- bridge | router == bottleneck == router | bridge -- right hosts          data, 10.71.1.0/24 and 10.71.2.0/24
    all hosts  -- bridge -- root namespace                                                 control, a /24 of 198.18.0.0/15

Packets on the wire are no larger than the MTU: the hosts segment themselves, one packet at a time, as senders without TSO do. Sysctls are
set inside of the namespaces alone.
"""

import contextlib
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import psutil

from broker.lab import iproute, registry
from broker.lab.errors import LabError
from broker.lab.gateway import Bottleneck, Gateway
from broker.lab.host import Host
from broker.lab.preflight import why_not
from broker.lab.services import AgentProcess, BrokerProcess

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_FIRST_HOST = 10
_DEVICE = "bottleneck"

# 1 Gb/s x 100 ms is 12.5 MB in flight; the kernel counts about twice the payload, and the window grows past what is in flight.
_BUFFERS = "4096 131072 67108864"
SYSCTLS = {
    "net.ipv4.tcp_rmem": _BUFFERS,
    "net.ipv4.tcp_wmem": _BUFFERS,
    "net.ipv4.tcp_no_metrics_save": "1",  # each connection discovers for itself: repetitions are independent
    "net.ipv6.conf.all.disable_ipv6": "1",  # neighbour discovery and the like would be on the link, too
}


class Lab:
    """`sysctls` are set in every host, over the defaults (SYSCTLS). `directory`: where logs, trace and state go; None: a temporary one.

    `congestion_control` comes with the hosts' routes, since a namespace may only choose what the machine's
    tcp_allowed_congestion_control names as its default; a socket may still choose another.
    """

    def __init__(
        self,
        left: Sequence[str] = ("a", "b"),
        right: Sequence[str] = ("c", "d"),
        bottleneck: Bottleneck | None = None,
        *,
        congestion_control: str = "cubic",
        sysctls: Mapping[str, str] | None = None,
        segmentation_offload: bool = False,
        directory: Path | None = None,
    ) -> None:
        names = [*left, *right]
        if not left or not right or len(set(names)) != len(names) or len(names) > 200:
            raise LabError("a laboratory wants 1 to 200 hosts with names of their own, some on each side")
        if bad := [name for name in names if not name.replace("-", "").isalnum() or len(name) > 32]:
            raise LabError(f"{bad[0]!r} is no name for a host: letters, digits and dashes, up to 32")
        self.bottleneck = bottleneck or Bottleneck()
        self._sides = {"left": tuple(left), "right": tuple(right)}
        self._sysctls = {**SYSCTLS, **(sysctls or {})}
        self._congestion_control = congestion_control
        self._offload = segmentation_offload
        self._wanted_directory = directory
        self._processes: list[subprocess.Popen[Any]] = []
        self._undo = contextlib.ExitStack()
        self.hosts: dict[str, Host] = {}

    # -- life ------------------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if reasons := why_not():
            raise LabError("no laboratory can run here: " + "; ".join(reasons))
        registry.sweep()
        with contextlib.ExitStack() as undo:
            self._undo = undo
            self._catch_signals()
            self._claim = registry.claim(self._wanted_directory)
            undo.callback(self._claim.release)
            self.directory = self._claim.directory
            undo.callback(self._remove_files)
            self._build()
            undo.callback(self._end_processes)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Tear everything down. A second time is a no-op."""
        undo = self._undo.pop_all()
        with _Shield():
            undo.close()

    def _catch_signals(self) -> None:
        """SIGTERM and SIGHUP leave the context as ctrl-C does. Only where nobody else catches them, and only the main thread may."""
        if threading.current_thread() is not threading.main_thread():
            return

        def leave(number: int, _frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        for number in _ENDING:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, leave)
                self._undo.callback(signal.signal, number, signal.SIG_DFL)

    def _build(self) -> None:
        name = self._claim.name
        self._routers = {side: f"{name}-{side}" for side in self._sides}
        control = 1
        for number, (side, hosts) in enumerate(self._sides.items(), 1):
            for place, host in enumerate(hosts, _FIRST_HOST):
                control += 1
                address = f"10.71.{number}.{place}"
                self.hosts[host] = Host(
                    host, side, address, self._claim.control_address(control), f"{name}-host-{host}", self._remember
                )  # type: ignore[arg-type]
        self.control_address = self._claim.control_address(1)
        self._record()
        namespaces = [*self._routers.values(), *(host.namespace for host in self.hosts.values())]
        for namespace in namespaces:
            self._undo.callback(registry.remove_namespace, namespace)
        iproute.add_namespaces(namespaces)
        for number, (side, router) in enumerate(self._routers.items(), 1):
            iproute.sysctl(router, {"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.disable_ipv6": "1"})
            iproute.batch(router, self._router_lines(side, number))
        self._connect_control()
        for host in self.hosts.values():
            self._connect(host)
        self.gateway = Gateway(self.bottleneck, (self._routers["left"], self._routers["right"]), _DEVICE, self.directory)
        self._undo.callback(self.gateway.stop)
        self._record()
        self.gateway.ready()
        for number, router in enumerate(self._routers.values(), 1):
            iproute.batch(router, [f"route add 10.71.{3 - number}.0/24 dev {_DEVICE} src 10.71.{number}.1"])

    def _router_lines(self, side: str, number: int) -> list[str]:
        mtu = self.bottleneck.mtu_bytes
        lines = ["link set lo up", f"link add data mtu {mtu} type bridge mcast_snooping 0"]
        lines += ["link set data up", f"address add 10.71.{number}.1/24 dev data"]
        return lines + (["link add control type bridge mcast_snooping 0", "link set control up"] if side == "left" else [])

    def _connect_control(self) -> None:
        left, device = self._routers["left"], self._claim.device
        self._undo.callback(registry.remove_device, device)
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
        router = self._routers[host.side]
        number = 1 if host.side == "left" else 2
        one_by_one = "" if self._offload else "gso_max_segs 1"
        mtu = self.bottleneck.mtu_bytes
        port = f"d-{host.address.rpartition('.')[2]}"
        control = f"c-{host.control_address.rpartition('.')[2]}"
        iproute.sysctl(host.namespace, self._sysctls)
        iproute.batch(
            host.namespace,
            [
                "link set lo up",
                f"link add data mtu {mtu} type veth peer name {port} mtu {mtu} netns {router}",
                f"link set data up {one_by_one}",
                f"address add {host.address}/24 dev data noprefixroute",
                f"link add control type veth peer name {control} netns {self._routers['left']}",
                "link set control up",
                f"address add {host.control_address}/24 dev control",
            ],
        )
        iproute.batch(router, [f"link set {port} master data up"])
        iproute.batch(self._routers["left"], [f"link set {control} master control up"])
        lan = f"10.71.{number}"
        tail = f"dev data src {host.address} congctl {self._congestion_control}"
        iproute.batch(host.namespace, [f"route add {lan}.0/24 {tail}", f"route add default via {lan}.1 {tail}"])

    def _remember(self, process: "subprocess.Popen[Any]") -> None:
        self._processes.append(process)

    def _record(self) -> None:
        """What another process needs to know: `bwb lab exec`, and whoever sweeps after us."""
        own = [process.pid for process in self._processes if process.poll() is None]
        if hasattr(self, "gateway"):
            own.append(self.gateway.process.pid)
        identities = []
        for pid in own:
            with contextlib.suppress(psutil.Error):
                identities.append(registry.identity(pid))
        hosts = {host.name: {"namespace": host.namespace, "address": host.address, "side": host.side} for host in self.hosts.values()}
        self._claim.write(
            {
                "temporary": self._wanted_directory is None,
                "processes": identities,
                "hosts": hosts,
                "control_address": self.control_address,
                "gateway": str(self.directory / "gateway.sock"),
            }
        )

    def _end_processes(self) -> None:
        """The last one started ends first: agents tell the broker that they go."""
        for process in reversed(self._processes):
            if process.poll() is None:
                process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _remove_files(self) -> None:
        if self._wanted_directory is None:
            import shutil

            shutil.rmtree(self.directory, ignore_errors=True)

    # -- use -------------------------------------------------------------------------------------------------------------------

    def host(self, name: str) -> Host:
        try:
            return self.hosts[name]
        except KeyError:
            raise LabError(f"there is no host {name!r}; there are {', '.join(self.hosts)}") from None

    def control_url(self, port: int) -> str:
        """Of a server that listens on `control_address` in the root namespace; every host reaches it past the bottleneck."""
        return f"http://{self.control_address}:{port}"

    def start_broker(self, state_dir: Path | None = None, **settings: str) -> BrokerProcess:
        """`bwb up` in the root namespace, listening on the control network; waits until it is ready. `settings` are BWB_* variables."""
        self.broker = BrokerProcess(state_dir or self.directory / "broker", self.control_address, self.directory, settings)
        self._remember(self.broker.process)
        self._record()
        self.broker.ready()
        return self.broker

    def start_agent(self, name: str, extra_flags: Sequence[str] = (), *, nic_bps: int = 10_000_000_000) -> AgentProcess:
        """Enrol a host (node `left` or `right`) and start its agent; waits until the broker knows it. Again, after its end: resume it."""
        agent = AgentProcess(self.host(name), self.broker, self.directory / "agents" / name, extra_flags, nic_bps)
        self._record()
        agent.ready()
        return agent


class _Shield:
    """Signals wait while a laboratory is torn down: half of it left behind helps nobody."""

    def __enter__(self) -> None:
        self._main = threading.current_thread() is threading.main_thread()
        if self._main:
            self._handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *_ENDING)}

    def __exit__(self, *_: object) -> None:
        if self._main:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
