# SPDX-License-Identifier: Apache-2.0
"""A transfer request: (F, Rmax, Treq) of the VBLS paper, with a deadline, a least rate or a holding time (class 2) where wanted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from broker.core.units import MAX_RATE_BPS, MAX_SLOT_US, MAX_VOLUME_BYTES, US_PER_S


class FieldProblem(NamedTuple):
    """A problem with one field of a request, worded so that the caller can correct it."""

    field: str
    detail: str


# The planner for requests that name none; one of those that `broker.planners` registers.
DEFAULT_PLANNER = "vbls"
DEFAULT_PATHS = 4
MAX_PATHS = 16
MAX_SEGMENTS = 10_000


@dataclass(frozen=True, slots=True)
class Options:
    """Constraints on a plan. Every planner keeps them or refuses as unsupported; a field that is None sets no constraint.

    `paths`: how many of the shortest loop-free paths a planner may choose from; `path`: link ids of the one path to take instead;
    `split`: several paths may carry the transfer at once. Limits on reprogramming (Veeraraghavan et al. 2004, section 3.4):
    no row of a plan but the last is shorter than `shortest_segment_us`, and there are at most `most_segments` rows.
    """

    paths: int = DEFAULT_PATHS
    path: tuple[str, ...] | None = None
    split: bool = False
    shortest_segment_us: int | None = None
    most_segments: int | None = None

    def problems(self) -> Iterator[FieldProblem]:
        """Everything that is wrong with the options alone."""
        if not 1 <= self.paths <= MAX_PATHS:
            yield FieldProblem("paths", f"{self.paths} is not in 1..{MAX_PATHS}")
        if self.path is not None and not self.path:
            yield FieldProblem("path", "names no link; leave it out to let the planner choose")
        if self.path is not None and self.split:
            yield FieldProblem("split", "one given path cannot be split over several")
        if self.shortest_segment_us is not None and not 0 < self.shortest_segment_us <= MAX_SLOT_US:
            yield FieldProblem("shortest_segment_s", f"must be above 0 and at most {MAX_SLOT_US // US_PER_S} s")
        if self.most_segments is not None and not 1 <= self.most_segments <= MAX_SEGMENTS:
            yield FieldProblem("most_segments", f"{self.most_segments} is not in 1..{MAX_SEGMENTS}")


NO_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a plan. Exactly one of `volume_bytes` and `duration_us` is given; times in microseconds, rates in bit/s.

    `volume_bytes` is the volume to book and already includes the margin for retransmissions (section 4.3).
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
    options: Options = NO_OPTIONS

    def problems(self) -> Iterator[FieldProblem]:
        """Everything that is wrong with the request alone, without looking at a network."""
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
        yield from self.options.problems()
