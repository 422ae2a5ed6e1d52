# SPDX-License-Identifier: Apache-2.0
"""The outcome of planning a file of requests, and its JSON form (design, section 4)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.cli.patience import Work
from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.core.units import US_PER_S, format_time
from broker.planners import PLANNERS
from broker.planners.offers import CounterOffer
from broker.planners.optimal import DEFAULT_TIME_LIMIT_S, OBJECTIVES, Optimal
from broker.planners.sequence import Decision, Schedule, plan_all
from broker.planners.signature import Calendars


@dataclass(frozen=True)
class Outcome:
    """`more`: additional metrics of this planner. `trouble`: why the answer is not entirely as requested, None if it is."""

    planner: str
    books: bool
    schedule: Schedule
    more: dict[str, Any] = field(default_factory=dict)
    trouble: str | None = None

    @property
    def mean_finish_s(self) -> float | None:
        """Mean time in seconds from `not_before` to the finish, over the admitted requests; None if there are none."""
        waits = [
            decision.answer.finish_us - decision.request.not_before_us
            for decision in self.schedule.decisions
            if isinstance(decision.answer, Plan)
        ]
        return sum(waits) / len(waits) / US_PER_S if waits else None

    @property
    def segments(self) -> int:
        """The total number of rows of all plans."""
        return sum(len(plan.segments) for plan in self.schedule.plans)


def outcome_of(
    name: str, objective: str | None, time_limit_s: float | None, requests: Sequence[Request], network: Network, work: Work[Any]
) -> Outcome:
    """Plan all requests with one planner. Raises PlanRejected when a plan breaks a rule."""
    planner = PLANNERS[name]
    if not isinstance(planner, Optimal):
        return Outcome(name, planner.traits.books, plan_all(planner, requests, network))
    solved = _Solved(objective, time_limit_s, work)
    schedule = plan_all(solved, requests, network)
    return Outcome(name, True, schedule, solved.metrics(), solved.solution.fallback)


class _Solved:
    """`optimal` for one batch; keeps the metrics of its solution."""

    name = Optimal.name
    traits = Optimal.traits

    def __init__(self, objective: str | None, time_limit_s: float | None, work: Work[Any]) -> None:
        chosen = next((each for each in OBJECTIVES if each == objective), OBJECTIVES[0])
        limit = DEFAULT_TIME_LIMIT_S if time_limit_s is None else time_limit_s
        self._planner = Optimal(chosen, limit, work.told, work.cancelled)
        self._alone = Optimal(chosen, limit, None, work.cancelled)

    def plan_together(self, requests: Sequence[Request], network: Network, calendars: Calendars) -> Sequence[Plan | Refusal]:
        self.solution = self._planner.solve(requests, network, calendars)
        return self.solution.answers

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:
        return self._alone.plan(request, network, calendars, fewest_rows)

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        return self._alone.largest_volume(request, network, calendars)

    def metrics(self) -> dict[str, Any]:
        said = self.solution
        value = said.value if isinstance(said.value, int) else float(said.value)
        return {"objective": said.objective, "value": value, "bound": said.bound, "gap": said.gap, "solver": said.solver}


# -- as JSON ---------------------------------------------------------------------------------------------------------------------------


def as_document(outcome: Outcome) -> dict[str, Any]:
    """The JSON form of `bwb plan`."""
    schedule = outcome.schedule
    return {
        "planner": outcome.planner,
        **({} if outcome.books else {"books": False}),
        "transfers": [_transfer(decision) for decision in schedule.decisions],
        "metrics": {
            "admitted": len(schedule.plans),
            "congestion_factor": float(schedule.congestion_factor),
            "makespan_s": schedule.makespan_us / US_PER_S,
            **outcome.more,
        },
    }


def as_comparison(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The JSON form of several planners' outcomes."""
    return {
        "plans": [as_document(outcome) for outcome in outcomes],
        "comparison": [
            {
                "planner": outcome.planner,
                **as_document(outcome)["metrics"],
                "mean_finish_s": outcome.mean_finish_s,
                "segments": outcome.segments,
            }
            for outcome in outcomes
        ],
    }


def _transfer(decision: Decision) -> dict[str, Any]:
    plan = decision.answer
    if isinstance(plan, Plan):
        return {
            "id": decision.request.id,
            "admitted": True,
            "start": format_time(plan.start_us),
            "finish": format_time(plan.finish_us),
            "segments": [
                {"begin": format_time(begin), "end": format_time(end), "rate_bps": rate, "path": list(path)}
                for begin, end, rate, path in plan.segments
            ],
            "reason": None,
            "counter_offer": None,
        }
    return {
        "id": decision.request.id,
        "admitted": False,
        "start": None,
        "finish": None,
        "segments": [],
        "reason": f"{plan.code}: {plan.detail}",
        "counter_offer": _offer(decision.offer or CounterOffer(None, None)),
    }


def _offer(offer: CounterOffer) -> dict[str, Any]:
    finish, longest = offer.earliest_finish_us, offer.longest_duration_us
    return {
        "earliest_finish": None if finish is None else format_time(finish),
        "largest_volume_bytes": offer.largest_volume_bytes,
        "smallest_rate_max_bps": offer.smallest_rate_max_bps,
        "largest_rate_min_bps": offer.largest_rate_min_bps,
        "longest_duration_s": None if longest is None else longest / US_PER_S,
    }
