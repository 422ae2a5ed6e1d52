# SPDX-License-Identifier: Apache-2.0
"""Two networks with a bottleneck between them, on this machine; removed when the context is left, in whatever way."""

import contextlib
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from broker.lab import iproute, registry, sweeping
from broker.lab.errors import LabError
from broker.lab.gateway import Bottleneck, Gateway
from broker.lab.host import Host, Side
from broker.lab.preflight import why_not
from broker.lab.services import AgentProcess, BrokerProcess
from broker.lab.wiring import BOTTLENECK, Wiring

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_STOP_LIMIT_S = 20.0
_MAX_HOSTS = 200

# 1 Gb/s x 100 ms is 12.5 MB in flight; the kernel counts about twice the payload, and the window exceeds the data in flight.
_BUFFERS = "4096 131072 67108864"
SYSCTLS = {
    "net.ipv4.tcp_rmem": _BUFFERS,
    "net.ipv4.tcp_wmem": _BUFFERS,
    "net.ipv4.tcp_no_metrics_save": "1",  # no metrics from earlier connections: repetitions are independent
}


class Lab:
    """Hosts on both sides of a bottleneck.

    `sysctls` are set in every host and override SYSCTLS; one that the kernel keeps for the whole machine is refused. Sockets use
    `congestion_control` unless they choose another. Without `segmentation_offload` no packet on any wire is larger than the MTU,
    and every packet is paced individually; with it, as with the offload of a network card, this holds only beyond the bottleneck's
    entrance. Logs, trace and state are kept in `directory`; None: in a temporary one.
    """

    def __init__(
        self,
        left: Sequence[str] = ("a", "b"),
        right: Sequence[str] = ("c", "d"),
        bottleneck: Bottleneck | None = None,
        *,
        congestion_control: str = "cubic",
        sysctls: Mapping[str, str] | None = None,
        segmentation_offload: bool = True,
        directory: Path | None = None,
    ) -> None:
        _check_names(left, right)
        self.bottleneck = bottleneck or Bottleneck()
        self.hosts: dict[str, Host] = {}
        self.agents: dict[str, AgentProcess] = {}
        self._sides: dict[Side, tuple[str, ...]] = {"left": tuple(left), "right": tuple(right)}
        self._congestion_control = congestion_control
        self._sysctls = {**SYSCTLS, **(sysctls or {})}
        self._offload = segmentation_offload
        self._wanted_directory = directory
        self._processes: list[subprocess.Popen[Any]] = []
        self._caught: list[signal.Signals] = []
        self._undo = contextlib.ExitStack()

    # -- life ------------------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if reasons := why_not():
            raise LabError("no laboratory can run here: " + "; ".join(reasons))
        sweeping.sweep()
        try:
            self._catch_signals()
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Tear everything down. Repeating it is a no-op."""
        with _shielded():
            self._undo.close()
        while self._caught:
            signal.signal(self._caught.pop(), signal.SIG_DFL)

    def _catch_signals(self) -> None:
        """Make SIGTERM and SIGHUP leave the context like ctrl-C. Only if they have no other handler, and only in the main thread."""

        def leave(number: int, _frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        if threading.current_thread() is threading.main_thread():
            for number in _ENDING:
                if signal.getsignal(number) == signal.SIG_DFL:
                    signal.signal(number, leave)
                    self._caught.append(number)

    def _build(self) -> None:
        self._claim = registry.claim(self._wanted_directory)
        self._undo.callback(self._claim.release)
        self.directory = self._claim.directory
        if self._wanted_directory is None:
            self._undo.callback(shutil.rmtree, self.directory, ignore_errors=True)
        wiring = Wiring(self._claim, self.bottleneck.mtu_bytes, self._offload, self._congestion_control, self._sysctls)
        self.control_address = wiring.control_address
        self.hosts = wiring.hosts(self._sides, self._processes.append)
        routers = wiring.router("left"), wiring.router("right")
        self._undo.callback(sweeping.remove_device, self._claim.device)
        for namespace in (*routers, *(host.namespace for host in self.hosts.values())):
            self._undo.callback(sweeping.remove_namespace, namespace)
        iproute.add_namespaces([*routers, *(host.namespace for host in self.hosts.values())])
        wiring.make(self.hosts)
        self.gateway = Gateway(self.bottleneck, routers, BOTTLENECK, self.directory)
        self._undo.callback(self.gateway.stop)
        self._record([self.gateway.process.pid])
        self.gateway.ready()
        wiring.route()
        self._undo.callback(self._end_processes)

    def _record(self, pids: Sequence[int]) -> None:
        """Write the data that `bwb lab exec` and a later sweep need (a sweep finds the processes in namespaces there)."""
        self._claim.add(
            processes=[registry.identity(pid) for pid in pids],
            hosts={
                host.name: {"namespace": host.namespace, "address": host.address, "control_address": host.control_address}
                for host in self.hosts.values()
            },
            gateway=str(self.gateway.socket),
        )

    def _end_processes(self) -> None:
        """End the processes in reverse order of their start: agents announce their stop to the broker."""
        for process in reversed(self._processes):
            if process.poll() is None:
                process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(_STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    # -- use -------------------------------------------------------------------------------------------------------------------

    def host(self, name: str) -> Host:
        """The host. Raises LabError if there is none of that name."""
        try:
            return self.hosts[name]
        except KeyError:
            raise LabError(f"there is no host {name!r}; there are {', '.join(self.hosts)}") from None

    def control_url(self, port: int) -> str:
        """The URL of a server that listens on `control_address` in the root namespace; every host reaches it past the bottleneck."""
        return f"http://{self.control_address}:{port}"

    def start_broker(self, state_dir: Path | None = None, **settings: str) -> BrokerProcess:
        """Start `bwb up` in the root namespace, on the control network, and wait until it is ready. `settings` are BWB_* variables."""
        self.broker = BrokerProcess(state_dir or self.directory / "broker", self.control_address, self.directory, settings)
        self._processes.append(self.broker.process)
        self._record([self.gateway.process.pid, self.broker.process.pid])
        self.broker.ready()
        self._claim.add(broker={"url": self.broker.url, "state_dir": str(self.broker.state_dir)})
        return self.broker

    def start_agent(self, name: str, extra_flags: Sequence[str] = (), *, nic_bps: int = 10_000_000_000) -> AgentProcess:
        """Enrol a host (at node `left` or `right`), start its agent and wait for contact with the broker. After its end: restart it."""
        agent = AgentProcess(self.host(name), self.broker, self.directory / "agents" / name, extra_flags, nic_bps)
        self.agents[name] = agent
        agent.ready()
        return agent


def _check_names(left: Sequence[str], right: Sequence[str]) -> None:
    names = [*left, *right]
    if not left or not right or len(set(names)) != len(names) or len(names) > _MAX_HOSTS:
        raise LabError(f"a laboratory has hosts on both sides, up to {_MAX_HOSTS}, each with a name of its own")
    for name in names:
        if not name.replace("-", "").isalnum() or not name.isascii() or len(name) > 32:
            raise LabError(f"{name!r} is no name for a host: letters, digits and dashes, up to 32")


@contextlib.contextmanager
def _shielded() -> Any:
    """Ignore signals during the teardown of a laboratory, so that it is complete."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *_ENDING)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
