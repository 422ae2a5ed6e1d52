# SPDX-License-Identifier: Apache-2.0
"""Networks and batches of requests for planners that plan together."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal, verify
from broker.core.request import Options, Request

MEGA = 1_000_000
BYTE_PER_US = 8 * MEGA  # bit/s
NODES = "ABCD"


@dataclass(frozen=True)
class Batch:
    network: Network
    requests: tuple[Request, ...]

    def calendars(self) -> dict[str, Calendar]:
        return {link.id: Calendar(link.capacity()) for link in self.network.links.values()}


rates = st.one_of(st.integers(1, 6).map(lambda units: units * BYTE_PER_US), st.integers(MEGA, 50 * MEGA))


@st.composite
def links(draw: st.DrawFn, grids: bool) -> list[Link]:
    """A line through all nodes and some links more; `grids`: with channels and slots."""
    ends = [(a, b) for a in NODES for b in NODES if a != b]
    chosen = list(pairwise(NODES)) + draw(st.lists(st.sampled_from(ends), max_size=4))
    made = []
    for i, (a, b) in enumerate(chosen):
        capacity = draw(rates)
        steps = draw(st.lists(st.tuples(st.integers(0, 300), st.integers(0, capacity)), max_size=3, unique_by=lambda step: step[0]))
        # The last step carries something, or most batches would never be through.
        available = (*sorted(steps), (301, capacity)) if draw(st.booleans()) else ()
        channel = draw(st.sampled_from([None, None, 4 * MEGA, 7 * MEGA])) if grids else None
        slot = draw(st.sampled_from([1, 1, 2, 3])) if grids else 1
        made.append(Link(f"l{i}", a, b, capacity, channel_bps=channel, slot_us=slot, available=available))
    return made


@st.composite
def batches(draw: st.DrawFn, grids: bool = False, most: int = 10, wishes: bool = True) -> Batch:
    """`wishes`: requests may have deadlines, least rates, several paths and limits, too."""
    network = Network(draw(links(grids)))
    requests = []
    for i in range(draw(st.integers(1, most))):
        source, destination = tuple(draw(st.sampled_from(["AB", "AC", "AD", "BC", "BD", "CD", "AD", "BD"])))
        begin = draw(st.sampled_from([0, 0, 0, 5, 50, 200])) if draw(st.booleans()) else draw(st.integers(0, 300))
        deadline = draw(st.one_of(st.none(), st.none(), st.integers(begin + 1, begin + 400))) if wishes else None
        low, high = sorted((draw(rates), draw(rates)))
        options = Options(
            paths=draw(st.sampled_from([1, 4])),
            split=wishes and draw(st.integers(0, 5)) == 0,
            most_segments=draw(st.sampled_from([None, None, None, None, 2])) if wishes else None,
            shortest_segment_us=draw(st.sampled_from([None, None, None, None, 10])) if wishes else None,
        )
        requests.append(
            Request(
                f"r{i}",
                source,
                destination,
                draw(st.integers(1, 200)),
                begin,
                rate_max_bps=draw(st.sampled_from([None, high])),
                rate_min_bps=draw(st.sampled_from([None, None, None, low // 4])) if wishes else None,
                deadline_us=deadline,
                options=options,
            )
        )
    return Batch(network, tuple(requests))


def fit_side_by_side(batch: Batch, answers: Sequence[Plan | Refusal]) -> None:
    """Raises PlanRejected unless all plans can be booked in the order of the requests."""
    calendars = batch.calendars()
    for request, answer in zip(batch.requests, answers, strict=True):
        if isinstance(answer, Plan):
            verify(request, answer, batch.network.links, calendars)
            for segment in answer.segments:
                for link in segment.path:
                    calendars[link].book(segment.begin_us, segment.end_us, segment.rate_bps)
