# SPDX-License-Identifier: Apache-2.0
"""A planner that breaks the rules: its plan is never booked, the caller hears a refusal, and an operator can still enter an outage."""

from dataclasses import replace

import pytest

from broker.core.network import Link
from broker.core.plan import Plan, Refusal
from broker.core.transfer import State
from broker.desk.ground.problems import Problem
from broker.desk.network.links import ChangeLink
from broker.planners import PLANNERS
from broker.planners.vbls import Vbls
from broker.store.transfers import Transfer
from tests.desk.world import GBIT, POLICY, World


class Greedy(Vbls):
    """Books twice of what it should."""

    def plan(self, request, network, calendars, fewest_rows=False) -> Plan | Refusal:  # type: ignore[no-untyped-def]
        answer = Vbls().plan(request, network, calendars, fewest_rows)
        return Plan(tuple(s._replace(rate_bps=2 * s.rate_bps) for s in answer.segments)) if isinstance(answer, Plan) else answer


async def test_a_plan_that_breaks_a_rule_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.links(Link("L1", "A", "B", GBIT))
    (booked,) = await world.admit(world.ask(500_000_000))
    assert isinstance(booked, Transfer)
    monkeypatch.setitem(PLANNERS, "vbls", Greedy())
    (refused, also) = await world.admit(world.ask(), world.ask(planner="fbls"))
    assert isinstance(refused, Problem) and refused.code == "infeasible" and "our fault" in refused.detail
    assert isinstance(also, Transfer), "nobody else is stopped"
    changed = await world.do(ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=GBIT // 2), None, True, POLICY))
    assert {outcome.state for outcome in changed.outcomes} == {State.FAILED}
    await world.check()
