# SPDX-License-Identifier: Apache-2.0
"""The mover of IFS: a file over plain TCP, as fast as the network lets it. It connects beforehand, as the agents do, and begins on time.

python -m tests.experiments.endhost.plain receive ADDRESS:PORT FILE      prints "ready", at the end the SHA-256 of what came
python -m tests.experiments.endhost.plain send ADDRESS:PORT FILE         prints "ready", reads the instant to begin (wall clock, us)
"""

import hashlib
import os
import socket
import sys
import time
from pathlib import Path

_CONGESTION = b"cubic"  # what the agents choose, too: the kernel's default may be another
_BLOCK = 1 << 20


def send(address: str, port: int, path: Path) -> None:
    with socket.socket() as connection, path.open("rb") as file:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _CONGESTION)
        connection.connect((address, port))
        print("ready", flush=True)
        begin_us = int(sys.stdin.readline())
        time.sleep(max(begin_us / 1e6 - time.time(), 0))
        offset, size = 0, path.stat().st_size
        while offset < size:
            offset += os.sendfile(connection.fileno(), file.fileno(), offset, size - offset)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # the receiver has it all


def receive(address: str, port: int, path: Path) -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(1)
        print("ready", flush=True)
        connection, _ = listener.accept()
    buffer = memoryview(bytearray(_BLOCK))
    with connection, path.open("wb", buffering=0) as file:
        while n := connection.recv_into(buffer):
            file.write(buffer[:n])
    with path.open("rb") as file:
        print(hashlib.file_digest(file, "sha256").hexdigest(), flush=True)


def main() -> None:
    what, where, path = sys.argv[1:]
    address, _, port = where.rpartition(":")
    {"send": send, "receive": receive}[what](address, int(port), Path(path))


if __name__ == "__main__":
    main()
