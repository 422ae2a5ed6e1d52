# SPDX-License-Identifier: Apache-2.0
"""What the runs come to. Pure."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from broker.simulate.student import mean_with_interval
from tests.experiments.endhost.run import Run

CONFIDENCE = 0.99


class Summary(NamedTuple):
    """Of one strategy at one round-trip time. Deficiencies are shares of the ideal time, times are in seconds."""

    repetitions: int
    ideal_s: float
    mean: float
    half_interval: float | None  # half the width of the 99 % confidence interval of the mean, as a share of the ideal
    deviation_s: float
    p75: float
    p99: float
    mean_retransmitted_bytes: float
    mean_dropped: float


def deficiency(run: Run) -> float:
    """How much longer than the ideal, as a share of it (RR-6205, table 2)."""
    return run.completion_us / run.ideal_us - 1


def percentile(samples: Sequence[float], percent: float) -> float:
    """Nearest rank: the smallest sample that `percent` of all do not exceed. Of 20, the 99th is the largest: no run was worse."""
    return sorted(samples)[max(math.ceil(len(samples) * percent / 100), 1) - 1]


def summarise(runs: Sequence[Run]) -> Summary:
    shares = [deficiency(run) for run in runs]
    times = [run.completion_us / 1e6 for run in runs]
    mean, half = mean_with_interval(shares, CONFIDENCE)
    middle = sum(times) / len(times)
    spread = math.sqrt(sum((time - middle) ** 2 for time in times) / (len(times) - 1)) if len(times) > 1 else 0.0
    return Summary(
        len(runs),
        runs[0].ideal_us / 1e6,
        mean,
        half,
        spread,
        percentile(shares, 75),
        percentile(shares, 99),
        sum(run.retransmitted_bytes for run in runs) / len(runs),
        sum(run.dropped_packets for run in runs) / len(runs),
    )


def by_case(runs: Iterable[Run]) -> dict[tuple[str, int], list[Run]]:
    """(strategy, rtt_us) -> its runs, in order."""
    found: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        found.setdefault((run.strategy, run.rtt_us), []).append(run)
    return found


def summaries(runs: Iterable[Run]) -> dict[tuple[str, int], Summary]:
    return {case: summarise(mine) for case, mine in by_case(runs).items()}


class Count(NamedTuple):
    """So many payload bytes had passed at an instant, in microseconds."""

    at_us: float
    payload_bytes: float


def mean_rate(counts: Sequence[Count], begin_us: float, end_us: float) -> float:
    """Bit/s between two instants, the counts joined by straight lines. ValueError where they do not reach."""
    return (_at(counts, end_us) - _at(counts, begin_us)) * 8e6 / (end_us - begin_us)


def _at(counts: Sequence[Count], when_us: float) -> float:
    if not counts or not counts[0].at_us <= when_us <= counts[-1].at_us:
        raise ValueError(f"nothing was counted at {when_us} us")
    low, high = 0, len(counts) - 1
    while low < high:
        middle = (low + high) // 2
        if counts[middle].at_us < when_us:
            low = middle + 1
        else:
            high = middle
    after = counts[low]
    if low == 0 or after.at_us == when_us:
        return after.payload_bytes
    before = counts[low - 1]
    return before.payload_bytes + (after.payload_bytes - before.payload_bytes) * (when_us - before.at_us) / (
        after.at_us - before.at_us
    )


def change_us(counts: Sequence[Count], boundary_us: float, reach_us: float = 1_000_000, margin_us: float = 60_000) -> float:
    """When the rate changed, near a boundary: where the line through what came before meets the line through what came after.

    The lines are least squares over `reach_us` on either side without the `margin_us` next to the boundary, so that one packet more or
    less in a bin does not count. ValueError when there is nothing to fit, or no change.
    """
    before = _line([c for c in counts if boundary_us - reach_us <= c.at_us <= boundary_us - margin_us], boundary_us)
    after = _line([c for c in counts if boundary_us + margin_us <= c.at_us <= boundary_us + reach_us], boundary_us)
    if abs(before[1] - after[1]) < 0.01 * max(abs(before[1]), abs(after[1])):
        raise ValueError("the rate did not change")
    return boundary_us + (before[0] - after[0]) / (after[1] - before[1])


def _line(counts: Sequence[Count], origin_us: float) -> tuple[float, float]:
    """(value at the origin, slope) of the least squares line."""
    if len(counts) < 2:
        raise ValueError("too few counts for a line")
    n = len(counts)
    times = [c.at_us - origin_us for c in counts]
    values = [c.payload_bytes - counts[0].payload_bytes for c in counts]
    time, value = sum(times) / n, sum(values) / n
    slope = sum((t - time) * (v - value) for t, v in zip(times, values, strict=True)) / sum((t - time) ** 2 for t in times)
    return value - slope * time + counts[0].payload_bytes, slope
