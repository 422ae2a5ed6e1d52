# SPDX-License-Identifier: Apache-2.0
"""What is planned beside the desk is booked as if it had been planned there, whatever others do meanwhile."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker.core.network import Link
from broker.core.plan import Plan
from broker.core.units import US_PER_S
from broker.desk.admission.admit import Admit
from broker.desk.admission.quote import Quote
from broker.desk.ground.problems import Problem
from broker.desk.service.rehearsal import InProcess, Rehearsal, Rehearse, Rehearsed
from broker.store.idempotency import Key
from broker.store.transfers import Transfer
from tests.desk.chain import L1
from tests.desk.world import GBIT, POLICY, World
from tests.service import START_US, Clock

OPTIMAL: dict[str, Any] = {"planner": "optimal", "deadline_us": START_US + 20 * US_PER_S}


class Watched(InProcess):
    """Counts rehearsals; `meanwhile` happens after each of the first so many, before its plans reach the desk."""

    def __init__(self, meanwhile: Callable[[], Awaitable[Any]] | None = None, times: int = 0) -> None:
        self.rehearsals: list[Rehearsal] = []
        self._meanwhile = meanwhile
        self._times = times

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[Rehearse]:
        async def watched(rehearsal: Rehearsal) -> Rehearsed:
            self.rehearsals.append(rehearsal)
            rehearsed = await self._rehearse(rehearsal)
            if self._meanwhile is not None and len(self.rehearsals) <= self._times:
                await self._meanwhile()
            return rehearsed

        yield watched


async def _booked(w: World, *links: Link, watched: Watched | None = None) -> Watched:
    await w.links(*(links or (L1,)))
    watched = watched or Watched()
    w.desks[0]._elsewhere = watched
    return watched


async def test_heavy_plans_are_made_elsewhere_and_light_ones_at_the_desk(world: World) -> None:
    elsewhere = await _booked(world)
    (light,) = await world.admit(world.ask(1000))
    few = await world.admit(*[world.ask(1000, planner="vifi") for _ in range(8)])
    assert not elsewhere.rehearsals
    (heavy,) = await world.admit(world.ask(1000, **OPTIMAL))
    assert len(elsewhere.rehearsals) == 1
    many = await world.admit(*[world.ask(1000, planner="vifi") for _ in range(9)])
    assert len(elsewhere.rehearsals) == 2
    assert all(isinstance(made, Transfer) for made in (light, *few, heavy, *many))
    await world.check()


@pytest.mark.parametrize("times", [1, 2])
async def test_who_books_meanwhile_is_planned_around(world: World, times: int) -> None:
    """Each time the whole link for a second, where the plan was to be: optimal spreads over all of its window."""
    asks = [world.ask(125_000_000, not_before_us=START_US + n * 5 * US_PER_S) for n in range(1, 3)]

    async def meanwhile() -> None:
        await world.admit(asks.pop())

    elsewhere = await _booked(world, watched=Watched(meanwhile, times))
    (made,) = await world.admit(world.ask(1_000_000_000, **OPTIMAL), key=Key("me", "k", b""))
    assert isinstance(made, Transfer)
    assert len(elsewhere.rehearsals) == times + 1
    leads = [rehearsal.now_us for rehearsal in elsewhere.rehearsals]
    assert leads == sorted(leads) and leads[0] > START_US
    (again,) = await world.admit(world.ask(1_000_000_000, **OPTIMAL), key=Key("me", "k", b""))
    assert isinstance(again, Transfer) and again.id == made.id
    await world.check()


async def test_it_is_given_up_when_others_are_always_faster(world: World) -> None:
    asks = [world.ask(12_500_000, not_before_us=START_US + n * 5 * US_PER_S) for n in range(1, 4)]

    async def meanwhile() -> None:
        await world.admit(asks.pop())

    await _booked(world, watched=Watched(meanwhile, 9))
    key = Key("me", "k", b"")
    with pytest.raises(Problem) as given_up:
        await world.admit(world.ask(1_000_000_000, **OPTIMAL), key=key)
    assert given_up.value.code == "planning-budget"
    await world.check()
    world.desks[0]._elsewhere = Watched()
    (made,) = await world.admit(world.ask(1_000_000_000, **OPTIMAL), key=key)
    assert isinstance(made, Transfer), "its key is not used up by what was given up"
    await world.check()


async def test_time_that_passes_makes_no_plan_in_the_past(world: World, clock: Clock) -> None:

    async def meanwhile() -> None:
        clock.advance(0.5)  # more than the first lead

    elsewhere = await _booked(world, watched=Watched(meanwhile, 1))
    (made,) = await world.admit(world.ask(1_000_000_000, **OPTIMAL))
    assert isinstance(made, Transfer) and len(elsewhere.rehearsals) == 2
    assert made.start_us is not None and made.start_us >= START_US + US_PER_S
    await world.check()


async def test_a_refusal_found_elsewhere_says_all_that_one_of_the_desk_says(world: World) -> None:
    elsewhere = await _booked(world)
    (holder,) = await world.admit(world.ask(1_250_000_000))
    assert isinstance(holder, Transfer)
    late = world.ask(1_250_000_000, **OPTIMAL | {"deadline_us": START_US + 12 * US_PER_S})
    (refused,) = await world.admit(late)
    quoted = await world.do(Quote(late, ["optimal", "vbls", "nonsense"], POLICY))
    (by_vbls,) = await world.admit(late.changed(planner="vbls"))
    assert len(elsewhere.rehearsals) == 2
    for answer in (refused, quoted["optimal"], quoted["vbls"], by_vbls):
        assert isinstance(answer, Problem) and answer.code == "infeasible"
        assert answer.more["binding"]["reservations"] == [holder.id]
        assert {offer["kind"] for offer in answer.more["counter_offers"]} >= {"earliest_finish", "largest_volume"}
    assert quoted["nonsense"].code == "unknown-planner"
    assert len(await world.rows("SELECT id FROM transfers")) == 1


async def test_a_quote_sees_links_that_nobody_foresaw(world: World) -> None:
    """As at the desk, where every link is locked then. fbls needs a rate that the shortest path has not, until later."""
    small = Link("L1", "A", "B", 2 * GBIT, available=((START_US - 1, GBIT), (START_US + 100 * US_PER_S, 2 * GBIT)))
    await _booked(world, small, Link("L2", "A", "C", 2 * GBIT), Link("L3", "C", "B", 2 * GBIT))
    ask = world.ask(250_000_000, rate_max_bps=2 * GBIT)
    quoted = await world.do(Quote(ask, ["vbls", "fbls", "spaghetti", "alap"], POLICY))
    assert isinstance(quoted["fbls"], Plan) and quoted["fbls"].segments[0].path == ("L2", "L3")
    (made,) = await world.admit(ask.changed(planner="fbls"))
    assert isinstance(made, Transfer) and made.segments[0].path == ("L2", "L3")


def test_commands_that_ask_the_same_twice_stay_at_the_desk() -> None:
    from broker.desk.admission.preemption import AdmitByPreemption

    assert Admit([], "me", POLICY).planned_elsewhere and not AdmitByPreemption([], "me", POLICY).planned_elsewhere
