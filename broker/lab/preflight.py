# SPDX-License-Identifier: Apache-2.0
"""Checks whether this machine can run a laboratory; if not, says why and how to correct it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import broker

_TUN = Path("/dev/net/tun")


def gateway_binary() -> Path | None:
    """The emulator built by `make`, or the one on PATH."""
    built = Path(broker.__file__).parent.parent / "agents" / "bin" / "bwb-gateway"
    found = built if built.exists() else shutil.which("bwb-gateway")
    return Path(found) if found else None


def agent_binary() -> Path | None:
    """The bwb-agent to use in the laboratory; None if there is none."""
    built = Path(broker.__file__).parent.parent / "agents" / "bin" / "bwb-agent"
    found = built if built.exists() else shutil.which("bwb-agent")
    return Path(found) if found else None


def why_not() -> list[str]:
    """The reasons why no laboratory can run here, each with its remedy; empty if it can. Makes no lasting changes."""
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
        return True  # cannot be checked: creating the first namespace will tell
