# SPDX-License-Identifier: Apache-2.0
"""Student's t against its density, integrated."""

from math import gamma, pi, sqrt

import numpy as np
import pytest

from broker.simulate.student import mean_with_interval, quantile


def density(t: np.ndarray, freedom: int) -> np.ndarray:
    return gamma((freedom + 1) / 2) / (sqrt(freedom * pi) * gamma(freedom / 2)) * (1 + t**2 / freedom) ** (-(freedom + 1) / 2)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8, 9, 29, 30, 99])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_quantile_encloses_its_share(freedom: int, confidence: float) -> None:
    t = quantile(freedom, confidence)
    edges = np.linspace(-t, t, 400_001)
    assert (density((edges[1:] + edges[:-1]) / 2, freedom) * np.diff(edges)).sum() == pytest.approx(confidence, abs=1e-8)


def test_interval() -> None:
    assert quantile(4, 0.95) == pytest.approx(2.776445, abs=1e-6)  # printed in every table
    mean, half = mean_with_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean == 3
    assert half == pytest.approx(2.776445 * sqrt(2.5 / 5), rel=1e-6)
    assert mean_with_interval([7.0]) == (7.0, None)
    assert mean_with_interval([7.0, 7.0]) == (7.0, 0.0)
