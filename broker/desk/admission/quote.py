# SPDX-License-Identifier: Apache-2.0
"""Quotes: the answer of each planner to a request, without a booking."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from broker.core.plan import Plan
from broker.desk.admission.ask import Ask, find_asked_links, make_question, make_request, refuse_ask, resolve_ask
from broker.desk.ground.batch import Batch
from broker.desk.ground.command import Unkeyed
from broker.desk.ground.limits import NOBODY, Account, refuse_more, refuse_plan
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.planning.plan import (
    explain_refusal,
    find_planner,
    make_plan,
)
from broker.planners import traits_of
from broker.store.transfers import Transfer


@dataclass(slots=True)
class Quote(Unkeyed):
    """What each planner would answer to `ask` now. Nothing is booked, so it is always planned elsewhere.

    A result is a plan or a problem per planner.
    """

    ask: Ask
    planners: Sequence[str]
    policy: Policy
    account: Account = NOBODY

    @property
    def owner(self) -> str:
        """Who asks."""
        return self.account.owner

    def transfer_ids(self) -> Iterable[str]:
        """The predecessor, if the request names one."""
        return () if self.ask.spec.after is None else (self.ask.spec.after,)

    def links(self, replica: Replica, found: Mapping[str, Transfer]) -> set[str]:  # noqa: ARG002
        """The links that one of the planners may book."""
        return find_asked_links([self.ask], replica, self.planners)

    def decide(self, batch: Batch) -> dict[str, Plan | Problem]:
        """Each planner's plan, or why it refuses. Raises Problem where the request itself is at fault."""
        network = batch.replica.network
        refuse_ask(self.ask, batch, self.account)
        refuse_more(self.account, batch)
        mode, asked = resolve_ask(self.ask, batch)
        request = make_request(self.ask.id, asked, mode, self.policy, network, batch.now_us)
        question = make_question(self.ask.id, asked, mode, self.policy, network)
        answers: dict[str, Plan | Problem] = {}
        for name in sorted(self.planners, key=lambda name: traits_of(name).joint):  # planners that may use up the budget come last
            if batch.spent():
                answers[name] = Problem.out_of_budget("there was no time left to ask this planner")
                continue
            try:
                planner = find_planner(name)
                answer = make_plan(request, planner, batch)
                if isinstance(answer, Plan):
                    refuse_plan(self.account, batch, request.volume_bytes or answer.volume_bytes, answer.finish_us)
                    answers[name] = answer
                else:
                    answers[name] = explain_refusal(request, planner, answer, batch, question)
            except Problem as problem:
                answers[name] = problem
        return {name: answers[name] for name in self.planners}
