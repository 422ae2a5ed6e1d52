# SPDX-License-Identifier: Apache-2.0
"""Identifiers that sort by time of creation, so that new rows go to one end of the index."""

from base64 import b32encode

# Crockford's base 32: no i, l, o, u to misread.
_CROCKFORD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdefghjkmnpqrstvwxyz")
_DIGITS = 26  # of 5 bits: 50 of time, 80 of randomness


def identifier(prefix: str, time_us: int, randomness: bytes) -> str:
    """`prefix`_ and 26 characters: 50 bits of microseconds, then 80 random bits (10 bytes)."""
    number = (time_us & (2**50 - 1)) << 80 | int.from_bytes(randomness[:10], "big")
    digits = b32encode((number << 6).to_bytes(17, "big"))[:_DIGITS]  # the encoder takes whole bytes: 136 bits
    return f"{prefix}_{digits.translate(_CROCKFORD).decode()}"
