# SPDX-License-Identifier: Apache-2.0
"""Units: integer microseconds UTC, integer bit/s, integer bytes. RFC 3339 stays at the edges.

A rate times a duration, in bit/s x microseconds, is a number of *microbits* (1e-6 bit). One exabyte is 8e24 of them and does not fit
into 64 bits: Python code simply uses its integers, the compiled scans carry whole bits and microbits in two words (see `scans`).
"""

import re
from datetime import UTC, datetime, timedelta

US_PER_S = 1_000_000
MICROBITS_PER_BYTE = 8 * US_PER_S

MAX_VOLUME_BYTES = 10**18  # 1 EB
MAX_RATE_BPS = 10**15  # 1 Pb/s: rate x 1000 stays below 2**63, which the long division in `scans` needs
# The last instant that a time stamp can name (9999-12-31T23:59:59.999999Z).
MAX_TIME_US = 253_402_300_799_999_999
# Later than every time stamp, and far enough from 2**63 that adding a duration cannot wrap.
FOREVER_US = 2**61

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})\Z", re.ASCII)


def parse_time(text: str) -> int:
    """RFC 3339 text -> microseconds since the epoch; digits beyond the microsecond are cut off.

    Raises ValueError for anything else, naive times (no zone) included.
    """
    if not _RFC3339.match(text):
        hint = "give a zone, for example 2026-01-01T00:00:00Z" if "T" in text or " " in text else "not an RFC 3339 time"
        raise ValueError(f"{text[:64]!r}: {hint}")
    try:
        return from_datetime(datetime.fromisoformat(text.upper()))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text[:64]!r}: {error}") from None


def from_datetime(moment: datetime) -> int:
    """Aware datetime -> microseconds; ValueError for a naive one."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()}: a time without a zone; write ...Z or an offset")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def to_datetime(time_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_us)


def format_time(time_us: int) -> str:
    """Microseconds -> RFC 3339 in UTC, with microseconds only where there are any."""
    seconds, micros = divmod(time_us, US_PER_S)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{micros:06d}Z" if micros else f"{text}Z"


def duration_for(volume_bytes: int, rate_bps: int) -> int:
    """Microseconds, rounded up, that `volume_bytes` take at `rate_bps` (> 0)."""
    return -(-volume_bytes * MICROBITS_PER_BYTE // rate_bps)


def volume_of(rate_bps: int, duration_us: int) -> int:
    """Whole bytes that `rate_bps` carries in `duration_us`."""
    return rate_bps * duration_us // MICROBITS_PER_BYTE


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def round_down(value: int, multiple: int) -> int:
    return value // multiple * multiple
