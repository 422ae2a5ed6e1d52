# SPDX-License-Identifier: Apache-2.0
"""POST /v1/plans, by a worker: snapshot, solve in a process of its own, apply if asked; again if other bookings were faster."""

import logging
import time
from collections.abc import Awaitable, Callable

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.units import US_PER_S
from broker.desk.ground.policy import policy_of
from broker.desk.ground.problems import Problem
from broker.desk.rebalance.proposal import Proposal
from broker.desk.rebalance.reoptimise import HEARING_US, Agreement, Apply, Chosen, describe_result, is_stale, read_snapshot
from broker.desk.service.desk import Desk
from broker.desk.service.timers import at_work
from broker.jobs.child import Child
from broker.jobs.plan_work import PlanTask
from broker.jobs.run import Run
from broker.store import jobs
from broker.store.jobs import JobState, Json

log = logging.getLogger(__name__)

MAX_ROUNDS = 6
MAX_CHANGES_SHOWN = 10_000
_FIRST_GUESS_S, _SHORTEST_S = 3.0, 1.0


async def run_plan(run: Run) -> None:
    """Raises Problem where it cannot be done, JobLost."""
    request = run.job.request
    time_limit = float(request["time_limit_s"])
    expected = min(time_limit, _FIRST_GUESS_S) + 2
    apply = bool(request["apply"])
    # A desk of the job's own: what it writes beside must not take anybody else's batch down with it.
    desk = Desk(run.database, run.clock, policy_of(run.settings))
    async with run.child() as child, at_work(desk):
        for rounds in range(1, MAX_ROUNDS + 1):
            began = time.monotonic()
            proposal, agreement = await _propose(run, child, time_limit, expected)
            result = describe_result(proposal, agreement, applied=apply, rounds=rounds, most=MAX_CHANGES_SHOWN)
            if not apply or not proposal.changes:
                await run.done(result)
                return
            run.progress(0.95, "applying")
            try:
                await desk.submit(Apply(agreement, run.job.owner, _also_done(run, result)))
                return
            except Problem as refusal:
                problem = refusal
            if not is_stale(problem):
                raise problem
            if rounds == MAX_ROUNDS:
                raise _lost_the_race(problem, rounds)
            log.info("job %s, round %d: %s", run.job.id, rounds, problem.detail)
            # Where many book, a plan that is a little worse and there at once beats one that always comes too late.
            expected = 1.5 * (time.monotonic() - began) + 1
            time_limit = max(time_limit / 2, min(time_limit, _SHORTEST_S))
            run.progress(0.0, f"planning anew, round {rounds + 1}: {_what_changed(problem)}")


async def _propose(run: Run, child: Child, time_limit_s: float, expected_s: float) -> tuple[Proposal, Agreement]:
    request = run.job.request
    review_us = 0 if request["apply"] else request["review_s"] * US_PER_S
    policy = policy_of(run.settings)
    lead_us = max(policy.managed_lead_us, policy.replan_lead_us) + HEARING_US
    chosen = Chosen(request["project"], frozenset(request["links"] or ()), frozenset(request["transfers"] or ()))
    run.progress(0.0, "reading what is booked")
    async with run.database.transaction() as connection:
        now = run.clock()
        cut = now + review_us + int(expected_s * US_PER_S) + lead_us
        snapshot = await read_snapshot(connection, now, cut, chosen, run.settings.plan_limit)
    task = PlanTask(snapshot, request["objective"], time_limit_s)
    proposal: Proposal = await child.ask("plan", task, run.progress)
    return proposal, Agreement.of(proposal, cut - lead_us)


def _also_done(run: Run, result: Json) -> Callable[[AsyncConnection], Awaitable[None]]:
    """Ends the job in the transaction that books: a job that was given up or cancelled books nothing."""

    async def write(connection: AsyncConnection) -> None:
        await jobs.finish(connection, run.job, run.clock(), JobState.DONE, result=result)

    return write


def _what_changed(problem: Problem) -> str:
    kind = problem.more.get("changed", {}).get("kind")
    return {"late": "it took longer than expected", "transfers": "transfers changed meanwhile"}.get(kind, "links changed meanwhile")


def _lost_the_race(problem: Problem, rounds: int) -> Problem:
    return Problem(
        "conflict",
        f"{rounds} times something changed before the new plans could be booked, the last time: {problem.detail}. Nothing was changed; "
        "try fewer transfers, a shorter time_limit_s, or a calmer hour",
        problem.more,
    )
