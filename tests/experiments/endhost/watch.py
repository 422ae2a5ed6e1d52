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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_SOCK_DIAG_BY_FAMILY = 20
_REQUEST, _REQUEST_DUMP = 0x001, 0x301
# Established, and all states of closing but TIME_WAIT, which has forgotten its counters (linux/tcp_states.h).
_STATES = sum(1 << state for state in (1, 4, 5, 8, 9, 11))
_INFO = 2  # INET_DIAG_INFO
_BYTES_RECEIVED = 128  # offset in struct tcp_info (linux/tcp.h), stable since 4.1
_NEWNET = 0x40000000
# A dump walks the kernel's whole table of connections; those that are known are asked for one by one in between.
_DUMP_EVERY_US = 10_000


# struct inet_diag_sockid (linux/inet_diag.h): ports, addresses, interface, and the kernel's cookie, which no other connection has.
Connection = bytes
_IDENTITY = 48


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
    """The connections of one host whose local port is `port`, from the moment of `begin`. After the payload comes a trailer."""

    def __init__(self, namespace: str, port: int, trailer_bytes: int = 0) -> None:
        self._port, self._trailer = port, trailer_bytes
        with _inside(namespace):
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
        self._netlink.settimeout(2)
        self._earlier: set[Connection] = set()
        self._dumped_us = 0
        self.samples: dict[Connection, list[Sample]] = {}
        self._closed: dict[Connection, int] = {}

    def close(self) -> None:
        self._netlink.close()

    def begin(self) -> None:
        """Forget what was; connections that are open now are not looked at."""
        self._earlier = set(self._dump())
        self.samples, self._closed, self._dumped_us = {}, {}, 0

    def take(self) -> None:
        """Note a sample of every connection that received something since the last."""
        before = time.time_ns() // 1000
        if before - self._dumped_us >= _DUMP_EVERY_US:
            self._dumped_us = before
            found = self._dump()
        else:
            found = self._each(self.samples.keys() - self._closed.keys())
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
        """When the last byte of payload had come: no later, and at most one look earlier. A connection that was closed between two looks

        before `complete` bytes were seen had brought them by the second.
        """
        if self.gone() and self.received() < complete:
            return max(self._closed.values())
        return max(self._complete_us(samples) for samples in self.samples.values())

    def _complete_us(self, samples: Sequence[Sample]) -> int:
        payload = samples[-1].received - self._trailer
        return next(sample.after_us for sample in samples if sample.received >= payload)

    def _dump(self) -> dict[Connection, int]:
        found: dict[Connection, int] = {}
        self._ask(_REQUEST_DUMP, struct.pack(">HH", self._port, 0) + bytes(_IDENTITY - 4))
        while not read(self._netlink.recv(1 << 16), self._port, found):
            pass
        return found

    def _each(self, connections: Iterable[Connection]) -> dict[Connection, int]:
        """Without those that are gone."""
        found: dict[Connection, int] = {}
        for connection in connections:
            self._ask(_REQUEST, connection)
            read(self._netlink.recv(1 << 16), self._port, found)
        return found

    def _ask(self, flags: int, identity: bytes) -> None:
        request = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (_INFO - 1), _STATES) + identity
        self._netlink.send(struct.pack("=IHHII", 16 + len(request), _SOCK_DIAG_BY_FAMILY, flags, 1, 0) + request)


def read(data: bytes, port: int, found: dict[Connection, int]) -> bool:
    """Take in one datagram: bytes received, of connections at the port. True when a dump is complete, or who was asked for is gone."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if kind in (2, 3):  # error, done
            return True
        identity = at + 20
        if struct.unpack_from(">H", data, identity)[0] == port:
            attribute = at + 16 + 72
            while attribute + 4 <= at + length:
                size, name = struct.unpack_from("=HH", data, attribute)
                if name == _INFO and size >= 4 + _BYTES_RECEIVED + 8:
                    received = struct.unpack_from("=Q", data, attribute + 4 + _BYTES_RECEIVED)[0]
                    found[data[identity : identity + _IDENTITY]] = received
                attribute += max((size + 3) & ~3, 4)
        at += (length + 3) & ~3
    return False


def retransmitted_segments(pid: int) -> int:
    """Of all TCP connections in the namespace of a process (RFC 4022, tcpRetransSegs)."""
    lines = [line.split() for line in Path(f"/proc/{pid}/net/snmp").read_text().splitlines() if line.startswith("Tcp:")]
    return int(dict(zip(lines[0], lines[1], strict=True))["RetransSegs"])
