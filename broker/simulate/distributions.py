# SPDX-License-Identifier: Apache-2.0
"""Distributions of file sizes, in bytes. Randomness is an argument: `at` maps numbers that are uniform in [0, 1) to sizes.

So the same numbers give the same quantiles of any distribution, and simulations that differ in one thing alone can be compared.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from broker.core.scans import Int64Array
from broker.core.units import MAX_VOLUME_BYTES

Float64Array = NDArray[np.float64]


class Sizes(Protocol):
    """A distribution of file sizes."""

    @property
    def mean_bytes(self) -> float:
        """The expected size."""

    def at(self, uniform: Float64Array) -> Int64Array:
        """Quantiles, in whole bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Pareto:
    """Bounded Pareto (Veeraraghavan et al. 2004, equation 2): few files hold most of the bytes."""

    shape: float
    least_bytes: int
    most_bytes: int

    @property
    def mean_bytes(self) -> float:
        """The expected size: the mean of the bounded distribution."""
        alpha, low, high = self.shape, float(self.least_bytes), float(self.most_bytes)
        if low == high:
            return low
        share = -np.expm1(alpha * np.log(low / high))  # 1 - (k/p)^alpha, without losing digits when k is close to p
        if alpha == 1:
            return float(low / share * np.log(high / low))
        # The integral of x f(x) from k to p.
        return float(alpha * low / share * np.expm1((1 - alpha) * np.log(high / low)) / (1 - alpha))

    def at(self, uniform: Float64Array) -> Int64Array:
        """Quantiles at `uniform`, numbers in [0, 1), in whole bytes."""
        share = -np.expm1(self.shape * np.log(self.least_bytes / self.most_bytes))
        sizes = self.least_bytes * np.exp(-np.log1p(-uniform * share) / self.shape)
        return _whole(np.clip(sizes, self.least_bytes, self.most_bytes))


@dataclass(frozen=True, slots=True)
class Exponential:
    """Exponentially distributed sizes."""

    mean_bytes: int

    def at(self, uniform: Float64Array) -> Int64Array:
        """Quantiles at `uniform`, numbers in [0, 1), in whole bytes."""
        return _whole(-np.log1p(-uniform) * self.mean_bytes)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Files of one size."""

    mean_bytes: int

    def at(self, uniform: Float64Array) -> Int64Array:
        """The size, as often as there are numbers."""
        return np.full(len(uniform), self.mean_bytes, np.int64)


def _whole(sizes: Float64Array) -> Int64Array:
    return np.clip(np.rint(sizes), 1, MAX_VOLUME_BYTES).astype(np.int64)
