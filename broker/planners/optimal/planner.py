# SPDX-License-Identifier: Apache-2.0
"""`optimal`: plans a batch together under one of four objectives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.planners.optimal.batch import Batch, Progress
from broker.planners.optimal.carry import Carried
from broker.planners.optimal.completion import finish_early
from broker.planners.optimal.congestion import fuller_than, improve_congestion, least_congested
from broker.planners.optimal.lists import in_order, list_planners, trials
from broker.planners.optimal.measure import OBJECTIVES, Objective, Yardstick
from broker.planners.optimal.most import serve_most
from broker.planners.optimal.reasons import explain
from broker.planners.optimal.sheets import Sheet
from broker.planners.optimal.solver import Solver
from broker.planners.signature import Calendars, Spent, Task, Traits, candidates
from broker.planners.spaghetti import even_rate

DEFAULT_TIME_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Solution:
    """The result of a batch.

    `value`: the exact objective of the integer plans: a share, a number of requests, bytes, or weighted seconds from `not_before`
    to the finish. `bound`: no plan for the same requests does better (None: not proven). `gap`: |value - bound| / |value|.
    `fallback`: why the answer is not, or not entirely, the solver's (None: it is). `solver`: the solvers used, "" for none.
    """

    objective: Objective
    answers: tuple[Plan | Refusal, ...]
    value: int | Fraction
    bound: float | None
    solver: str
    variables: int
    fallback: str | None
    cancelled: bool

    @property
    def gap(self) -> float | None:
        """The distance of the value from its bound, relative to the value; None if no bound is known."""
        if self.bound is None:
            return None
        return abs(float(self.value) - self.bound) / abs(float(self.value)) if self.value else 0.0


@dataclass(frozen=True)
class Optimal:
    """Joint planning over time-expanded programs (RR-6205, section 1), never worse in its own objective than the list planners.

    `objective`:
    - `congestion`: all requests by their deadlines, the largest booked share of any link as small as possible;
    - `admitted`: as many requests as possible by their deadlines;
    - `volume`: as much volume as possible, of requests that are served whole;
    - `completion`: least sum of weight x time from `not_before` to the finish, all requests counted that can be served (weight: see
      `measure.weight`).
    When the requests do not all fit, `congestion` and `completion` first serve as many as they can find, then optimise their
    objective.

    A request without a deadline may use the time up to the latest deadline or the latest finish of a list planner, whichever is
    later. A request with a holding time (class 2) is planned by `vbls` before the others. Requests that allow `split` use several
    paths at once; the others may use several, but one at a time. For these, the bound considers only how much one path can carry.

    GUARANTEE: the answer is at least as good, in its objective measured exactly on integer plans, as those of vbls, fbls and
    spaghetti in the order of the requests. A time limit that is reached, or a solver that fails or is missing, costs quality, never
    correctness.

    `time_limit_s` bounds the solvers' total time (they get the limit; nothing here reads a clock); unless it is reached, the same
    inputs give the same answer. `cancelled` is polled between phases and while a solver runs; `progress` gets a fraction in [0, 1]
    and a text.
    """

    objective: Objective = "congestion"
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    progress: Progress | None = None
    cancelled: Callable[[], bool] | None = None

    name = "optimal"
    traits = Traits(joint=True, fixed_rate=True, time_limit=True)  # it also tries the plans of fbls and spaghetti

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective {self.objective!r} is not one of {', '.join(OBJECTIVES)}")

    def within(self, time_limit_s: float, spent: Spent) -> "Optimal":
        """The same planner with another budget."""
        return replace(self, time_limit_s=time_limit_s, cancelled=spent)

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:  # noqa: ARG002  rows are always few
        """The best plan of one request."""
        return self.plan_together([request], network, calendars)[0]

    def plan_together(self, requests: Sequence[Request], network: Network, calendars: Calendars) -> Sequence[Plan | Refusal]:
        """The best plans of all requests together."""
        return self.solve(requests, network, calendars).answers

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        """The largest volume in bytes that one of the list planners could carry; `plan` of that volume is certain to find a plan."""
        return max(planner.largest_volume(request, network, calendars) for planner in list_planners().values())

    def solve(self, requests: Sequence[Request], network: Network, calendars: Calendars) -> Solution:
        """The answers with their value and its bound."""
        solver = Solver(self.time_limit_s, self.cancelled)
        yardstick = Yardstick(self.objective, requests, network, calendars)
        batch = self._batch(requests, network, calendars, yardstick, solver)
        if requests:
            self._plan(batch)
            explain(batch)
        self._tell(1.0, "done")
        value = yardstick.value(batch.best)
        complete = all(isinstance(batch.best[i], Plan) for i in batch.joint)
        bound = batch.bound if complete or self.objective in {"admitted", "volume"} else None
        return Solution(
            self.objective,
            tuple(batch.best),
            value,
            bound,
            "+".join(solver.used),
            solver.variables,
            "; ".join(solver.troubles) or None,
            solver.stopped,
        )

    def _batch(
        self, requests: Sequence[Request], network: Network, calendars: Calendars, yardstick: Yardstick, solver: Solver
    ) -> Batch:
        """Separate the requests for programs from the others, and plan holding times first."""
        sheet = Sheet(calendars)
        lanes: dict[int, Sequence[Task]] = {}
        settled: dict[int, Plan | Refusal] = {}
        for i, request in enumerate(requests):
            found = _lanes(request, network)
            if isinstance(found, Refusal):
                settled[i] = found
            elif request.volume_bytes is None:
                settled[i] = answer = list_planners()["vbls"].plan(request, network, sheet, fewest_rows=True)
                if isinstance(answer, Plan):
                    sheet.book(answer)
            else:
                lanes[i] = found
        ends = [requests[i].deadline_us for i in lanes]
        horizon = max((end for end in ends if end is not None), default=0)
        return Batch(requests, network, sheet, lanes, settled, horizon, yardstick, solver, self._tell)

    def _plan(self, batch: Batch) -> None:
        open_ended = any(batch.requests[i].deadline_us is None for i in batch.joint)
        if self.objective == "congestion" and not open_ended:
            # The program first: it lets most list plannings stop after one or two requests.
            found = least_congested(batch)
            self._lists(batch, found)
            improve_congestion(batch, found)
            return
        self._lists(batch, None)
        batch.close()
        if batch.solver.stopped:
            return
        if self.objective == "congestion":
            improve_congestion(batch, least_congested(batch))
        elif self.objective == "completion":
            finish_early(batch)
        else:
            serve_most(batch)

    def _lists(self, batch: Batch, found: Carried | None) -> None:
        """Offer the list planners' answers; for requests without a deadline, the last of their finishes sets the horizon."""
        hopeless = None if found is None else fuller_than(batch, found)
        for trial in trials(self.objective, batch.requests):
            if batch.solver.stopped and batch.best:
                return
            self._tell(0.2, f"{trial.planner.name} in turn")
            answers = in_order(trial, batch.requests, batch.network, batch.yardstick.calendars, hopeless)
            if answers is None:
                continue
            batch.offer(answers)
            ends = [a.finish_us for i, a in enumerate(answers) if isinstance(a, Plan) and batch.requests[i].deadline_us is None]
            batch.horizon_us = max([batch.horizon_us, *ends])

    def _tell(self, part: float, text: str) -> None:
        if self.progress is not None:
            self.progress(part, text)


def _lanes(request: Request, network: Network) -> list[Task] | Refusal:
    """All paths that one of the list planners may take: planners that need a certain rate avoid links that are too small for it."""
    found = candidates(request, network)
    if isinstance(found, Refusal) or request.volume_bytes is None:
        return found
    rates = [rate for rate in (request.deadline_us and even_rate(request), request.rate_max_bps) if rate]
    more = [candidates(request, network, rate) for rate in rates]
    if request.rate_min_bps is not None:
        more.append(candidates(replace(request, rate_min_bps=None), network))
    by_path = {task.path: task for tasks in (found, *more) if not isinstance(tasks, Refusal) for task in tasks}
    return list(by_path.values())
