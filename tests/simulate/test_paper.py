# SPDX-License-Identifier: Apache-2.0
"""Section 3.3 of the VBLS paper: what issue 3 accepts it by, and that the figures are what they say they are."""

import numpy as np
import pytest

from broker.simulate.packets import delays_s
from broker.simulate.paper import CHANNEL_BPS, CLASSES, LINK_BPS, Point, draw_files, measure, points, summarise
from broker.simulate.single_link import vbls_finishes


@pytest.mark.parametrize("seed", range(1, 9))
def test_vbls_is_packet_switching_and_fbls_is_not(seed: int) -> None:
    found = measure(Point(0.9, seed, 30_000))
    for channels in CLASSES:
        vbls, fbls, ps = (found[scheme, channels] for scheme in ("vbls", "fbls", "ps"))
        assert vbls == pytest.approx(ps, rel=0.03)
        assert fbls > vbls
        assert fbls > ps


def test_files_are_those_of_the_paper() -> None:
    files = draw_files(Point(0.5, 1, 100_000))
    assert files.bits.min() >= 8 * 500_000_000
    assert files.bits.max() <= 8 * 100_000_000_000
    shares = [np.mean(files.channels == channels) for channels in CLASSES]
    assert shares == pytest.approx([0.3, 0.3, 0.4], abs=0.01)
    offered = files.bits.sum() / (files.arrivals_us[-1] / 1e6) / LINK_BPS
    assert offered == pytest.approx(0.5, rel=0.03)  # sizes are heavy-tailed
    assert files.bits.mean() / 8 == pytest.approx(2.27e9, rel=0.03)


def test_whole_channels_or_single_bits_per_second_is_the_same() -> None:
    """The link and every Rmax are whole channels, so gamma always is, and no rate has anything to round."""
    files = draw_files(Point(0.95, 3, 20_000))
    rest = files.arrivals_us, files.bits, files.rate_bps, LINK_BPS
    assert (vbls_finishes(*rest, CHANNEL_BPS) == vbls_finishes(*rest, 1)).all()


def test_loads_share_their_files() -> None:
    low, high = draw_files(Point(0.1, 4, 500)), draw_files(Point(0.9, 4, 500))
    assert (low.bits == high.bits).all()
    assert (low.channels == high.channels).all()
    assert low.arrivals_us == pytest.approx(high.arrivals_us * 9, abs=10)


def test_normalized_delay_by_hand() -> None:
    found = measure(Point(0.9, 5, 400))
    files = draw_files(Point(0.9, 5, 400))
    delays = delays_s(files.arrivals_us, files.bits, files.rate_bps, LINK_BPS)
    for channels in CLASSES:
        mine = [i for i in range(400) if files.channels[i] == channels]
        weighted = sum(int(files.bits[i]) * delays[i] for i in mine)
        assert found["ps", channels] == pytest.approx(weighted / sum(int(files.bits[i]) for i in mine))
        # Nobody is faster than alone.
        alone = sum(int(files.bits[i]) ** 2 for i in mine) / (channels * CHANNEL_BPS) / sum(int(files.bits[i]) for i in mine)
        assert all(found[scheme, channels] >= alone * (1 - 1e-9) for scheme in ("vbls", "fbls", "ps"))


def test_means_and_intervals_over_the_seeds() -> None:
    wanted = points([0.5, 0.9], [1, 2, 3], 200)
    runs = [(point, measure(point)) for point in wanted]
    results = summarise(runs)
    assert [(r.load, r.scheme, r.rmax_channels) for r in results] == [
        (load, scheme, channels) for load in (0.5, 0.9) for scheme in ("vbls", "fbls", "ps") for channels in CLASSES
    ]
    for result in results:
        samples = [delays[result.scheme, result.rmax_channels] for point, delays in runs if point.load == result.load]
        assert result.normalized_delay_s == pytest.approx(sum(samples) / 3)
        assert result.ci95_s == pytest.approx(4.302653 * np.std(samples, ddof=1) / np.sqrt(3))


def test_a_class_without_files_has_no_delay() -> None:
    point = Point(0.5, 1, 1)
    results = summarise([(point, measure(point))])
    assert sum(result.normalized_delay_s is None for result in results) == 6
    assert all(result.ci95_s is None for result in results)
