# SPDX-License-Identifier: Apache-2.0
"""PS as a fluid against packets, one after the other; against queueing theory; and its replica balance."""

import heapq
from collections.abc import Sequence
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.simulate.packets import File, Output, Service, delays_s, through_network
from broker.simulate.single_link import fbls_finishes, vbls_finishes
from broker.simulate.workload import Stream, poisson_arrivals, uniform
from tests.core.grid import cases

PACKET = 1.0  # bits; files have some hundreds


def served(at: float, bits: float, capacity: Sequence[tuple[float, float]]) -> float:
    """When a server that begins at `at` is through with `bits`: step by step over its capacity."""
    for (begin, rate), (end, _) in zip(capacity, [*capacity[1:], (float("inf"), 0.0)], strict=True):
        if end <= at:
            continue
        start = max(at, begin)
        if rate > 0 and bits <= rate * (end - start):
            return start + bits / rate
        bits -= rate * (end - start)
    return float("inf")


def packet_by_packet(files: Sequence[File], capacities: dict[str, list[tuple[float, float]]]) -> list[float]:
    """Every packet of every file through a first-in first-out queue at each link; when the last one of each file is through.

    A packet goes on to the next link once all of it has left the one before.
    """
    order = count()
    events: list[tuple[float, int, int, int, int]] = []
    for i, file in enumerate(files):
        packets = round(file.bits / PACKET)
        for k in range(packets):
            # The k-th packet is there when its last bit is, as sent at a constant rate.
            heapq.heappush(events, (file.begin_s + (k + 1) * PACKET / file.rate_bps, next(order), i, k, 0))
    free = dict.fromkeys(capacities, 0.0)
    finishes = [0.0] * len(files)
    while events:
        at, _, i, k, hop = heapq.heappop(events)
        link = files[i].path[hop]
        free[link] = done = served(max(at, free[link]), PACKET, capacities[link])
        if hop + 1 < len(files[i].path):
            heapq.heappush(events, (done, next(order), i, k, hop + 1))
        else:
            finishes[i] = max(finishes[i], done)
    return finishes


def service(steps: Sequence[tuple[float, float]]) -> Service:
    return Service(np.array([begin for begin, _ in steps]), np.array([rate for _, rate in steps]))


one_file = st.tuples(
    st.floats(0, 5).map(lambda t: round(t, 3)),
    st.integers(1, 300).map(float),
    st.sampled_from([20.0, 50.0, 100.0, 300.0]),
)
later_steps = st.lists(
    st.tuples(st.floats(0.1, 8).map(lambda t: round(t, 3)), st.sampled_from([0.0, 30.0, 100.0, 250.0])), max_size=4
)


@cases(100)
@given(st.lists(one_file, min_size=1, max_size=8), later_steps)
def test_one_link_against_packets(drawn: list[tuple[float, float, float]], later: list[tuple[float, float]]) -> None:
    steps = [(0.0, 100.0), *sorted(dict(later).items()), (20.0, 100.0)]
    files = [File(("L",), begin, bits, rate) for begin, bits, rate in drawn]
    lasts, _ = through_network(files, {"L": service(steps)})
    # A packet of each file may be ahead of or behind its fluid.
    grain = (len(files) + 1) * PACKET
    for fluid, packets in zip(lasts.tolist(), packet_by_packet(files, {"L": steps}), strict=True):
        assert packets <= served(fluid, grain, steps) + 1e-6
        assert fluid <= served(packets, grain, steps) + 1e-6


PATHS = [("L0", "L1"), ("L1", "L2"), ("L2", "L0"), ("L0", "L1", "L2"), ("L1",)]


@cases(100)
@given(
    st.lists(st.tuples(one_file, st.sampled_from(PATHS)), min_size=1, max_size=6),
    st.lists(st.sampled_from([50.0, 100.0, 200.0]), min_size=3, max_size=3),
    later_steps,
)
def test_network_against_packets(
    drawn: list[tuple[tuple[float, float, float], tuple[str, ...]]], rates: list[float], later: list[tuple[float, float]]
) -> None:
    """Links that feed each other in a circle; one of them changes, and pauses."""
    steps = {f"L{i}": [(0.0, rate)] for i, rate in enumerate(rates)}
    steps["L1"] += [*sorted(dict(later).items()), (20.0, 100.0)]
    files = [File(path, *numbers) for numbers, path in drawn]
    lasts, _ = through_network(files, {name: service(each) for name, each in steps.items()})
    # Each link adds its packets to the difference, and on the way a difference may cost the time of a pause.
    grain = 3 * (len(files) + 2) * PACKET
    for file, fluid, packets in zip(files, lasts.tolist(), packet_by_packet(files, steps), strict=True):
        slack = grain / min(*rates, 30)
        assert packets <= max(served(fluid, grain, steps[link]) for link in ("L1", *file.path)) + slack
        assert fluid <= max(served(packets, grain, steps[link]) for link in ("L1", *file.path)) + slack


@cases(60)
@given(st.lists(one_file, min_size=1, max_size=8))
def test_all_bits_leave_and_never_faster_than_the_link(drawn: list[tuple[float, float, float]]) -> None:
    """Links in a circle, each file over two of them."""
    names = ["L0", "L1", "L2"]
    files = [File((names[i % 3], names[(i + 1) % 3]), begin, bits, rate) for i, (begin, bits, rate) in enumerate(drawn)]
    lasts, outputs = through_network(files, {name: service([(0.0, 100.0)]) for name in names})
    assert np.isfinite(lasts).all()
    for name, output in outputs.items():
        asked = sum(file.bits for file in files if name in file.path)
        assert carried(output) == pytest.approx(asked, rel=1e-6)
        assert output.bps.max() <= 100 * (1 + 1e-9)


def carried(output: Output) -> float:
    assert output.bps[-1] == pytest.approx(0, abs=1e-6)
    return float((output.bps[:-1] * np.diff(output.begin_s)).sum())


def test_alone() -> None:
    """The narrower of Rmax and the link decides, and nothing ever comes through a link that is down for good."""
    slow = File(("L",), 3.0, 1000.0, 50.0)
    fast = File(("L",), 100.0, 1000.0, 5000.0)
    lasts, _ = through_network([slow, fast], {"L": service([(0.0, 100.0)])})
    assert lasts.tolist() == pytest.approx([23.0, 110.0])
    lasts, _ = through_network([slow], {"L": service([(0.0, 100.0), (10.0, 0.0)])})
    assert lasts.tolist() == [float("inf")]
    lasts, _ = through_network([slow], {"L": service([(0.0, 100.0), (10.0, 0.0), (60.0, 100.0)])})
    assert lasts.tolist() == pytest.approx([66.5])  # 350 bits by 10 s, 650 wait until 60 s


def test_nothing_comes_through_a_pause() -> None:
    """The first link carries nothing from 2 s to 10 s, so whoever joins at the second one has it alone for that time."""
    links = {"L1": service([(0.0, 100.0), (2.0, 0.0), (10.0, 100.0)]), "L2": service([(0.0, 100.0)])}
    lasts, outputs = through_network([File(("L1", "L2"), 0.0, 1000.0, 50.0), File(("L2",), 2.0, 800.0, 100.0)], links)
    # 900 bits are left of the first file at 10 s; of these 400 wait, and 500 come until 20 s.
    assert lasts.tolist() == pytest.approx([20.0, 10.0])
    assert carried(outputs["L2"]) == pytest.approx(1800)


@pytest.mark.parametrize(("load", "scatter"), [(0.3, 0.0), (0.5, 0.0), (0.7, 0.0), (0.5, 1.0)])
def test_pollaczek_khinchine(load: float, scatter: float) -> None:
    """When every file takes the whole link, all three schemes are one queue: M/D/1, or M/M/1 with exponential sizes.

    Mean time in system: E[S] + rate E[S^2] / (2 (1 - load)).
    """
    count_, capacity, mean_bits = 400_000, 10**9, 8 * 10**9
    arrivals = poisson_arrivals(11, count_, load * capacity / mean_bits)
    uniforms = uniform(11, Stream.SIZES, count_)
    bits = np.full(count_, mean_bits, np.int64)
    if scatter:
        bits = np.rint(-np.log1p(-uniforms) * mean_bits).astype(np.int64) + 1
    service_s = mean_bits / capacity
    expected = service_s + load / service_s * (1 + scatter) * service_s**2 / (2 * (1 - load))
    rates = np.full(count_, capacity, np.int64)
    for finishes in (vbls_finishes(arrivals, bits, rates, capacity), fbls_finishes(arrivals, bits, rates, capacity)):
        assert ((finishes - arrivals) / 1e6).mean() == pytest.approx(expected, rel=0.02)
    # At a thousand times the link's rate files arrive all but at once. (At the link's rate they mix, and leave later than one by one.)
    assert delays_s(arrivals, bits, rates * 1000, capacity).mean() == pytest.approx(expected, rel=0.02)
