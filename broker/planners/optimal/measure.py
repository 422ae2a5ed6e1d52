# SPDX-License-Identifier: Apache-2.0
"""The exact value of plans under each objective, from their integers; independent of any solver."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.core.segments import Segment
from broker.core.units import US_PER_S

Objective = Literal["congestion", "admitted", "volume", "completion"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
Answers = Sequence[Plan | Refusal]
Score = tuple[int | Fraction, ...]


@dataclass(frozen=True, slots=True)
class Yardstick:
    """Compares answers to one batch. Smaller scores are better; the first numbers count most."""

    objective: Objective
    requests: Sequence[Request]
    network: Network
    calendars: Mapping[str, Calendar]  # before the batch

    def score(self, answers: Answers) -> Score:
        """congestion and completion: first as many requests as possible, because otherwise refusing everything would be best."""
        served = sum(isinstance(answer, Plan) for answer in answers)
        if self.objective == "volume":
            return -self.volume(answers), -served
        if self.objective == "admitted":
            return -served, -self.volume(answers)
        return -served, self.value(answers)

    def value(self, answers: Answers) -> int | Fraction:
        """The objective itself: a share, a number of requests, bytes, or weighted seconds."""
        match self.objective:
            case "congestion":
                plans = [answer for answer in answers if isinstance(answer, Plan)]
                return congestion(plans, self.network, self.calendars)
            case "admitted":
                return sum(isinstance(answer, Plan) for answer in answers)
            case "volume":
                return self.volume(answers)
            case "completion":
                return sum(
                    (
                        weight(request) * Fraction(answer.finish_us - request.not_before_us, US_PER_S)
                        for request, answer in zip(self.requests, answers, strict=True)
                        if isinstance(answer, Plan)
                    ),
                    Fraction(0),
                )

    def volume(self, answers: Answers) -> int:
        """Bytes of the requests that are served; for a holding time, the volume of its plan."""
        return sum(
            answer.volume_bytes if request.volume_bytes is None else request.volume_bytes
            for request, answer in zip(self.requests, answers, strict=True)
            if isinstance(answer, Plan)
        )


def weight(request: Request) -> Fraction:
    """The weight of one second of waiting in `completion`: 1 at priority 0, 1 + p at priority p, and 1 / (1 + p) at priority -p."""
    return Fraction(1 + request.priority) if request.priority >= 0 else Fraction(1, 1 - request.priority)


def congestion(plans: Sequence[Plan], network: Network, calendars: Mapping[str, Calendar]) -> Fraction:
    """The largest share of a link's capacity booked at any instant at which these plans book something on that link.

    Earlier bookings count too, except on links and at times that the plans do not use. On empty calendars this is
    `sequence.congestion_factor`.
    """
    on: dict[str, list[Segment]] = defaultdict(list)
    for plan in plans:
        for segment in plan.segments:
            for link_id in segment.path:
                on[link_id].append(segment)
    shares = [
        Fraction(_fullest(segments, calendars[link_id]), network.links[link_id].payload_bps(network.links[link_id].capacity_bps))
        for link_id, segments in on.items()
    ]
    return max(shares, default=Fraction(0))


def _fullest(segments: Sequence[Segment], calendar: Calendar) -> int:
    """Total bit/s booked at the fullest instant of `segments`."""
    begins, ends, rates = (np.array(column, np.int64) for column in list(zip(*segments, strict=True))[:3])
    instants = np.concatenate((begins, ends))
    order = np.argsort(instants, kind="stable")
    edges, first = np.unique(instants[order], return_index=True)
    level = np.cumsum(np.add.reduceat(np.concatenate((rates, -rates))[order], first))
    capacity_times, capacity = (np.array(column, np.int64) for column in zip(*calendar.capacity, strict=True))
    changes = np.concatenate((calendar.times[: calendar.n], capacity_times))
    cuts = np.union1d(edges, changes[(changes > edges[0]) & (changes < edges[-1])])[:-1]
    new = level[np.searchsorted(edges, cuts, "right") - 1]
    free = calendar.free[: calendar.n][np.searchsorted(calendar.times[: calendar.n], cuts, "right") - 1]
    before = capacity[np.searchsorted(capacity_times, cuts, "right") - 1] - free
    return int((new + np.maximum(before, 0))[new > 0].max())
