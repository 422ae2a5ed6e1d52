# SPDX-License-Identifier: Apache-2.0
"""What one token may have at once, so that no caller takes what all share; and what it has."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from broker.core.units import US_PER_S

UNLIMITED = "unlimited"  # as an explicit limit, where leaving it out would mean the default

# Bytes times the microseconds from the request to the planned end: 1 GB that will be there an hour from now counts one of these.
GB_HOUR = 10**9 * 3600 * US_PER_S


@dataclass(frozen=True, slots=True)
class Allowance:
    """Limits of one token; None: no limit. The names are those of the API, and of the settings with the defaults (BWB_TOKEN_...)."""

    open_transfers: int | None = None  # held, reserved and active ones
    booked_gb_hours: int | None = None  # of these together
    horizon_s: int | None = None  # how far ahead anything may be booked or asked for
    priority: int | None = None  # the highest
    jobs: int | None = None  # that wait or run
    successors: int | None = None  # behind one transfer of somebody else

    @classmethod
    def of(cls, given: Mapping[str, int | str], defaults: "Allowance") -> "Allowance":
        """The defaults, with what was given to a token in their place."""
        if not given:
            return defaults
        return replace(defaults, **{name: None if value == UNLIMITED else value for name, value in given.items()})  # type: ignore[arg-type]

    def covers(self, use: "Use") -> bool:
        """Is what is counted of a token's bookings no more than it may have?"""
        few = self.open_transfers is None or use.open <= self.open_transfers
        return few and (self.booked_gb_hours is None or use.byte_us <= self.booked_gb_hours * GB_HOUR)


LIMITS = tuple(field.name for field in fields(Allowance))


class Use(NamedTuple):
    """What a token has of what is counted."""

    open: int
    byte_us: int

    def plus(self, more: "Use") -> "Use":
        """The sum."""
        return Use(self.open + more.open, self.byte_us + more.byte_us)

    def minus(self, less: "Use") -> "Use":
        """The difference."""
        return Use(self.open - less.open, self.byte_us - less.byte_us)


NOTHING = Use(0, 0)


def booked_ahead(booked_bytes: int, created_us: int, finish_us: int | None) -> int:
    """What a booking counts of `booked_gb_hours`, in bytes times microseconds, from when it was made until it ends."""
    return 0 if finish_us is None else booked_bytes * max(finish_us - created_us, 0)
