# SPDX-License-Identifier: Apache-2.0
"""Can this machine run a laboratory, and if not: why, and what would help?"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import broker

_TUN = Path("/dev/net/tun")


def gateway_binary() -> Path | None:
    """The emulator that `make` built, else the one on PATH."""
    built = Path(broker.__file__).parent.parent / "agents" / "bin" / "bwb-gateway"
    found = built if built.exists() else shutil.which("bwb-gateway")
    return Path(found) if found else None


def agent_binary() -> Path | None:
    """The bwb-agent to use in the laboratory; None where none was built."""
    built = Path(broker.__file__).parent.parent / "agents" / "bin" / "bwb-agent"
    found = built if built.exists() else shutil.which("bwb-agent")
    return Path(found) if found else None


def why_not() -> list[str]:
    """What keeps a laboratory from running here, each with the way out; empty if nothing does. Changes nothing that lasts."""
    reasons = []
    if os.geteuid() != 0:
        reasons.append("network namespaces need root: run it with sudo")
    if shutil.which("ip") is None:
        reasons.append("there is no `ip`: install iproute2")
    if not os.access(_TUN, os.R_OK | os.W_OK):
        reasons.append(f"{_TUN} cannot be opened: `modprobe tun`; in a container, give it the device and CAP_NET_ADMIN")
    if gateway_binary() is None:
        reasons.append("there is no bwb-gateway: `make build` builds it")
    if not reasons and not _permitted(["unshare", "--net", "true"]):
        reasons.append("this root may make no network namespaces (a container?): it needs CAP_SYS_ADMIN and CAP_NET_ADMIN")
    return reasons


def _permitted(command: list[str], run: Callable[..., "subprocess.CompletedProcess[bytes]"] = subprocess.run) -> bool:
    try:
        return run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return True  # no way to ask: making the first namespace will tell
