# SPDX-License-Identifier: Apache-2.0
"""A transfer request: (F, Rmax, Treq) of the VBLS paper, with a deadline, a least rate or a holding time (class 2) where wanted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from broker.core.units import MAX_RATE_BPS, MAX_VOLUME_BYTES


class FieldProblem(NamedTuple):
    """What is wrong with one field of a request, in words that say the way out."""

    field: str
    detail: str


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. Exactly one of `volume_bytes` and `duration_us` is given; times in microseconds, rates in bit/s.

    `volume_bytes` is what is to be booked: the margin for retransmissions (section 4.3) is already in it.
    """

    id: str
    source: str
    destination: str
    volume_bytes: int | None
    not_before_us: int
    rate_max_bps: int | None = None
    rate_min_bps: int | None = None
    deadline_us: int | None = None
    duration_us: int | None = None
    priority: int = 0

    def problems(self) -> Iterator[FieldProblem]:
        """Everything that is wrong with the request on its own, without looking at a network."""
        if self.source == self.destination:
            yield FieldProblem("destination", f"source and destination are both {self.source!r}")
        if (self.volume_bytes is None) == (self.duration_us is None):
            yield FieldProblem("volume_bytes", "give either volume_bytes or duration_s, and not both")
        if self.volume_bytes is not None and not 0 < self.volume_bytes <= MAX_VOLUME_BYTES:
            yield FieldProblem("volume_bytes", f"{self.volume_bytes} is not in 1..{MAX_VOLUME_BYTES} (1 EB)")
        if self.duration_us is not None and self.duration_us <= 0:
            yield FieldProblem("duration_s", "must be above 0")
        for field in ("rate_max_bps", "rate_min_bps"):
            rate = getattr(self, field)
            if rate is not None and not 0 < rate <= MAX_RATE_BPS:
                yield FieldProblem(field, f"{rate} is not in 1..{MAX_RATE_BPS} (1 Pb/s)")
        if self.rate_min_bps is not None and self.rate_max_bps is not None and self.rate_min_bps > self.rate_max_bps:
            yield FieldProblem("rate_min_bps", f"{self.rate_min_bps} is above rate_max_bps {self.rate_max_bps}")
        if self.deadline_us is not None and self.deadline_us <= self.not_before_us:
            yield FieldProblem("deadline", "must lie after not_before, and after the present")
