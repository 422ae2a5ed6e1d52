# SPDX-License-Identifier: Apache-2.0
"""The agent binaries that this broker serves: one static binary per platform in one folder, with its SHA-256."""

import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path

import broker

PLATFORMS = ("linux-amd64", "linux-arm64")

_MACHINES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_HERE = f"{platform.system().lower()}-{_MACHINES.get(platform.machine(), platform.machine())}"


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A bwb-agent to hand out, and its SHA-256 in hexadecimal."""

    path: Path
    sha256: str


class AgentFiles:
    """`folder` holds bwb-agent-linux-amd64 and so on, as `make packages` makes them; for the platform of this machine the bwb-agent of
    `make build` will do."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder) if folder else Path(broker.__file__).parents[1] / "agents" / "bin"
        self._digests: dict[Path, tuple[tuple[int, int, int], str]] = {}

    def find(self, wanted: str) -> AgentFile | None:
        """The agent for a platform of PLATFORMS; None when there is none (or `wanted` is no platform). Reads the file when it is new."""
        if wanted not in PLATFORMS:  # so that no name from outside ever becomes a path
            return None
        names = (f"bwb-agent-{wanted}", "bwb-agent") if wanted == _HERE else (f"bwb-agent-{wanted}",)
        for name in names:
            path = self.folder / name
            if path.is_file():
                return AgentFile(path, self._digest(path))
        return None

    def _digest(self, path: Path) -> str:
        about = path.stat()
        version = (about.st_ino, about.st_size, about.st_mtime_ns)
        known = self._digests.get(path)
        if known is None or known[0] != version:
            with path.open("rb") as file:
                known = version, hashlib.file_digest(file, "sha256").hexdigest()
            self._digests[path] = known
        return known[1]
