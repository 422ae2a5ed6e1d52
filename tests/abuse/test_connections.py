# SPDX-License-Identifier: Apache-2.0
"""Connections that do nothing, say too little, or never read what they asked for."""

import socket
import time
from contextlib import suppress

import pytest

from tests.abuse.stage import Stage, attack_with

pytestmark = pytest.mark.real_time

ATTACK_S = 4.0


def hold_idle(port: int, count: int, said: bytes) -> int:
    """Open so many and keep them; how many the broker let in."""
    held = []
    for _ in range(count):
        with suppress(OSError):
            one = socket.create_connection(("127.0.0.1", port), 1, ("127.0.0.2", 0))
            one.sendall(said)
            held.append(one)
    time.sleep(ATTACK_S)
    open_still = 0
    for one in held:
        one.setblocking(False)
        try:
            open_still += one.recv(1) != b""
        except BlockingIOError:
            open_still += 1
        except OSError:
            pass
        one.close()
    return open_still


def never_read(port: int, count: int) -> int:
    held = []
    request = b"GET /openapi.json HTTP/1.1\r\nHost: b\r\n\r\n" * 12
    for number in range(count):
        one = socket.create_connection(("127.0.0.1", port), 5, (f"127.0.0.{2 + number % 5}", 0))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(request)
        held.append(one)
    time.sleep(ATTACK_S)
    for one in held:
        one.close()
    return len(held)


def test_idle_connections(stage: Stage) -> None:
    figures = stage.beside("1,200 idle connections of one address", lambda: attack_with(hold_idle, stage.port, 1200, b""))
    assert figures["answer"][0] <= 512


def test_headers_without_end(stage: Stage) -> None:
    stage.beside("500 headers without end", lambda: attack_with(hold_idle, stage.port, 500, b"GET / HTTP/1.1\r\nX-A: "))


def test_bodies_without_end(stage: Stage) -> None:
    head = (
        f"POST /v1/transfers/batch HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer {stage.token}\r\nContent-Length: 8000000\r\n\r\n["
    )
    stage.beside("500 bodies without end", lambda: attack_with(hold_idle, stage.port, 500, head.encode()))


def test_readers_that_never_read(stage: Stage) -> None:
    stage.beside("100 readers that never read", lambda: attack_with(never_read, stage.port, 100))
