# SPDX-License-Identifier: Apache-2.0
"""Units: integer microseconds UTC, integer bit/s, integer bytes. RFC 3339 is converted at the edges.

A rate times a duration, in bit/s x microseconds, is a number of *microbits* (1e-6 bit). One exabyte is 8e24 of them and does not
fit into 64 bits: Python code uses its unbounded integers, the compiled scans keep bits and microbits in two words (see `scans`).
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

US_PER_S = 1_000_000
MICROBITS_PER_BYTE = 8 * US_PER_S

MAX_VOLUME_BYTES = 10**18  # 1 EB
MAX_RATE_BPS = 10**15  # 1 Pb/s: rate x 1000 stays below 2**63, which the long division in `scans` needs
MAX_SLOT_US = 86_400 * US_PER_S  # a day; also the limit for the combined slots of a path's links
# The first and the last instant that a timestamp can express (0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z).
MIN_TIME_US = -62_135_596_800 * US_PER_S
MAX_TIME_US = 253_402_300_799_999_999
# Later than every timestamp, and far enough from 2**63 that adding a duration cannot overflow.
FOREVER_US = 2**61

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?P<zone>[Zz]|[+-]\d{2}:\d{2})?", re.ASCII)


def parse_time(text: str) -> int:
    """RFC 3339 text -> microseconds since the epoch; digits beyond the microsecond are cut off.

    Raises ValueError for anything else, naive times (no zone) included.
    """
    shape = _RFC3339.fullmatch(text)
    if not shape:
        raise ValueError(f"{text[:64]!r}: not an RFC 3339 time such as 2026-01-01T00:00:00Z")
    if not shape["zone"]:
        raise ValueError(f"{text!r}: give a zone, for example {text[:19]}Z")
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None
    return from_datetime(moment)


def from_datetime(moment: datetime) -> int:
    """Aware datetime -> microseconds; ValueError for a naive one, and for one that cannot be expressed in UTC.

    The latter exist: 0001-01-01T00:00:00+01:00 lies before the first instant of the calendar in UTC.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()}: a time without a zone; write ...Z or an offset")
    time_us = (moment - _EPOCH) // timedelta(microseconds=1)
    if not MIN_TIME_US <= time_us <= MAX_TIME_US:
        raise ValueError(f"{moment.isoformat()}: outside the years 1 to 9999 in UTC")
    return time_us


def to_datetime(time_us: int) -> datetime:
    """Microseconds -> aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=time_us)


@lru_cache(maxsize=4096)  # an answer contains each of its times several times, and the items of a batch share the same times
def format_time(time_us: int) -> str:
    """Microseconds -> RFC 3339 in UTC, with a fraction only if it is not zero."""
    seconds, micros = divmod(time_us, US_PER_S)
    return f"{_format_seconds(seconds)}.{micros:06d}Z" if micros else f"{_format_seconds(seconds)}Z"


@lru_cache(maxsize=4096)  # the times of one answer, and of answers at about the same moment, lie within a few seconds
def _format_seconds(seconds: int) -> str:
    # Not strftime: its %Y writes the year 999 with three digits here, which no parser accepts.
    return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


def duration_for(volume_bytes: int, rate_bps: int) -> int:
    """Microseconds, rounded up, that `volume_bytes` take at `rate_bps` (> 0)."""
    return -(-volume_bytes * MICROBITS_PER_BYTE // rate_bps)


def volume_of(rate_bps: int, duration_us: int) -> int:
    """Whole bytes that `rate_bps` carries in `duration_us`."""
    return rate_bps * duration_us // MICROBITS_PER_BYTE


def span_edges(begin_us: int, end_us: int, number: int) -> list[int]:
    """The edges of `number` equal intervals of [begin, end], both ends included.

    Uses Python integers: for ten thousand years, a duration times an index does not fit into 64 bits, nor its microseconds into a
    float.
    """
    return [begin_us + (end_us - begin_us) * index // number for index in range(number + 1)]


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple that is not below `value`."""
    return -(-value // multiple) * multiple


def round_down(value: int, multiple: int) -> int:
    """The largest multiple that is not above `value`."""
    return value // multiple * multiple
