# SPDX-License-Identifier: Apache-2.0
"""Network namespaces by `ip`. Commands for one namespace go in one batch: a process costs more than what it does."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence

from broker.lab.errors import LabError

_LIMIT_S = 30.0


def run(command: Sequence[str], text: str | None = None) -> str:
    """Its standard output. Raises LabError with what it complained of."""
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"{' '.join(command)}: {error}") from None
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def batch(namespace: str | None, lines: Iterable[str]) -> None:
    """`ip` commands, in order, up to the first that fails; None: in our own namespace."""
    where = [] if namespace is None else ["-n", namespace]
    run(["ip", *where, "-batch", "-"], "".join(f"{line}\n" for line in lines))


def add_namespaces(names: Iterable[str]) -> None:
    """Make network namespaces. Raises LabError."""
    batch(None, (f"netns add {name}" for name in names))


def sysctl(namespace: str, values: Mapping[str, str]) -> None:
    """Set them inside of the namespace. One that this kernel has for the whole machine only is an error, and stays as it is."""
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
