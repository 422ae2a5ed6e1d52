# SPDX-License-Identifier: Apache-2.0
"""Rates, sizes, durations and times in command-line notation; exact integers inside.

Prefixes are decimal (k M G T P) or binary (Ki Mi Gi Ti Pi). `b` is bit, `B` is byte: a rate without either is in bit/s, a size
without either is in bytes, and a size in bits is refused rather than guessed.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import typer

from broker.core.units import MAX_RATE_BPS, MAX_VOLUME_BYTES, US_PER_S, format_time, from_datetime, parse_time

_PREFIXES: dict[str, int] = {letter: 10 ** (3 * power) for power, letter in enumerate(" KMGTP")} | {"": 1}
_BINARY = {f"{letter}I": 2 ** (10 * power) for power, letter in enumerate("KMGTP", 1)}
_NUMBER = r"(?P<number>\d+(?:\.\d+)?)\s*(?P<prefix>[kKmMgGtTpP]i?)?"
_RATE = re.compile(_NUMBER + r"(?P<unit>b/s|bit/s|bps|bit|b|B/s|)", re.ASCII)
_SIZE = re.compile(_NUMBER + r"(?P<unit>B|b|bit|)", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|min|s|m|h|d|w)", re.ASCII)
_UNIT_US = {"ms": 1000, "s": 10**6, "m": 60 * 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86_400 * 10**6}
_UNIT_US["w"] = 7 * _UNIT_US["d"]


def parse_rate(text: str) -> int:
    """ "800M" -> 800_000_000 bit/s; "100MB/s" -> the same. Raises ValueError."""
    found = _RATE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is no rate; write bit/s as 800M, 1.5G or 10Gb/s, or bytes per second as 100MB/s")
    return _whole(text, _scaled(found) * (8 if found["unit"] == "B/s" else 1), "bit/s", MAX_RATE_BPS)


def parse_size(text: str) -> int:
    """ "10G" -> 10_000_000_000 bytes; "10GiB" -> 10_737_418_240. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is no size; write bytes as 500M, 10G, 1.5TB or 64GiB")
    if found["unit"] in ("b", "bit"):
        raise ValueError(f"{text!r} is in bits; sizes are in bytes (that would be {show_size(int(_scaled(found) / 8))})")
    return _whole(text, _scaled(found), "bytes", MAX_VOLUME_BYTES)


def parse_duration(text: str) -> int:
    """ "1h30m" -> microseconds. Raises ValueError."""
    compact = text.replace(" ", "")
    parts = _DURATION_PART.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise ValueError(f"{text!r} is no duration; write 90s, 10min, 1h30m or 2d")
    return int(sum(Fraction(number) * _UNIT_US[unit] for number, unit in parts))


def parse_when(text: str, now_us: int) -> int:
    """RFC 3339, "now", or "+10min" from `now_us` on -> microseconds since the epoch. Raises ValueError."""
    plain = text.strip()
    if plain == "now":
        return now_us
    if plain.startswith("+"):
        return now_us + parse_duration(plain[1:])
    return parse_time(plain)


def _scaled(found: re.Match[str]) -> Fraction:
    prefix = (found["prefix"] or "").upper()
    factor: int = _BINARY.get(prefix) or _PREFIXES[prefix]
    return Fraction(found["number"]) * factor


def _whole(text: str, value: Fraction, unit: str, most: int) -> int:
    if value.denominator != 1:
        raise ValueError(f"{text!r} is no whole number of {unit}")
    if value > most:
        raise ValueError(f"{text!r} is more than the broker knows ({most} {unit})")
    return int(value)


# -- as types of command line options ------------------------------------------------------------------------------------------------


def _option(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """`parse` for Typer, which would replace the text of a ValueError by the bare value."""

    def parser(value: Any) -> Any:
        try:
            return parse(value) if isinstance(value, str) else value  # defaults are already parsed
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return parser


def now_us() -> int:
    """The current time in microseconds."""
    return from_datetime(datetime.now(UTC))


def _when(text: str) -> str:
    return format_time(parse_when(text, now_us()))


def _step(text: str) -> dict[str, Any]:
    when, equals, rate = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r}: write TIME=RATE, for example +10min=200M")
    return {"from": _when(when), "bps": parse_rate(rate)}


RATE = _option(parse_rate)
SIZE = _option(parse_size)
DURATION = _option(parse_duration)
WHEN = _option(_when)  # as RFC 3339 text, the form of the API
STEP = _option(_step)


# -- and back --------------------------------------------------------------------------------------------------------------------------


def show_rate(rate_bps: int | None) -> str:
    """800000000 -> "800 Mb/s"."""
    return "-" if rate_bps is None else f"{_shortened(rate_bps)}b/s"


def show_size(size_bytes: int | None) -> str:
    """1500000000000 -> "1.5 TB"."""
    return "-" if size_bytes is None else f"{_shortened(size_bytes)}B"


def _shortened(value: int) -> str:
    for prefix in "EPTGMk":
        size = 10 ** (3 * " kMGTPE".index(prefix))
        if value >= size:
            return f"{value / size:.4g} {prefix}"
    return f"{value} "


def show_duration(duration_us: int) -> str:
    """A duration in its two largest units: "1h 30m", "4.2 s"."""
    sign, seconds = "-" if duration_us < 0 else "", abs(duration_us) / US_PER_S
    if seconds < 60:
        return f"{sign}{seconds:.3g} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    names = [f"{value}{unit}" for value, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (int(seconds), "s")) if value]
    return sign + " ".join(names[:2])


def show_time(text: str | None, near: datetime | None = None) -> str:
    """A time of the API in UTC, to the second; with the date if it is another day than `near` (default: today)."""
    if text is None:
        return "-"
    moment = datetime.fromisoformat(text)
    today = (near or datetime.now(UTC)).date()
    return f"{moment:%H:%M:%SZ}" if moment.date() == today else f"{moment:%Y-%m-%d %H:%M:%SZ}"
