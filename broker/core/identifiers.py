# SPDX-License-Identifier: Apache-2.0
"""Identifiers that sort by creation time, so that new rows go to one end of the index."""

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"  # base 32 without i, l, o, u, which are easily misread
_PAIRS = tuple(high + low for high in _CROCKFORD for low in _CROCKFORD)  # one entry per ten bits, which halves the number of steps
_SHIFTS = tuple(range(120, -1, -10))


def identifier(prefix: str, time_us: int, randomness: bytes) -> str:
    """`prefix`_ and 26 characters: 50 bits of microseconds, then 80 random bits (10 bytes)."""
    number = (time_us & (2**50 - 1)) << 80 | int.from_bytes(randomness[:10], "big")
    return f"{prefix}_{''.join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])}"
