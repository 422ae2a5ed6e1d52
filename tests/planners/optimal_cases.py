# SPDX-License-Identifier: Apache-2.0
"""Random batches for the joint planner, from one seed each, and oracles that know nothing of linear programs."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, verify
from broker.core.request import Options, Request
from broker.planners.optimal import Solution

MICROBITS_PER_BYTE = 8_000_000
BYTE_PER_US = 8_000_000  # bit/s: a byte in each microsecond, so that plans of whole bytes have no remainders


def empty(network: Network) -> dict[str, Calendar]:
    return {link.id: Calendar(link.capacity()) for link in network.links.values()}


def random_case(seed: int, plain: bool = False) -> tuple[Network, dict[str, Calendar], list[Request]]:
    """A network of two to five nodes with bookings on it, and up to eight requests.

    `plain`: nothing that a linear program does not know (channels, slots, limits on rows, least rates, holding times).
    """
    random = np.random.default_rng(seed)
    nodes, unit = int(random.integers(2, 6)), int(random.choice([1000, 1_000_000, BYTE_PER_US, 10**9]))
    pairs = [(a, b) for a in range(nodes) for b in range(nodes) if a != b and random.random() < 0.6] or [(0, 1)]
    links = []
    for a, b in pairs:
        capacity = int(random.integers(1, 10)) * unit
        channel = max(1, int(unit // random.choice([1, 2, 3, 10]))) if not plain and random.random() < 0.15 else None
        slot = int(random.choice([2, 10, 1000])) if not plain and random.random() < 0.15 else 1
        lowered = ((int(random.integers(0, 5000)), capacity // 2), (int(random.integers(5000, 10_000)), capacity))
        available = lowered if random.random() < 0.2 else ()
        links.append(Link(f"{a}-{b}", f"N{a}", f"N{b}", capacity, channel_bps=channel, slot_us=slot, available=available))
    network, span = Network(links), 10 ** int(random.integers(4, 8))
    calendars = empty(network)
    for link in links:
        for _ in range(int(random.integers(0, 4)) if random.random() < 0.5 else 0):
            begin = int(random.integers(0, span))
            end, rate = begin + int(random.integers(1, span)), int(random.integers(1, link.capacity_bps))
            if calendars[link.id].lowest(begin, end) >= rate:
                calendars[link.id].book(begin, end, rate)
    requests = [_random_request(random, i, nodes, unit, span, plain) for i in range(int(random.integers(1, 9)))]
    return network, calendars, requests


def _random_request(random: np.random.Generator, i: int, nodes: int, unit: int, span: int, plain: bool) -> Request:
    source, destination = random.choice(nodes, 2, replace=False)
    begin = int(random.integers(0, span))
    end = begin + int(random.integers(1, span))
    if random.random() < 0.2:
        begin, end = 0, span
    volume: int | None = max(1, int(unit * (end - begin) / MICROBITS_PER_BYTE * random.random() * random.choice([0.2, 1, 2])))
    high = int(random.integers(1, 5 * unit + 2)) if random.random() < 0.2 else None
    low = min(int(random.integers(1, unit + 2)), high or 10**15) if not plain and random.random() < 0.15 else None
    duration = None
    if not plain and random.random() < 0.07:
        volume, duration, low = None, int(random.integers(1, span)), low or 1
    options = Options(
        paths=int(random.integers(1, 5)),
        split=bool(random.random() < 0.5),
        most_segments=int(random.integers(1, 4)) if not plain and random.random() < 0.1 else None,
        shortest_segment_us=int(random.integers(1, span)) if not plain and random.random() < 0.1 else None,
    )
    deadline = None if random.random() < 0.12 else end
    priority = int(random.integers(-2, 3))
    return Request(
        f"r{i}", f"N{source}", f"N{destination}", volume, begin, high, low, deadline, duration, priority, options
    )  # fmt: skip


def assert_fits(solution: Solution, requests: Sequence[Request], network: Network, calendars: Mapping[str, Calendar]) -> None:
    """Each plan is right, and all fit side by side: booked one after the other, in the order of the requests."""
    sheet = deepcopy(dict(calendars))
    assert len(solution.answers) == len(requests)
    for request, answer in zip(requests, solution.answers, strict=True):
        if isinstance(answer, Plan):
            verify(request, answer, network.links, sheet)
            for begin, end, rate, path in answer.segments:
                for link_id in path:
                    sheet[link_id].book(begin, end, rate)


def one_link_case(seed: int, most: int = 7) -> tuple[Calendar, list[Request]]:
    """One link of a byte per microsecond from A to B, partly booked, and requests of whole bytes with any windows, often too many."""
    random = np.random.default_rng(seed)
    capacity = int(random.integers(1, 5))
    calendar = Calendar(Link("L", "A", "B", capacity * BYTE_PER_US).capacity())
    for _ in range(int(random.integers(0, 4))):
        begin = int(random.integers(0, 100))
        end, rate = begin + int(random.integers(1, 50)), int(random.integers(0, capacity)) * BYTE_PER_US
        if rate and calendar.lowest(begin, end) >= rate:
            calendar.book(begin, end, rate)
    requests = []
    for i in range(int(random.integers(1, most + 1))):
        begin = int(random.integers(0, 100))
        end = begin + int(random.integers(1, 100))
        # Volumes are multiples of all rates that may be free, so that whole microseconds suffice.
        volume = 12 * max(1, int(capacity * (end - begin) * random.random() / 12))
        requests.append(Request(f"r{i}", "A", "B", volume, begin, deadline_us=end))
    return calendar, requests


def one_link_network(calendar: Calendar) -> Network:
    return Network([Link("L", "A", "B", calendar.capacity[0][1])])


def booked(calendar: Calendar) -> list[tuple[int, int]]:
    return [(begin, calendar.capacity[0][1] - free) for begin, free in calendar.steps()]


def room(calendar: Calendar, begin: int, end: int, share: Fraction) -> Fraction:
    """Microbits that one link has for others on [begin, end) below `share` of its capacity."""
    whole = calendar.capacity[0][1] * share
    total = Fraction(0)
    steps = [*booked(calendar), (10**18, 0)]
    for (start, taken), (stop, _) in pairwise(steps):
        length = min(stop, end) - max(start, begin)
        if length > 0:
            total += max(whole - taken, Fraction(0)) * length
    return total


def fits(calendar: Calendar, requests: Sequence[Request], share: Fraction = Fraction(1), grain_us: int = 0) -> bool:
    """Can one link carry them all below a share? So it is when no interval has to hold more than there is room (the demand test behind
    YDS and preemptive EDF). Real numbers; `grain_us` is what each request may lose to whole microseconds."""
    lost = calendar.capacity[0][1] * grain_us
    for begin in {request.not_before_us for request in requests}:
        for end in {request.deadline_us for request in requests}:
            assert end is not None
            inside = [r for r in requests if begin <= r.not_before_us and (r.deadline_us or 0) <= end]
            if inside and sum((r.volume_bytes or 0) * MICROBITS_PER_BYTE + lost for r in inside) > room(
                calendar, begin, end, share
            ):
                return False
    return True


def least_share(calendar: Calendar, requests: Sequence[Request]) -> Fraction:
    """The least congestion of one link, rates as real numbers, from below: maximum density where nothing is booked beforehand."""
    low, high = Fraction(0), Fraction(1)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(calendar, requests, middle) else (middle, high)
    return low


def best_subset(calendar: Calendar, requests: Sequence[Request], by_volume: bool, grain_us: int = 0) -> int:
    """Exhaustive: most requests, or most volume, that one link can carry."""
    best = 0
    for size in range(len(requests) + 1):
        for some in combinations(requests, size):
            worth = sum(request.volume_bytes or 0 for request in some) if by_volume else size
            if worth > best and fits(calendar, some, grain_us=grain_us):
                best = worth
    return best
