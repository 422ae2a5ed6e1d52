# SPDX-License-Identifier: Apache-2.0
"""Connections that keep us waiting are closed: without a header, without a body, without reading; and there are only so many of one address."""

import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from broker.api.addresses import TrustedProxies, neighbourhood
from tests.live import Live, live_server
from tests.postgres import Server as Postgres

pytestmark = pytest.mark.real_time

LIMITS = {
    "header_timeout_s": 0.2,
    "body_timeout_s": 0.2,
    "write_timeout_s": 0.2,
    "connections_per_address": 20,
    "unread_bytes": 2**20,
}


@pytest.fixture(scope="module")
def live(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    url = postgres.new_database()
    with live_server(url, tmp_path_factory.mktemp("live"), **LIMITS) as (live, _):
        yield live
    postgres.drop(url)


def _connect(live: Live, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(live.url.rpartition(":")[2])), 10, (source, 0))


def _closed(connection: socket.socket) -> bool:
    """Reads until the other side ends it; a time-out fails the test."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: b\r\nX-Slow: ",
        b"POST /v1/session HTTP/1.1\r\nHost: b\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
    ],
)
def test_who_says_nothing_more_is_hung_up_on(live: Live, said: bytes) -> None:
    with _connect(live) as connection:
        connection.sendall(said)
        assert _closed(connection)


def test_a_stray_line_between_two_requests_keeps_no_connection(live: Live) -> None:
    with _connect(live) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: b\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"\r\n")
        assert _closed(connection)


def test_a_header_without_end_is_refused(live: Live) -> None:
    with _connect(live) as connection:
        try:
            connection.sendall(b"GET /healthz HTTP/1.1\r\n" + b"X-Long: 1234567890\r\n" * 10_000)
            assert connection.recv(65536).startswith(b"HTTP/1.1 400")
        except ConnectionError:  # it was closed while we still spoke
            pass


def test_only_so_many_of_one_address_and_others_come_in(live: Live) -> None:
    held = [_connect(live, "127.0.0.2") for _ in range(40)]
    try:
        with _connect(live, "127.0.0.3") as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n")
            assert other.recv(65536).startswith(b"HTTP/1.1 200")
        assert all(_closed(one) for one in held)
        with _connect(live, "127.0.0.2") as again:  # what was closed does not count any more
            again.sendall(b"GET /healthz HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n")
            assert again.recv(65536).startswith(b"HTTP/1.1 200")
    finally:
        for one in held:
            one.close()


def test_who_does_not_read_is_hung_up_on(live: Live) -> None:
    httpx.get(f"{live.url}/openapi.json", timeout=60)  # written now, so that those that follow come at once
    with _connect(live) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = b"GET /openapi.json HTTP/1.1\r\nHost: b\r\n\r\n"
        with pytest.raises(ConnectionError):
            for _ in range(500):
                connection.sendall(request)
                time.sleep(0.01)


def test_the_file_limit_is_raised() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]));"
        "from broker.api.connections import raise_file_limit; raise_file_limit(); print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(said) == resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def test_whom_a_trusted_proxy_speaks_for() -> None:
    trusted = TrustedProxies(["10.0.0.0/8", "::1"])
    assert trusted.client("10.0.0.1", "6.6.6.6, 203.0.113.7, 10.0.0.2") == "203.0.113.7"
    assert trusted.client("10.0.0.1", "") == "10.0.0.1"
    assert trusted.client("10.0.0.1", "nonsense") == "10.0.0.1"
    assert trusted.client("203.0.113.9", "6.6.6.6") == "203.0.113.9"
    assert TrustedProxies([]).client("127.0.0.1", "6.6.6.6") == "127.0.0.1"


def test_one_subscriber_of_ipv6_counts_once() -> None:
    assert neighbourhood("2001:db8::1") == neighbourhood("2001:db8::ffff") != neighbourhood("2001:db8:0:1::1")
    assert neighbourhood("::ffff:192.0.2.1") == neighbourhood("192.0.2.1")
