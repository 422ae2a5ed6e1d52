# SPDX-License-Identifier: Apache-2.0
"""The laboratories on this machine: prevents collisions, lets commands find them, and sweeps killed ones.

Everything that a laboratory creates carries the pid of its owner: network namespaces `bwblab-PID-N-...`, one device in the root
namespace, a folder. Its record is written before anything else is created, and removed last.
"""

import contextlib
import fcntl
import itertools
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from broker.lab.errors import LabError

REGISTRY = Path("/run/bwb-lab")
PREFIX = "bwblab"
_SUBNETS = 512  # of 198.18.0.0/15, which is reserved for network tests (RFC 2544) and not routed
_CLOCK_SLACK_S = 2.0  # psutil derives start times from the boot time, which shifts slightly with the wall clock
_numbers = itertools.count()


@dataclass(slots=True)
class Claim:
    """The names, numbers and folder that belong to one laboratory."""

    name: str  # bwblab-PID-N: its record, and the prefix of its namespaces
    device: str  # in the root namespace
    subnet: int  # of the control network
    directory: Path
    _lock: int
    _document: dict[str, Any] = field(default_factory=dict)

    def control_address(self, number: int) -> str:
        """The address of host `number` on the network by which hosts reach the broker."""
        return f"{_subnet_prefix(self.subnet)}.{number}"

    def add(self, **fields: Any) -> None:
        """Add fields to the record and replace it atomically, because other processes read it."""
        self._document |= fields
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self._document))
        part.rename(self._path)

    def release(self) -> None:
        """Release the claimed numbers."""
        self._path.unlink(missing_ok=True)
        os.close(self._lock)

    @property
    def _path(self) -> Path:
        return REGISTRY / f"{self.name}.json"


def claim(directory: Path | None) -> Claim:
    """Claim a name, a subnet of the control network, and a folder (a temporary one if none is given). Raises LabError."""
    REGISTRY.mkdir(mode=0o700, exist_ok=True)
    number = next(_numbers)
    name = f"{PREFIX}-{os.getpid()}-{number}"
    subnet, lock = _claim_subnet()
    if directory is None:
        made = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    else:
        made = directory.absolute()
        made.mkdir(parents=True, exist_ok=True)
    claimed = Claim(name, device_of(name), subnet, made, lock)
    claimed.add(owner=identity(os.getpid()), directory=str(made), temporary=directory is None)
    return claimed


def device_of(name: str) -> str:
    """The device name, at most 15 characters: bwbPID-N."""
    return f"bwb{name.removeprefix(f'{PREFIX}-')}"


def _subnet_prefix(subnet: int) -> str:
    return f"198.{18 + subnet // 256}.{subnet % 256}"


def _claim_subnet() -> tuple[int, int]:
    """The number of a free subnet, and a lock that is released when the process ends in any way."""
    taken = {address.address.rpartition(".")[0] for device in psutil.net_if_addrs().values() for address in device}
    for subnet in range(_SUBNETS):
        if _subnet_prefix(subnet) in taken:
            continue
        lock = os.open(REGISTRY / f"subnet-{subnet}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
        else:
            return subnet, lock
    raise LabError(f"{_SUBNETS} laboratories run on this machine already")


def identity(pid: int) -> dict[str, Any]:
    """A pid with its start time, because a pid alone may be reused later. Raises LabError if there is no such process."""
    try:
        return {"pid": pid, "started": psutil.Process(pid).create_time()}
    except psutil.NoSuchProcess:
        raise LabError(f"process {pid} ended as soon as it began") from None


def alive(who: dict[str, Any]) -> psutil.Process | None:
    """The process of an identity, or None if it no longer runs."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(who["pid"])
        if abs(process.create_time() - who["started"]) < _CLOCK_SLACK_S and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


def records() -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and records of all laboratories, including dead ones."""
    for path in sorted(REGISTRY.glob(f"{PREFIX}-*.json")):
        with contextlib.suppress(OSError, ValueError):
            yield path.stem, json.loads(path.read_text())


def forget(name: str) -> None:
    """Remove the record of a laboratory."""
    (REGISTRY / f"{name}.json").unlink(missing_ok=True)
