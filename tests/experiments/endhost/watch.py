# SPDX-License-Identifier: Apache-2.0
"""What the kernel of a host says of its TCP connections, over netlink sock_diag, from outside of its network namespace.

A measurement that neither broker nor agents have a hand in. A netlink socket belongs to the namespace in which it was made, wherever its
owner goes afterwards.
"""

import contextlib
import ctypes
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
# Established, and all states of closing but TIME_WAIT, which has forgotten its counters (linux/tcp_states.h).
_STATES = sum(1 << state for state in (1, 4, 5, 8, 9, 11))
_INFO = 2  # INET_DIAG_INFO
_BYTES_RECEIVED = 128  # offset in struct tcp_info (linux/tcp.h), stable since 4.1
_NEWNET = 0x40000000


class Connection(NamedTuple):
    """Ports, and the kernel's cookie, which no other connection has."""

    local: int
    remote: int
    cookie: int


class Sample(NamedTuple):
    """Bytes received so far; the kernel was asked between the two instants (wall clock, microseconds)."""

    before_us: int
    after_us: int
    received: int


@contextlib.contextmanager
def _inside(namespace: str) -> Iterator[None]:
    """This thread, in a network namespace that `ip netns` knows. OSError without the privilege (CAP_SYS_ADMIN)."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if libc.setns(descriptor, _NEWNET) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
        finally:
            os.close(descriptor)

    outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter(Path("/var/run/netns") / namespace)
        try:
            yield
        finally:
            enter(Path(f"/proc/self/fd/{outside}"))
    finally:
        os.close(outside)


class Watch:
    """The connections of one host whose local port is `port`, from the moment of `begin`."""

    def __init__(self, namespace: str, port: int) -> None:
        self._port = port
        with _inside(namespace):
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
        self._netlink.settimeout(2)
        self._earlier: set[Connection] = set()
        self.samples: dict[Connection, list[Sample]] = {}
        self._closed: dict[Connection, int] = {}

    def close(self) -> None:
        self._netlink.close()

    def begin(self) -> None:
        """Forget what was; connections that are open now are not looked at."""
        self._earlier = set(self._dump())
        self.samples, self._closed = {}, {}

    def take(self) -> None:
        """Note a sample of every connection that received something since the last."""
        before = time.time_ns() // 1000
        found = self._dump()
        after = time.time_ns() // 1000
        for connection, received in found.items():
            if connection in self._earlier:
                continue
            samples = self.samples.setdefault(connection, [])
            if not samples or samples[-1].received != received:
                samples.append(Sample(before, after, received))
        for connection in self.samples.keys() - found.keys():
            self._closed.setdefault(connection, after)

    def received(self) -> int:
        """Over all connections."""
        return sum(samples[-1].received for samples in self.samples.values())

    def first_us(self, beyond: int) -> int | None:
        """When more than `beyond` bytes of one connection had come: what precedes the payload is less than that."""
        found = (s.after_us for samples in self.samples.values() for s in samples if s.received > beyond)
        return min(found, default=None)

    def gone(self) -> bool:
        """There were connections, and all are closed: their last bytes may have come after the last look at them."""
        return bool(self.samples) and self.samples.keys() == self._closed.keys()

    def last_us(self, complete: int = 0) -> int:
        """When the last byte had come: no later than that, and at most one look earlier. A connection that was closed between two looks

        before `complete` bytes were seen had brought them by the second.
        """
        if self.gone() and self.received() < complete:
            return max(self._closed.values())
        return max(samples[-1].after_us for samples in self.samples.values())

    def _dump(self) -> dict[Connection, int]:
        identity = struct.pack(">HH", self._port, 0) + bytes(44)
        request = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (_INFO - 1), _STATES) + identity
        header = struct.pack("=IHHII", 16 + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
        self._netlink.send(header + request)
        found: dict[Connection, int] = {}
        while not read(self._netlink.recv(1 << 16), self._port, found):
            pass
        return found


def read(data: bytes, port: int, found: dict[Connection, int]) -> bool:
    """Take in one datagram of a dump: bytes received, of connections at the port. True when the dump is complete."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if kind in (2, 3):  # error, done
            return True
        local, remote = struct.unpack_from(">HH", data, at + 20)
        if local == port:
            cookie = struct.unpack_from("=Q", data, at + 20 + 40)[0]
            attribute = at + 16 + 72
            while attribute + 4 <= at + length:
                size, name = struct.unpack_from("=HH", data, attribute)
                if name == _INFO and size >= 4 + _BYTES_RECEIVED + 8:
                    received = struct.unpack_from("=Q", data, attribute + 4 + _BYTES_RECEIVED)[0]
                    found[Connection(local, remote, cookie)] = received
                attribute += max((size + 3) & ~3, 4)
        at += (length + 3) & ~3
    return False


def retransmitted_segments(pid: int) -> int:
    """Of all TCP connections in the namespace of a process (RFC 4022, tcpRetransSegs)."""
    lines = [line.split() for line in Path(f"/proc/{pid}/net/snmp").read_text().splitlines() if line.startswith("Tcp:")]
    return int(dict(zip(lines[0], lines[1], strict=True))["RetransSegs"])
