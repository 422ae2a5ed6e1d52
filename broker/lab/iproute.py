# SPDX-License-Identifier: Apache-2.0
"""Network namespaces by `ip`. Commands for one namespace are sent in one batch: starting a process costs more than its work."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence

from broker.lab.errors import LabError

_LIMIT_S = 30.0


def run(command: Sequence[str], text: str | None = None) -> str:
    """The standard output of `command`. Raises LabError with its error message."""
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"{' '.join(command)}: {error}") from None
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def batch(namespace: str | None, lines: Iterable[str]) -> None:
    """Run `ip` commands in order, up to the first that fails; None: in our own namespace. Raises LabError."""
    where = [] if namespace is None else ["-n", namespace]
    run(["ip", *where, "-batch", "-"], "".join(f"{line}\n" for line in lines))


def add_namespaces(names: Iterable[str]) -> None:
    """Create network namespaces. Raises LabError."""
    batch(None, (f"netns add {name}" for name in names))


def sysctl(namespace: str, values: Mapping[str, str]) -> None:
    """Set sysctls inside the namespace. One that the kernel keeps for the whole machine is an error, and stays unchanged."""
    # The shell's own redirection: `sysctl` may not be installed, and a value may hold several numbers.
    script = 'while IFS== read -r key value; do echo "$value" >"/proc/sys/$key" || { echo "$key = $value is refused" >&2; exit 1; }; done'
    lines = "".join(f"{key.replace('.', '/')}={value}\n" for key, value in values.items())
    run(["ip", "netns", "exec", namespace, "sh", "-c", script], lines)


def namespaces() -> list[str]:
    """The names of all network namespaces of this machine."""
    return [line.split()[0] for line in run(["ip", "netns", "list"]).splitlines() if line.strip()]


def processes(namespace: str) -> list[int]:
    """The process ids inside a namespace."""
    return [int(word) for word in run(["ip", "netns", "pids", namespace]).split()]
