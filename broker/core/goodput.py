# SPDX-License-Identifier: Apache-2.0
"""The TCP payload rate of a link's Ethernet bit rate (RR-6205, section 3.3).

A full frame of MTU m occupies m + 38 bytes on the wire (14 header, 4 check sequence, 8 preamble, 12 gap) and carries m - 40 bytes
of payload (20 IP, 20 TCP): 1 Gb/s at MTU 1500 leaves 1460/1538, that is 949.28 Mb/s (949.29 in the paper, which rounds at each
layer).
"""

WIRE_OVERHEAD_BYTES = 38
IP_TCP_HEADER_BYTES = 40
MIN_MTU_BYTES = 576  # the size that every IPv4 host must accept (RFC 791)
MAX_MTU_BYTES = 65_535


def payload_rate(capacity_bps: int, mtu_bytes: int | None) -> int:
    """Payload bit/s of a link; without `mtu_bytes` the capacity is already payload. `bwb audit` computes the same in SQL."""
    if mtu_bytes is None:
        return capacity_bps
    return capacity_bps * (mtu_bytes - IP_TCP_HEADER_BYTES) // (mtu_bytes + WIRE_OVERHEAD_BYTES)
