# SPDX-License-Identifier: Apache-2.0
"""What the kernel says of established TCP sockets, over netlink sock_diag: a measurement that neither broker nor agent has a hand in."""

import contextlib
import os
import socket
import struct
import time
from typing import NamedTuple

_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
_ESTABLISHED = 1 << 1
_INFO = 2  # INET_DIAG_INFO
_BYTES_RECEIVED = 128  # offset in struct tcp_info (linux/tcp.h), stable since 4.1


class Sample(NamedTuple):
    """Payload bytes received so far, over all connections that were ever seen at the port.

    The kernel was asked somewhere between `before_us` and `after_us` (wall clock): on a busy machine these lie milliseconds apart.
    """

    before_us: int
    after_us: int
    received: int

    @property
    def at_us(self) -> int:
        return (self.before_us + self.after_us) // 2


def _dump(port: int) -> dict[tuple[int, int], int]:
    """(remote port, cookie) -> bytes received, of established connections whose local port is `port`."""
    found: dict[tuple[int, int], int] = {}
    with contextlib.closing(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)) as netlink:
        netlink.settimeout(2)
        for family in (socket.AF_INET, socket.AF_INET6):
            identity = struct.pack(">HH", port, 0) + bytes(44)
            request = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), _ESTABLISHED) + identity
            netlink.send(
                struct.pack("=IHHII", 16 + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, family, os.getpid() & 0xFFFF)
                + request
            )
            while not _read(netlink.recv(1 << 18), port, found):
                pass
    return found


def _read(data: bytes, port: int, found: dict[tuple[int, int], int]) -> bool:
    """Take in one datagram; True when the dump is complete."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if kind in (2, 3):  # error, done
            return True
        local, remote = struct.unpack_from(">HH", data, at + 20)
        cookie = struct.unpack_from("=Q", data, at + 20 + 40)[0]
        attribute = at + 16 + 72
        while local == port and attribute + 4 <= at + length:
            size, name = struct.unpack_from("=HH", data, attribute)
            if name == _INFO and size >= 4 + _BYTES_RECEIVED + 8:
                found[remote, cookie] = struct.unpack_from("=Q", data, attribute + 4 + _BYTES_RECEIVED)[0]
            attribute += max((size + 3) & ~3, 4)
        at += (length + 3) & ~3
    return False


class Sampler:
    """Counts what arrives at a port, connection after connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._seen: dict[tuple[int, int], int] = {}
        self.samples: list[Sample] = []

    def take(self) -> None:
        before = time.time_ns() // 1000
        for connection, received in _dump(self._port).items():
            self._seen[connection] = received
        self.samples.append(Sample(before, time.time_ns() // 1000, sum(self._seen.values())))

    def between(self, begin_us: int, end_us: int) -> list[Sample]:
        """The samples that were surely taken in [begin, end]. Nothing is interpolated: where rates change, a straight line lies."""
        return [sample for sample in self.samples if begin_us <= sample.before_us and sample.after_us <= end_us]
