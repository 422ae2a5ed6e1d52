# SPDX-License-Identifier: Apache-2.0
"""A host of the laboratory: a network namespace with an address on its side of the bottleneck, and one on the control network."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the laboratory: a network namespace, its addresses, and its processes."""

    name: str
    side: Side
    address: str  # data: reaches the other side through the bottleneck, its own side directly
    control_address: str  # reaches the root namespace and all hosts, past the bottleneck
    namespace: str
    _started: Callable[["subprocess.Popen[Any]"], None] = field(repr=False)

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command that runs `arguments` in this host; `ip` replaces itself by that process."""
        return ["ip", "netns", "exec", self.namespace, *arguments]

    def start(self, arguments: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
        """As subprocess.Popen, in this host. A process still running when the laboratory ends is ended with it."""
        process = subprocess.Popen(self.command(arguments), **options)
        self._started(process)
        return process

    def run(self, arguments: Sequence[str], *, timeout: float = 60.0, check: bool = True, **options: Any) -> Any:
        """As subprocess.run, in this host; captures text by default."""
        defaults: dict[str, Any] = {"capture_output": True, "text": True}
        return subprocess.run(self.command(arguments), timeout=timeout, check=check, **{**defaults, **options})
