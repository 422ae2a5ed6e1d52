# SPDX-License-Identifier: Apache-2.0
"""A batch during planning: the requests, the network and calendars, the solver, and the best answers so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.planners.optimal.expansion import Expansion, expand
from broker.planners.optimal.measure import Score, Yardstick
from broker.planners.optimal.solver import Solver
from broker.planners.signature import Task

Progress = Callable[[float, str], None]


@dataclass
class Batch:
    """`joint`: the positions in `requests` of those that are planned together by programs, each with its lanes in `lanes`.

    The others have a holding time, or no path at all; their answers are in `settled` and booked in `calendars`.
    """

    requests: Sequence[Request]
    network: Network
    calendars: Mapping[str, Calendar]
    lanes: dict[int, Sequence[Task]]
    settled: dict[int, Plan | Refusal]
    horizon_us: int
    yardstick: Yardstick
    solver: Solver
    progress: Progress
    best: list[Plan | Refusal] = field(default_factory=list)
    best_score: Score | None = None
    bound: float | None = None  # in the units of the yardstick's value

    @property
    def joint(self) -> list[int]:
        """Indices of the requests that are planned together."""
        return sorted(self.lanes)

    @property
    def provable(self) -> bool:
        """True if a bound for the joint requests is one for the whole batch: no plan for another request was fixed beforehand."""
        return not any(isinstance(answer, Plan) for answer in self.settled.values())

    def close(self) -> None:
        """Settle joint requests without a window: those without a deadline for which no list planner found a finish."""
        for i in self.joint:
            if self.requests[i].deadline_us is None and self.horizon_us <= self.requests[i].not_before_us:
                self.settled[i] = self.best[i]
                del self.lanes[i]

    def expand(self, indices: Sequence[int], more_times: Sequence[int] = ()) -> Expansion:
        """The time-expanded network of these requests."""
        requests = [self.requests[i] for i in indices]
        lanes = [self.lanes[i] for i in indices]
        return expand(requests, lanes, self.horizon_us, self.network, self.calendars, more_times)

    def whole(self, answers: Mapping[int, Plan | Refusal]) -> list[Plan | Refusal]:
        """Answers to the whole batch, given answers to some of its joint requests."""
        left_out = Refusal("infeasible", "the batch does not fit together with this transfer in it", "deadline")
        return [answers.get(i) or self.settled.get(i, left_out) for i in range(len(self.requests))]

    def offer(self, answers: list[Plan | Refusal]) -> bool:
        """Keep these answers if they are better than the best so far."""
        score = self.yardstick.score(answers)
        if self.best_score is not None and score >= self.best_score:
            return False
        self.best, self.best_score = answers, score
        return True
