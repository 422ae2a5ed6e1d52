# SPDX-License-Identifier: Apache-2.0
"""Section 3.3 of Veeraraghavan et al. 2004: VBLS against FBLS and packet switching on one link, by load.

Poisson arrivals, immediate requests, bounded Pareto sizes (shape 1.1, 500 MB to 100 GB, 1 MB = 1e6 bytes), Rmax of 1, 5 or 10 channels with
probabilities 0.3, 0.3 and 0.4, a link of 100 channels of 10 Gb/s. Normalized delay: sum(F d) / sum(F) over the files of one Rmax.
The paper prints curves and no figures, neither the number of files nor what of the beginning it leaves out: here all files count.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from broker.core.scans import Int64Array
from broker.core.units import US_PER_S
from broker.simulate.distributions import Float64Array
from broker.simulate.packets import delays_s
from broker.simulate.single_link import fbls_finishes, vbls_finishes
from broker.simulate.specification import PAPER_SIZES
from broker.simulate.student import mean_with_interval
from broker.simulate.workload import Stream, choose, poisson_arrivals, uniform

CHANNEL_BPS = 10_000_000_000
LINK_BPS = 100 * CHANNEL_BPS
CLASSES = (1, 5, 10)  # Rmax in channels
WEIGHTS = (0.3, 0.3, 0.4)

LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SEEDS = (1, 2, 3, 4, 5)
REQUESTS = 30_000


class Files(NamedTuple):
    """In order of arrival."""

    arrivals_us: Int64Array
    bits: Int64Array
    channels: Int64Array

    @property
    def rate_bps(self) -> Int64Array:
        """The highest rate of each file, bit/s."""
        return self.channels * CHANNEL_BPS


class Point(NamedTuple):
    """One run: a load and a seed, the same files for all schemes."""

    load: float
    seed: int
    requests: int


# (scheme, Rmax in channels) -> normalized delay in seconds; no entry where no file has that Rmax.
Delays = Mapping[tuple[str, int], float]


class Result(NamedTuple):
    """`normalized_delay_s`: the mean over the seeds, None where no file has that Rmax; `ci95_s`: half its 95 % confidence interval."""

    load: float
    scheme: str
    rmax_channels: int
    normalized_delay_s: float | None
    ci95_s: float | None


def draw_files(point: Point) -> Files:
    """The files of one point, drawn from its seed."""
    per_s = point.load * LINK_BPS / 8 / PAPER_SIZES.mean_bytes
    sizes = PAPER_SIZES.at(uniform(point.seed, Stream.SIZES, point.requests))
    classes = choose(uniform(point.seed, Stream.RATES, point.requests), WEIGHTS)
    arrivals = poisson_arrivals(point.seed, point.requests, per_s)
    return Files(arrivals, sizes * 8, np.array(CLASSES, np.int64)[classes])


def _vbls(files: Files) -> Float64Array:
    # Whole channels, as in the paper. In single bit/s it is the same: all rates of the link and of the files are whole channels.
    finishes = vbls_finishes(files.arrivals_us, files.bits, files.rate_bps, LINK_BPS, CHANNEL_BPS)
    return (finishes - files.arrivals_us) / US_PER_S


def _fbls(files: Files) -> Float64Array:
    return (fbls_finishes(files.arrivals_us, files.bits, files.rate_bps, LINK_BPS) - files.arrivals_us) / US_PER_S


def _ps(files: Files) -> Float64Array:
    return delays_s(files.arrivals_us, files.bits, files.rate_bps, LINK_BPS)


SCHEMES: Mapping[str, Callable[[Files], Float64Array]] = {"vbls": _vbls, "fbls": _fbls, "ps": _ps}


def measure(point: Point) -> Delays:
    """Normalized delays of one run."""
    files = draw_files(point)
    bits = files.bits.astype(np.float64)
    found = {}
    for scheme, delays in SCHEMES.items():
        weighted = bits * delays(files)
        for channels in CLASSES:
            mine = files.channels == channels
            if mine.any():
                found[scheme, channels] = float(weighted[mine].sum() / bits[mine].sum())
    return found


def points(loads: Iterable[float], seeds: Sequence[int], requests: int) -> list[Point]:
    """Every load with every seed."""
    return [Point(load, seed, requests) for load in loads for seed in seeds]


def summarise(runs: Sequence[tuple[Point, Delays]]) -> list[Result]:
    """Means over the seeds, in the order of the loads."""
    results = []
    for load in dict.fromkeys(point.load for point, _ in runs):
        here = [delays for point, delays in runs if point.load == load]
        for scheme in SCHEMES:
            for channels in CLASSES:
                samples = [delays[scheme, channels] for delays in here if (scheme, channels) in delays]
                mean, interval = mean_with_interval(samples) if samples else (None, None)
                results.append(Result(load, scheme, channels, mean, interval))
    return results
