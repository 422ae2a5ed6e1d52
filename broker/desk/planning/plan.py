# SPDX-License-Identifier: Apache-2.0
"""From a planning request to a verified plan, or to a refusal, with counter-offers if a caller will read it."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from broker.core.network import Network, Route
from broker.core.plan import Plan, PlanRejected, Refusal, verify
from broker.core.request import Options, Request
from broker.core.segments import coalesce
from broker.core.transfer_spec import TransferSpec
from broker.core.units import MAX_TIME_US
from broker.desk.ground.batch import Batch, Heavy
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.planning.counter_offers import Question, add_counter_offers
from broker.planners import PLANNERS
from broker.planners.signature import JointPlanner, Planner, candidate_routes, is_joint, is_time_limited

log = logging.getLogger(__name__)

# Of one solver's run, where there is one. At the desk there is none: while one request is decided everybody else waits.
_SOLVER_S = 1.0
# So many are planned together at the desk; more are planned elsewhere.
_FEW = 8


def find_planner(name: str) -> Planner:
    """Raises Problem."""
    planner = PLANNERS.get(name)
    if planner is None:
        known = ", ".join(sorted(PLANNERS))
        raise Problem.of_field("planner", f"{name!r} is unknown; there are: {known}", "unknown-planner")
    return planner


def find_joint_planner(name: str) -> JointPlanner:
    """The joint planner of this name."""
    planner = PLANNERS[name]
    assert is_joint(planner)
    return planner


def find_booking_planner(name: str) -> Planner:
    """A planner whose plans can be booked. Raises Problem."""
    planner = find_planner(name)
    if not planner.traits.books:
        detail = (
            f"{name} predicts and compares, and books nothing; ask POST /v1/quotes for what it says, and book with another planner"
        )
        raise Problem.of_field("planner", detail, "unsupported")
    return planner


def plan_or_refuse(request: Request, planner_name: str, batch: Batch, question: Question | None = None) -> Plan:
    """A verified plan on the present calendars. Raises Problem: with counter-offers, if the `question` says what was asked."""
    planner = find_booking_planner(planner_name)
    answer = make_plan(request, planner, batch)
    if isinstance(answer, Plan):
        return answer
    raise explain_refusal(request, planner, answer, batch, question)


def make_plan(request: Request, planner: Planner, batch: Batch) -> Plan | Refusal:
    """The planner's answer, verified if it may be booked. Raises Heavy where it is to be planned elsewhere."""
    answer = batch.answers.plans.get(_key(planner, request)) if batch.answers.plans else None
    if answer is None:
        _refuse_heavy(planner, 1, batch)
        network, calendars = batch.replica.network, batch.calendars
        answer = _limit_search(planner, batch).plan(request, network, calendars, fewest_rows=True)
        if batch.answers.recording:
            batch.answers.plans[_key(planner, request)] = answer
    return check_plan(request, answer, batch) if planner.traits.books else answer


def check_plan(request: Request, answer: Plan | Refusal, batch: Batch) -> Plan | Refusal:
    """Verify `answer`. A plan that breaks a rule is a fault of the planner: it is logged and never booked, and other requests go on."""
    if isinstance(answer, Refusal):
        return answer
    try:
        verify(request, answer, batch.replica.network.links, batch.calendars)
    except PlanRejected:
        if batch.answers.brought:
            raise Heavy from None  # it was right where it was made; others have booked since, or its begin has passed
        log.exception("a plan breaks a rule; it is not booked")
        return Refusal(
            "infeasible", "the plan that was made breaks a rule (our fault; it is logged): try another planner", "planner"
        )
    if answer.finish_us > MAX_TIME_US:
        return Refusal("infeasible", "it would not end before the year 10000", "volume_bytes")
    return answer


def make_plans(requests: Sequence[Request], planner: JointPlanner, batch: Batch) -> list[Plan | Refusal]:
    """One answer per request. The plans are not verified yet: each is, on what those before it have booked, when it is booked itself."""
    keys = [_key(planner, request) for request in requests]
    answers: Sequence[Plan | Refusal | None] = [batch.answers.plans.get(key) for key in keys]
    if None in answers:
        _refuse_heavy(planner, len(requests), batch)
        together = _limit_search(planner, batch).plan_together(requests, batch.replica.network, batch.calendars)  # type: ignore[attr-defined]
        answers = made = [Plan(coalesce(said.segments)) if isinstance(said, Plan) else said for said in together]
        if batch.answers.recording:
            batch.answers.plans.update(zip(keys, made, strict=True))
    return [answer for answer in answers if answer is not None]


def _key(planner: Planner, request: Request) -> tuple[str, Request]:
    """What is asked of a planner, whenever that is."""
    return planner.name, replace(request, not_before_us=0)


def _refuse_heavy(planner: Planner, number: int, batch: Batch) -> None:
    if batch.may_go_elsewhere and (planner.traits.time_limit or number > _FEW):
        raise Heavy


def _limit_search(planner: Planner, batch: Batch) -> Planner:
    """The planner with the time limit of this process: long searches run in the pool only."""
    if not is_time_limited(planner):
        return planner
    return planner.within(_SOLVER_S if batch.answers.recording else 0.0, batch.spent)


def explain_refusal(request: Request, planner: Planner, said: Refusal, batch: Batch, question: Question | None) -> Problem:
    """A planner's refusal as an answer of the API."""
    errors = [{"field": said.field, "detail": said.detail}] if said.field else []
    more: dict[str, Any] = {"errors": errors}
    if said.code == "no_path":
        network = batch.replica.network
        both_known = request.source in network.nodes and request.destination in network.nodes
        return Problem("no-path" if both_known else "unknown-node", said.detail, more)
    if said.code == "unsupported":
        return Problem("unsupported", said.detail, more)
    key = _key(planner, request)
    if key in batch.answers.refusals:
        problem, where = batch.answers.refusals[key]
        return batch.explain(problem, where)
    problem = Problem("infeasible", said.detail, more | {"binding": None, "counter_offers": []})
    if question is None:
        return problem
    problem, where = add_counter_offers(problem, request, _limit_search(planner, batch), batch, question)
    if batch.answers.recording:
        batch.answers.refusals[key] = problem, where
    return batch.explain(problem, where)


# -- paths ---------------------------------------------------------------------------------------------------------------------------


def find_routes(network: Network, source: str, destination: str, options: Options) -> tuple[Route, ...]:
    """The paths that a plan may take while every link is up."""
    if options.path is None:
        return network.routes(source, destination, options.paths)
    return (network.along(options.path),) if all(link_id in network.links for link_id in options.path) else ()


def make_planner_request(
    transfer_id: str, spec: TransferSpec, booked_bytes: int | None, not_before_us: int, *, duration_us: int | None
) -> Request:
    """The planning request of a transfer: `booked_bytes` or `duration_us` of it (margin included, or what is left), from `not_before_us`."""
    return Request(
        transfer_id,
        spec.source,
        spec.destination,
        booked_bytes,
        not_before_us,
        spec.rate_max_bps,
        spec.rate_min_bps,
        spec.deadline_us,
        duration_us,
        spec.priority,
        spec.options,
    )


def find_routed_links(
    replica: Replica,
    source: str,
    destination: str,
    options: Options,
    rate_min_bps: int | None,
    not_before_us: int,
    deadline_us: int | None,
    rates_bps: frozenset[int] = frozenset(),
) -> set[str]:
    """Every link that a plan may book, and those that its counter-offers look at: these are to be locked.

    `rates_bps`: those that a planner of fixed rates may need. Planners go around links that carry too little for a while, so the choice
    moves with time. What was not foreseen is seen when it is planned (`batch.NotLocked`), and then every link is locked.
    """
    network = replica.network
    if options.path is not None:
        return {link_id for link_id in options.path if link_id in network.links}
    least = rate_min_bps or 1
    if not network.below(max(least, *rates_bps, 1), not_before_us, not_before_us + 1):
        return {link_id for route in network.routes(source, destination, options.paths) for link_id in route.path}
    request = Request("", source, destination, 1, not_before_us, options=options)
    return {
        link_id
        for deadline in {deadline_us, None}
        for min_bps in {least, 1, *rates_bps}
        for route in candidate_routes(replace(request, deadline_us=deadline), network, min_bps)
        for link_id in route.path
    }
