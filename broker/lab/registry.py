# SPDX-License-Identifier: Apache-2.0
"""Which laboratories there are on this machine, so that two do not collide, others can be found, and a killed one is swept.

What a laboratory makes bears the pid of its owner: network namespaces `bwblab-PID-N-...`, one device in the root namespace, a folder. Its
record is written before anything else is made, and removed last.
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
_SUBNETS = 512  # of 198.18.0.0/15, which is for tests of networks (RFC 2544): nobody routes it
_CLOCK_SLACK_S = 2.0  # psutil derives start times from the boot time, which moves a little with the wall clock
_numbers = itertools.count()


@dataclass(slots=True)
class Claim:
    """What one laboratory may call its own."""

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
        """To the record, which others read: it is replaced whole."""
        self._document |= fields
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self._document))
        part.rename(self._path)

    def release(self) -> None:
        """Let others have the claimed numbers."""
        self._path.unlink(missing_ok=True)
        os.close(self._lock)

    @property
    def _path(self) -> Path:
        return REGISTRY / f"{self.name}.json"


def claim(directory: Path | None) -> Claim:
    """A name, a subnet of the control network, and a folder (a temporary one if none is given). Raises LabError."""
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
    """At most 15 characters: bwbPID-N."""
    return f"bwb{name.removeprefix(f'{PREFIX}-')}"


def _subnet_prefix(subnet: int) -> str:
    return f"198.{18 + subnet // 256}.{subnet % 256}"


def _claim_subnet() -> tuple[int, int]:
    """Its number, and a lock that goes with the process, however that ends."""
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
    """A pid alone proves nothing later on: it may belong to a stranger by then. Raises LabError if there is no such process."""
    try:
        return {"pid": pid, "started": psutil.Process(pid).create_time()}
    except psutil.NoSuchProcess:
        raise LabError(f"process {pid} ended as soon as it began") from None


def alive(who: dict[str, Any]) -> psutil.Process | None:
    """The process that an identity means, if it still runs."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(who["pid"])
        if abs(process.create_time() - who["started"]) < _CLOCK_SLACK_S and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


def records() -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and records of all laboratories, dead ones too."""
    for path in sorted(REGISTRY.glob(f"{PREFIX}-*.json")):
        with contextlib.suppress(OSError, ValueError):
            yield path.stem, json.loads(path.read_text())


def forget(name: str) -> None:
    """Remove what is remembered of a laboratory."""
    (REGISTRY / f"{name}.json").unlink(missing_ok=True)
