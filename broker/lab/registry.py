# SPDX-License-Identifier: Apache-2.0
"""Which laboratories there are on this machine, so that two do not collide, others can be found, and a killed one is swept.

Everything that a laboratory makes outside of its processes bears the pid of its owner: network namespaces `bwblab-PID-N-...`, one device
in the root namespace, a folder. A record in the registry is written before anything is made, and removed last.
"""

import contextlib
import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from broker.lab import iproute
from broker.lab.errors import LabError

REGISTRY = Path("/run/bwb-lab")
_NAMESPACE = re.compile(r"bwblab-(\d+)-(\d+)(-.+)?")
_SUBNETS = 512  # 198.18.0.0/15 is for tests of networks (RFC 2544): nobody routes it
_CLOCK_SLACK_S = 2.0  # psutil derives start times from the boot time, which moves a little with the wall clock
_PATIENCE_S = 5.0
_numbers = itertools.count()


@dataclass(slots=True)
class Claim:
    """What one laboratory may call its own."""

    name: str  # bwblab-PID-N, also the prefix of its namespaces
    device: str  # in the root namespace
    subnet: int  # of the control network
    directory: Path
    _lock: int

    @property
    def record_path(self) -> Path:
        return REGISTRY / f"{self.name}.json"

    def control_address(self, host: int) -> str:
        return f"198.{18 + self.subnet // 256}.{self.subnet % 256}.{host}"

    def write(self, document: dict[str, Any]) -> None:
        """Set the record, whole."""
        text = json.dumps({**_owner(), "directory": str(self.directory), "device": self.device, **document})
        part = self.record_path.with_suffix(".part")
        part.write_text(text)
        part.rename(self.record_path)

    def release(self) -> None:
        self.record_path.unlink(missing_ok=True)
        os.close(self._lock)


def claim(directory: Path | None) -> Claim:
    """A name, a subnet of the control network, and a folder (a temporary one if none is given). Raises LabError."""
    REGISTRY.mkdir(mode=0o700, exist_ok=True)
    number = next(_numbers)
    name = f"bwblab-{os.getpid()}-{number}"
    subnet, lock = _claim_subnet()
    made = Path(tempfile.mkdtemp(prefix=f"{name}-")) if directory is None else directory
    made.mkdir(parents=True, exist_ok=True)
    claimed = Claim(name, f"bwb{os.getpid()}-{number}", subnet, made.absolute(), lock)
    claimed.write({"temporary": directory is None})
    return claimed


def _claim_subnet() -> tuple[int, int]:
    """The lock goes with the process, however that ends."""
    taken = {address.address.rpartition(".")[0] for device in psutil.net_if_addrs().values() for address in device}
    for subnet in range(_SUBNETS):
        if f"198.{18 + subnet // 256}.{subnet % 256}" in taken:
            continue
        lock = os.open(REGISTRY / f"subnet-{subnet}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        return subnet, lock
    raise LabError(f"there are {_SUBNETS} laboratories on this machine already: `bwb lab sweep` removes those that nobody owns")


def identity(pid: int) -> dict[str, Any]:
    """A pid alone proves nothing later on: it may belong to a stranger by then."""
    return {"pid": pid, "started": psutil.Process(pid).create_time()}


def _owner() -> dict[str, Any]:
    return {"owner": identity(os.getpid())}


def lives(who: dict[str, Any]) -> psutil.Process | None:
    """The process that an identity means, if it still runs."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(who["pid"])
        if abs(process.create_time() - who["started"]) < _CLOCK_SLACK_S and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


def records() -> Iterator[tuple[Path, dict[str, Any]]]:
    """All laboratories, dead ones too."""
    for path in sorted(REGISTRY.glob("bwblab-*.json")):
        with contextlib.suppress(OSError, ValueError):
            yield path, json.loads(path.read_text())


def sweep() -> list[str]:
    """Remove what killed laboratories left, and answer their names. Those that run stay as they are."""
    swept = []
    alive = set()
    for path, record in records():
        if lives(record["owner"]):
            alive.add(path.stem)
            continue
        end([process for who in record.get("processes", []) if (process := lives(who))])
        _remove_namespaces(path.stem)
        remove_device(record["device"])
        if record.get("temporary"):
            shutil.rmtree(record["directory"], ignore_errors=True)
        path.unlink(missing_ok=True)
        swept.append(path.stem)
    return swept + _sweep_unrecorded(alive)


def _sweep_unrecorded(alive: set[str]) -> list[str]:
    """Namespaces without a record, of owners that are gone: somebody emptied /run."""
    found = {m[0].removesuffix(m[3] or "") for name in iproute.namespaces() if (m := _NAMESPACE.fullmatch(name))}
    orphans = [name for name in sorted(found - alive) if not psutil.pid_exists(int(name.split("-")[1]))]
    for name in orphans:
        _remove_namespaces(name)
        remove_device(f"bwb{name.removeprefix('bwblab-')}")
    return orphans


def _remove_namespaces(prefix: str) -> None:
    for name in iproute.namespaces():
        if name.startswith(f"{prefix}-"):
            remove_namespace(name)


def remove_namespace(name: str) -> None:
    """With every process in it. A namespace that is gone already is fine."""
    with contextlib.suppress(LabError):
        inside = []
        for pid in iproute.processes(name):
            with contextlib.suppress(psutil.Error):
                inside.append(psutil.Process(pid))
        end(inside)
        iproute.run(["ip", "netns", "delete", name])


def remove_device(name: str) -> None:
    """One that went with its namespace already is fine."""
    with contextlib.suppress(LabError):
        iproute.run(["ip", "link", "delete", name])


def end(processes: list[psutil.Process]) -> None:
    """TERM, and KILL for those that do not mind it."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
    _, stubborn = psutil.wait_procs(processes, timeout=_PATIENCE_S)
    for process in stubborn:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(stubborn, timeout=_PATIENCE_S)


def wait_until(what: str, done: Any, limit_s: float) -> None:
    """Poll. Raises LabError."""
    deadline = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > deadline:
            raise LabError(f"{what}: not within {limit_s:.0f} s")
        time.sleep(0.02)
