# SPDX-License-Identifier: Apache-2.0
"""What attackers do over HTTP, in a process that costs little: connections of other addresses than the normal client's."""

import selectors
import socket
import time
from collections import Counter
from contextlib import suppress


def repeat(port: int, request: bytes, callers: int, seconds: float, addresses: int = 1) -> dict[str, int]:
    """So many callers ask the same again and again, each when it has its answer; how often which status came."""
    statuses: Counter[str] = Counter()
    with selectors.DefaultSelector() as selector:
        for number in range(callers):
            _ask(selector, port, request, f"127.0.0.{2 + number % addresses}")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for key, _ in selector.select(0.1):
                one = key.fileobj
                assert isinstance(one, socket.socket)
                said = b""
                with suppress(OSError):
                    said = one.recv(65536)
                if said.startswith(b"HTTP/1.1 "):
                    statuses[said[9:12].decode()] += 1
                if b"\r\n\r\n" in said and b"onnection: close" not in said:
                    with suppress(OSError):
                        one.sendall(request)
                        continue
                selector.unregister(one)
                one.close()
                _ask(selector, port, request, key.data)
    return dict(statuses)


def _ask(selector: selectors.BaseSelector, port: int, request: bytes, address: str) -> None:
    with suppress(OSError):
        one = socket.create_connection(("127.0.0.1", port), 5, (address, 0))
        selector.register(one, selectors.EVENT_READ, address)
        one.sendall(request)


def request(method: str, path: str, token: str = "", body: bytes = b"") -> bytes:
    head = [f"{method} {path} HTTP/1.1", "Host: broker", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    head += [f"Authorization: Bearer {token}"] if token else []
    return "\r\n".join([*head, "", ""]).encode() + body
