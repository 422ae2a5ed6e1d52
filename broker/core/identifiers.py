# SPDX-License-Identifier: Apache-2.0
"""Identifiers that sort by time of creation, so that new rows go to one end of the index."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u to misread


def identifier(prefix: str, time_us: int, randomness: bytes) -> str:
    """`prefix`_ and 26 characters: 50 bits of microseconds, then 80 random bits (10 bytes)."""
    number = (time_us & (2**50 - 1)) << 80 | int.from_bytes(randomness[:10], "big")
    digits = []
    for _ in range(26):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return f"{prefix}_{''.join(reversed(digits))}"
