# SPDX-License-Identifier: Apache-2.0
"""The limits of one token on what it may have at once, and its current use, so that no caller takes the whole network."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from broker.core.units import US_PER_S

UNLIMITED = "unlimited"  # an explicit "no limit"; a limit that is left out takes the default

# Bytes x microseconds from the request to the planned end: a booking of 1 GB that ends one hour from now counts as one.
GB_HOUR = 10**9 * 3600 * US_PER_S


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of one token; None means no limit. The names match the API and the settings of the defaults (BWB_TOKEN_...)."""

    open_transfers: int | None = None  # held, reserved and active ones
    booked_gb_hours: int | None = None  # sum over these transfers
    horizon_s: int | None = None  # how far ahead the token may book or ask for a time
    priority: int | None = None  # the highest
    jobs: int | None = None  # waiting or running
    successors: int | None = None  # successors behind one transfer of another owner

    @classmethod
    def of(cls, given: Mapping[str, int | str], defaults: "Allowance") -> "Allowance":
        """The defaults, overridden by the limits `given` to the token."""
        if not given:
            return defaults
        return replace(defaults, **{name: None if value == UNLIMITED else value for name, value in given.items()})  # type: ignore[arg-type]

    def covers(self, use: "Use") -> bool:
        """True if the booked amounts in `use` are within the limits."""
        few = self.open_transfers is None or use.open <= self.open_transfers
        return few and (self.booked_gb_hours is None or use.byte_us <= self.booked_gb_hours * GB_HOUR)


LIMITS = tuple(field.name for field in fields(Allowance))


class Use(NamedTuple):
    """The amounts that a token currently uses."""

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
    """The share of `booked_gb_hours` that a booking counts, in bytes x microseconds, from its creation to its end."""
    return 0 if finish_us is None else booked_bytes * max(finish_us - created_us, 0)
