# SPDX-License-Identifier: Apache-2.0
"""Sizes against their analytical means and distribution functions."""

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.units import MAX_VOLUME_BYTES
from broker.simulate.distributions import Exponential, Fixed, Pareto, Sizes
from broker.simulate.specification import PAPER_SIZES
from broker.simulate.workload import Stream, choose, poisson_arrivals, uniform
from tests.core.grid import cases

BIG = 10**9  # sizes of which rounding to bytes is nothing


def middles(count: int) -> np.ndarray:
    """The middles of `count` equal strips of [0, 1): a mean over them is an integral."""
    return (np.arange(count) + 0.5) / count


@pytest.mark.parametrize(
    "sizes",
    [
        Pareto(1.1, BIG // 2, 100 * BIG),
        Pareto(1.0, BIG, 50 * BIG),
        Pareto(0.5, BIG, 1000 * BIG),
        Pareto(3.0, BIG, 2 * BIG),
        Pareto(2.0, BIG, BIG),
        Exponential(7 * BIG),
        Fixed(3 * BIG),
    ],
)
def test_mean_is_the_integral_of_the_quantiles(sizes: Sizes) -> None:
    assert sizes.at(middles(1_000_000)).mean() == pytest.approx(sizes.mean_bytes, rel=1e-4)


def test_mean_of_the_paper_by_integrating_its_density() -> None:
    alpha, k, p = 1.1, 500e6, 100e9
    edges = np.geomspace(k, p, 2_000_001)
    x = (edges[1:] + edges[:-1]) / 2
    density = alpha * k**alpha * x ** (-alpha - 1) / (1 - (k / p) ** alpha)  # equation 2
    assert (density * np.diff(edges)).sum() == pytest.approx(1, rel=1e-9)
    assert PAPER_SIZES.mean_bytes == pytest.approx((x * density * np.diff(edges)).sum(), rel=1e-9)


@cases(300)
@given(shape=st.floats(0.05, 20), least=st.integers(1, 10**6), ratio=st.floats(1, 1e6), share=st.floats(0, 1, exclude_max=True))
def test_pareto_quantiles_invert_the_distribution_function(shape: float, least: int, ratio: float, share: float) -> None:
    least *= BIG  # whole bytes are no matter then
    most = min(int(least * ratio), MAX_VOLUME_BYTES)
    sizes = Pareto(shape, least, most)
    size = int(sizes.at(np.array([share]))[0])
    assert least <= size <= most
    if most > 1.01 * least:
        found = (1 - (least / size) ** shape) / (1 - (least / most) ** shape)
        assert found == pytest.approx(share, abs=1e-6)


@cases(50)
@given(shape=st.sampled_from([1 - 1e-9, 1 + 1e-9]), ratio=st.floats(1.1, 1e6))
def test_pareto_mean_is_continuous_at_shape_one(shape: float, ratio: float) -> None:
    most = int(BIG * ratio)
    assert Pareto(shape, BIG, most).mean_bytes == pytest.approx(Pareto(1.0, BIG, most).mean_bytes, rel=1e-5)


def test_exponential_quantiles() -> None:
    sizes = Exponential(BIG).at(np.array([0.0, 1 - exp(-1), 1 - exp(-3)]))
    assert sizes.tolist() == pytest.approx([1, BIG, 3 * BIG])  # nothing is smaller than a byte


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_drawn_from_seeds(seed: int) -> None:
    """Within five standard errors."""
    count = 200_000
    drawn = uniform(seed, Stream.SIZES, count)
    assert drawn.mean() == pytest.approx(0.5, abs=5 / np.sqrt(12 * count))
    between = np.diff(poisson_arrivals(seed, count, 50.0)) / 1e6
    assert between.mean() == pytest.approx(0.02, rel=5 / np.sqrt(count))
    assert between.std() == pytest.approx(0.02, rel=0.02)
    shares = np.bincount(choose(uniform(seed, Stream.RATES, count), [0.3, 0.3, 0.4])) / count
    assert shares.tolist() == pytest.approx([0.3, 0.3, 0.4], abs=5 * 0.5 / np.sqrt(count))


def test_streams_differ_and_seeds_repeat() -> None:
    rows = [uniform(seed, stream, 100).tolist() for seed in (1, 2) for stream in Stream]
    assert len({tuple(row) for row in rows}) == len(rows)
    assert uniform(1, Stream.SIZES, 50).tolist() == uniform(1, Stream.SIZES, 100).tolist()[:50]


def test_weights_of_zero_are_never_chosen() -> None:
    edge = np.array([0.0, 0.5, np.nextafter(1, 0)])
    assert choose(edge, [0, 1, 0]).tolist() == [1, 1, 1]
    assert choose(edge, [1, 0, 1, 0]).tolist() == [0, 2, 2]
