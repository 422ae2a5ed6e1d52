# SPDX-License-Identifier: Apache-2.0
"""Many requests on one network: plan, verify, book. This is `bwb plan` without the files.

List planners take the requests in the caller's order, and each request sees the capacity that its predecessors left; joint planners
take them together. No function here reads a clock, so the same requests on the same network get the same answer.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Network
from broker.core.plan import Plan, Refusal, verify
from broker.core.request import Request
from broker.core.segments import Segment
from broker.planners.offers import CounterOffer, find_counter_offer
from broker.planners.signature import Planner, is_joint


@dataclass(frozen=True, slots=True)
class Decision:
    """A request with its plan, or with the refusal, the binding link and a counter-offer."""

    request: Request
    answer: Plan | Refusal
    offer: CounterOffer | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """All decisions in the order of the requests.

    `congestion_factor`: the largest share of a link's capacity booked at any instant. `makespan_us`: from the earliest `not_before`
    of all requests to the last finish; it compares planners on one set of requests.
    """

    decisions: tuple[Decision, ...]
    congestion_factor: Fraction
    makespan_us: int

    @property
    def plans(self) -> list[Plan]:
        """The plans of the admitted requests."""
        return [decision.answer for decision in self.decisions if isinstance(decision.answer, Plan)]


def plan_all(planner: Planner, requests: Sequence[Request], network: Network) -> Schedule:
    """Plan on an empty network, in file order or jointly, depending on the planner. Raises PlanRejected when a plan breaks a rule."""
    calendars = {link_id: Calendar(link.capacity()) for link_id, link in network.links.items()}
    together = planner.plan_together(requests, network, calendars) if is_joint(planner) else None
    decisions = []
    for index, request in enumerate(requests):
        answer = planner.plan(request, network, calendars) if together is None else together[index]
        if isinstance(answer, Refusal):
            # The plans of a joint planner are all fixed, booked here or not yet, so counter-offers beside them are computed at the
            # end.
            offer = None if together is not None else find_counter_offer(planner, request, network, calendars)
            decisions.append(Decision(request, answer, offer))
            continue
        verify(request, answer, network.links, calendars)
        for segment in answer.segments:
            for link_id in segment.path:
                calendars[link_id].book(segment.begin_us, segment.end_us, segment.rate_bps)
        decisions.append(Decision(request, answer))
    if together is not None:
        decisions = [
            replace(decision, offer=find_counter_offer(planner, decision.request, network, calendars))
            if isinstance(decision.answer, Refusal)
            else decision
            for decision in decisions
        ]
    plans = [decision.answer for decision in decisions if isinstance(decision.answer, Plan)]
    origin = min((request.not_before_us for request in requests), default=0)
    return Schedule(
        tuple(decisions),
        congestion_factor(plans, network),
        max((plan.finish_us - origin for plan in plans), default=0),
    )


def congestion_factor(plans: Iterable[Plan], network: Network) -> Fraction:
    """The largest share of a link that the plans book at any instant.

    The share is relative to the link's `capacity_bps` (as payload), not to its free capacity.
    """
    booked: dict[str, list[Segment]] = defaultdict(list)
    for plan in plans:
        for segment in plan.segments:
            for link_id in segment.path:
                booked[link_id].append(segment)
    shares = []
    for link_id, segments in booked.items():
        link = network.links[link_id]
        shares.append(Fraction(_peak(segments), link.payload_bps(link.capacity_bps)))
    return max(shares, default=Fraction(0))


def _peak(segments: Sequence[Segment]) -> int:
    """Largest sum of rates at any instant: on a calendar without capacity, the free rate is the negative sum of the bookings."""
    calendar = Calendar([(DISTANT_PAST_US, 0)])
    begins, ends, rates = (np.array(column, np.int64) for column in list(zip(*segments, strict=True))[:3])
    calendar.book_all(begins, ends, rates)
    return -int(calendar.free[: calendar.n].min())
