# SPDX-License-Identifier: Apache-2.0
"""Removing a laboratory, also the remains of a killed one."""

import contextlib
import re
import shutil
import signal

import psutil

from broker.lab import iproute, registry
from broker.lab.errors import LabError

_NAMESPACE = re.compile(rf"({registry.PREFIX}-(\d+)-\d+)-.+")
_PATIENCE_S = 5.0


def sweep() -> list[str]:
    """Remove the remains of killed laboratories; returns their names. Running laboratories are not touched."""
    swept = []
    for name, record in registry.records():
        if not registry.alive(record["owner"]):
            _end([process for who in record.get("processes", []) if (process := registry.alive(who))])
            _remove_network(name)
            if record["temporary"]:
                shutil.rmtree(record["directory"], ignore_errors=True)
            registry.forget(name)
            swept.append(name)
    return swept + _sweep_unrecorded()


def _sweep_unrecorded() -> list[str]:
    """Remove namespaces without a record whose owners are gone, for the case that /run was emptied."""
    recorded = {name for name, _ in registry.records()}
    found = {m[1]: int(m[2]) for namespace in iproute.namespaces() if (m := _NAMESPACE.fullmatch(namespace))}
    orphans = [name for name, pid in sorted(found.items()) if name not in recorded and not psutil.pid_exists(pid)]
    for name in orphans:
        _remove_network(name)
    return orphans


def _remove_network(name: str) -> None:
    for namespace in iproute.namespaces():
        if namespace.startswith(f"{name}-"):
            remove_namespace(namespace)
    remove_device(registry.device_of(name))


def remove_namespace(name: str) -> None:
    """Remove a namespace with every process in it. It is no error if it is already gone."""
    with contextlib.suppress(LabError):
        inside = []
        for pid in iproute.processes(name):
            with contextlib.suppress(psutil.Error):
                inside.append(psutil.Process(pid))
        _end(inside)
        iproute.run(["ip", "netns", "delete", name])


def remove_device(name: str) -> None:
    """Remove a device. It is no error if it went with its namespace."""
    with contextlib.suppress(LabError):
        iproute.run(["ip", "link", "delete", name])


def _end(processes: list[psutil.Process]) -> None:
    """Send TERM, then KILL to the processes that ignore it."""
    _send(processes, signal.SIGTERM)
    _, stubborn = psutil.wait_procs(processes, timeout=_PATIENCE_S)
    _send(stubborn, signal.SIGKILL)
    psutil.wait_procs(stubborn, timeout=_PATIENCE_S)


def _send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
