# SPDX-License-Identifier: Apache-2.0
"""A workload through one planner, on a virtual clock: one by one as requests arrive, in batches, or, for what plans nothing, as it comes.

Every plan is verified and booked before the next request is looked at, as the desk does it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.plan import Plan, Refusal, verify
from broker.core.request import Options, Request
from broker.core.units import round_up
from broker.planners.signature import JointPlanner, Planner, is_joint
from broker.simulate.control import Control
from broker.simulate.workload import Arrival, Workload

_FORGET_EVERY = 256  # requests: dropping the past costs a look at every link
_STEP_EVERY = 32


@dataclass(slots=True)
class Answers:
    """One answer per request, in order of arrival, and the seconds that each call of the planner took."""

    kind: str  # list | joint | baseline
    answers: list[Plan | Refusal]
    seconds: list[float] = field(default_factory=list)


def serve(planner: Planner, workload: Workload, network: Network, batch_us: int, begin_us: int, control: Control) -> Answers:
    """Raises PlanRejected when a plan breaks a rule, and Cancelled."""
    calendars = {link_id: Calendar(link.capacity()) for link_id, link in network.links.items()}
    if not planner.traits.books:
        return _as_it_comes(planner, workload, network, calendars, control)
    if is_joint(planner):
        return _in_batches(planner, workload, network, calendars, batch_us, begin_us, control)
    return _one_by_one(planner, workload, network, calendars, control)


def _one_by_one(
    planner: Planner, workload: Workload, network: Network, calendars: dict[str, Calendar], control: Control
) -> Answers:
    found = Answers("list", [])
    for i, (arrival_us, request, _) in enumerate(workload.arrivals):
        if i % _STEP_EVERY == 0:
            control.step(i / len(workload.arrivals))
        if i % _FORGET_EVERY == 0:
            _forget(calendars, arrival_us)
        begin = control.timer()
        answer = planner.plan(request, network, calendars, fewest_rows=True)
        found.seconds.append(control.timer() - begin)
        _book(request, answer, network, calendars)
        found.answers.append(answer)
    return found


def _in_batches(
    planner: JointPlanner,
    workload: Workload,
    network: Network,
    calendars: dict[str, Calendar],
    batch_us: int,
    begin_us: int,
    control: Control,
) -> Answers:
    """Every `batch_us` all that has arrived meanwhile is planned together, on what is booked already; nothing begins before that."""
    found = Answers("joint", [])
    for instant, batch in _batches(workload.arrivals, batch_us, begin_us):
        control.step(len(found.answers) / len(workload.arrivals))
        _forget(calendars, instant)
        waiting = [replace(request, not_before_us=max(request.not_before_us, instant)) for request in batch]
        alive = [request for request in waiting if request.deadline_us is None or request.deadline_us > request.not_before_us]
        begin = control.timer()
        together = planner.plan_together(alive, network, calendars) if alive else []
        found.seconds.append(control.timer() - begin)
        planned = {request.id: answer for request, answer in zip(alive, together, strict=True)}
        for request in waiting:
            answer = planned.get(
                request.id, Refusal("infeasible", "its deadline was over before its batch was planned", "deadline")
            )
            _book(request, answer, network, calendars)
            found.answers.append(answer)
    return found


def _batches(arrivals: Sequence[Arrival], batch_us: int, begin_us: int) -> Iterator[tuple[int, list[Request]]]:
    """(the instant at which it is planned, its requests): a request that arrives at that very instant belongs to it."""
    for instant, members in groupby(arrivals, lambda arrival: begin_us + round_up(arrival.arrival_us - begin_us, batch_us)):
        yield instant, [arrival.request for arrival in members]


def _as_it_comes(
    planner: Planner, workload: Workload, network: Network, calendars: dict[str, Calendar], control: Control
) -> Answers:
    """Nobody is refused for a deadline where nobody plans: whether it was met is seen at the end."""
    control.step(0.0)
    requests = [
        replace(arrival.request, deadline_us=None, options=Options(paths=arrival.request.options.paths))
        for arrival in workload.arrivals
    ]
    begin = control.timer()
    if is_joint(planner):
        answers = list(planner.plan_together(requests, network, calendars))
    else:
        answers = [planner.plan(request, network, calendars, fewest_rows=True) for request in requests]
    seconds = control.timer() - begin
    for request, answer in zip(requests, answers, strict=True):
        _book(request, answer, network, calendars)
    return Answers("baseline", answers, [seconds])


def _book(request: Request, answer: Plan | Refusal, network: Network, calendars: dict[str, Calendar]) -> None:
    if isinstance(answer, Refusal):
        return
    verify(request, answer, network.links, calendars)
    for begin, end, rate, path in answer.segments:
        for link_id in path:
            calendars[link_id].book(begin, end, rate)


def _forget(calendars: dict[str, Calendar], instant_us: int) -> None:
    for calendar in calendars.values():
        calendar.forget_before(instant_us)
