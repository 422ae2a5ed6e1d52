# SPDX-License-Identifier: Apache-2.0
"""`bwb run` up to the moment at which it becomes bwb-agent exec; from there on, tests/lab/test_wrapped.py."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, UnixStreamServer

import pytest

from broker.cli.agent_socket import AgentAway, ask_agent
from broker.cli.recipient import host_of, named_in

HOSTS = {"dtn-b": "b.example.org:7411", "dtn-bb": "192.0.2.8:7411", "dtn-c": "[2001:db8::8]:7411", "x": "x.example.org:7411"}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["-a", "run7/", "rsync://dtn-b/incoming/"], ["dtn-b"]),
        (["-a", "run7/", "dtn-b:incoming/"], ["dtn-b"]),
        (["-a", "run7/", "me@DTN-B:incoming/"], ["dtn-b"]),
        (["-a", "run7/", "me@b.example.org::incoming/"], ["dtn-b"]),
        (["-T", "x.h5", "http://192.0.2.8:8080/x.h5"], ["dtn-bb"]),
        (["-T", "x.h5", "http://[2001:db8::8]:8080/x.h5"], ["dtn-c"]),
        (["-c", "2001:db8::8"], ["dtn-c"]),
        (["-c", "2001:db8::88"], []),
        (["-c", "1:2001:db8::8"], []),
        (["-c", "dtn-b", "-n", "10G"], ["dtn-b"]),
        (["--client=dtn-bb"], ["dtn-bb"]),
        (["-c", "curl -T y http://dtn-b:9/y & curl -T y http://dtn-bb:9/y"], ["dtn-b", "dtn-bb"]),
        (["http://dtn-b.example.net/", "http://old-dtn-b/", "dtn-b-2"], []),
        (["/data/dtn-b/x", "run/dtn-b"], []),
        (["-x", "x.h5", "--x", "--to=y"], []),
        (["-c", "x"], ["x"]),
    ],
)
def test_the_host_that_a_command_names(arguments: list[str], found: list[str]) -> None:
    assert named_in(arguments, HOSTS) == found


def test_hosts_of_addresses() -> None:
    assert [host_of(a) for a in ("a:1", "[::1]:7411", "a.b", "")] == ["a", "::1", "a.b", ""]


@contextmanager
def agent(folder: Path, says: bytes) -> Iterator[None]:
    """Somebody who answers on an agent's socket."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(says)

    path = folder / "agent.sock"
    with UnixStreamServer(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield
        server.shutdown()


def test_the_agent_is_asked_who_it_is(tmp_path: Path) -> None:
    with agent(tmp_path, b'{"about": {"host": "dtn-a", "version": 1}}\n'):
        assert ask_agent(tmp_path) == "dtn-a"


@pytest.mark.parametrize("says", [b"", b"\n", b"[]\n", b'{"about": null}\n', b'{"refused": {"code": "malformed"}}\n'])
def test_an_agent_that_does_not_say_who_it_is(tmp_path: Path, says: bytes) -> None:
    with agent(tmp_path, says), pytest.raises(AgentAway, match="does not say who it is"):
        ask_agent(tmp_path)


def test_no_agent(tmp_path: Path) -> None:
    with pytest.raises(AgentAway, match="does not answer"):
        ask_agent(tmp_path)
    with pytest.raises(AgentAway, match="no state folder"):
        ask_agent(tmp_path / "none")
