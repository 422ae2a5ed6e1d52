# SPDX-License-Identifier: Apache-2.0
"""A server that takes whatever is uploaded, on many ports: `python -m tests.lab.sink ADDRESS FIRST_PORT COUNT`. One thread."""

import selectors
import socket
import sys

_PIECE = 1 << 18


def serve(address: str, first: int, count: int) -> None:
    """HTTP enough for `curl -T`: the body is thrown away and counted; the answer goes out when it is complete."""
    waiting = selectors.DefaultSelector()
    for port in range(first, first + count):
        listener = socket.create_server((address, port), backlog=64)
        listener.setblocking(False)
        waiting.register(listener, selectors.EVENT_READ, None)
    print("ready", flush=True)
    while True:
        for key, _ in waiting.select():
            assert isinstance(key.fileobj, socket.socket)
            if key.data is None:
                connection, _ = key.fileobj.accept()
                connection.setblocking(False)
                waiting.register(connection, selectors.EVENT_READ, Upload())
            elif key.data.over(key.fileobj):
                waiting.unregister(key.fileobj)
                key.fileobj.close()


class Upload:
    """One request on one connection."""

    def __init__(self) -> None:
        self._head = b""
        self._missing = -1

    def over(self, connection: socket.socket) -> bool:
        """Read what there is; True when the connection has ended."""
        try:
            piece = connection.recv(_PIECE)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True
        if not piece:
            return True
        if self._missing < 0:
            piece = self._begin(connection, piece)
        if self._missing >= 0:
            self._missing -= len(piece)
            if self._missing <= 0:
                connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
                self._head, self._missing = b"", -1
        return False

    def _begin(self, connection: socket.socket, piece: bytes) -> bytes:
        """What of `piece` is body already."""
        self._head += piece
        head, blank, body = self._head.partition(b"\r\n\r\n")
        if not blank:
            return b""
        headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        self._missing = int(headers.get(b"content-length", b"0"))
        if headers.get(b"expect") == b"100-continue":
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        return body


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
