# SPDX-License-Identifier: Apache-2.0
"""The agent on this host: its program and its host name (agents/internal/local: one JSON object per line on a unix socket)."""

import os
import shutil
import socket
from pathlib import Path

import orjson

_PATIENCE_S = 5.0
_LONGEST = 65_536
_VERSION = 1


class AgentAway(Exception):
    """No agent answers; the text says why."""


def ask_agent(state_dir: Path) -> str:
    """The name under which this host is enrolled. Raises AgentAway."""
    try:
        folder = os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise AgentAway(f"no state folder of an agent at {state_dir}: {error.strerror}") from None
    try:
        # A socket path is limited to about 100 characters: a long folder is addressed by its file descriptor.
        said = _converse(f"/proc/self/fd/{folder}/agent.sock")
    except OSError as error:
        raise AgentAway(f"the agent of {state_dir} does not answer: {error.strerror or error}") from None
    finally:
        os.close(folder)
    try:
        about = orjson.loads(said)["about"]
        return str(about["host"])
    except (ValueError, KeyError, TypeError):
        raise AgentAway(f"the agent of {state_dir} does not say who it is; is it as new as this bwb?") from None


def agent_program() -> Path | None:
    """The bwb-agent on PATH, or the one built beside this code, or None."""
    installed = shutil.which("bwb-agent")
    built = Path(__file__).parents[2] / "agents" / "bin" / "bwb-agent"
    return Path(installed) if installed else built if built.exists() else None


def _converse(path: str) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(_PATIENCE_S)
        line.connect(path)
        line.sendall(orjson.dumps({"about": {"version": _VERSION}}) + b"\n")
        said = b""
        while not said.endswith(b"\n") and len(said) < _LONGEST:
            more = line.recv(4096)
            if not more:
                break
            said += more
        return said
