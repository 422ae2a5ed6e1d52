# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals of a mean over few samples: Student's t, without a statistics library."""

from collections.abc import Sequence
from math import atan, cos, pi, sin, sqrt


def mean_with_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float | None]:
    """(mean, half the width of its confidence interval); None for fewer than two samples."""
    n = len(samples)
    mean = sum(samples) / n
    if n < 2:
        return mean, None
    deviation = sqrt(sum((sample - mean) ** 2 for sample in samples) / (n - 1))
    return mean, quantile(n - 1, confidence) * deviation / sqrt(n)


def quantile(freedom: int, confidence: float) -> float:
    """t such that a t-distributed number lies in [-t, t] with probability `confidence` (0 < confidence < 1)."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: int) -> float:
    """P(|T| <= t): for whole degrees of freedom a finite sum (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    square = cos(angle) ** 2
    odd = freedom % 2 == 1
    term = cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= (k - 1) / k * square
        total += term
    return (angle + sin(angle) * total) * 2 / pi if odd else sin(angle) * total
