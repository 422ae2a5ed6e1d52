# SPDX-License-Identifier: Apache-2.0
"""Random histories with chains in them: the ledger holds, the turns are kept, nobody loses by another's end, and nothing waits for ever."""

import asyncio
import random
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from broker.core.transfer import Action, State
from broker.core.transfer_spec import OnOverrun, SignalKind, StartSignal
from broker.core.units import US_PER_S
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.modify import Pause, Rebook, Resume
from broker.desk.lifecycle.transitions import End, Start
from broker.desk.rebalance import pull_forward as pulling
from broker.store.transfers import Transfer
from tests.asks import FILE, make_change
from tests.core.grid import histories
from tests.desk.chain import L1, network, sent
from tests.desk.machine import DESKS, RATES, REFUSALS, SECONDS, VOLUMES
from tests.desk.pulling import Pulling
from tests.desk.world import GBIT, POLICY, World
from tests.postgres import Server
from tests.service import Clock

SIGNALS = st.builds(
    lambda kind, overrun: StartSignal(kind, on_overrun=overrun),
    st.sampled_from((SignalKind.DIRECT, SignalKind.DIRECT, SignalKind.BROKER, SignalKind.CLOCK)),
    st.sampled_from((OnOverrun.DELAY, OnOverrun.DELAY, OnOverrun.FALLBACK)),
)


class Chaining(Pulling):
    """The histories of `test_pull_forward`, in which transfers wait for others."""

    @precondition(lambda self: self.ids)
    @rule(which=Pulling.which, volumes=st.lists(VOLUMES, min_size=1, max_size=4), rate=RATES, deadline=st.none() | SECONDS,
          signal=st.none() | SIGNALS, planner=st.sampled_from(("vbls", "vbls", "fbls")), start=st.none() | SECONDS, desk=DESKS)  # fmt: skip
    def follow(
        self, which: float, volumes: Any, rate: Any, deadline: Any, signal: Any, planner: str, start: Any, desk: int
    ) -> None:
        """A chain behind some transfer, or behind a new one."""
        asks: list[Any] = []
        for volume in volumes:
            after = asks[-1].id if asks else self.some(which) if which < 0.7 else None
            asks.append(self.world.ask(
                volume, "h1", "h2", rate_max_bps=rate, planner=planner, payload=FILE, after=after,
                signal=None if after is None else signal, not_before_us=0 if start is None else self._at(start),
                deadline_us=None if deadline is None else self._at(deadline + 8 * len(asks)),
            ))  # fmt: skip
        for answer in self.run(self.world.admit(*asks, desk=desk)):
            if isinstance(answer, Transfer):
                self.ids.append(answer.id)
            else:
                assert answer.code in REFUSALS, answer

    @precondition(lambda self: self.ids)
    @rule(which=Pulling.which, desk=DESKS, action=st.sampled_from((Action.CANCEL, Action.FINISH, Action.FAIL, Action.EXPIRE)))
    def an_end_takes_nothing_from_anybody(self, which: float, desk: int, action: Any) -> None:
        before = self.transfers()
        ended = self.some(which)
        self.attempt(End(ended, "me", action=action), desk)
        for name, now in self.transfers().items():
            was = before[name]
            if name != ended and was != now:
                assert now.spec.after == was.spec.after or was.spec.after == ended
                assert (now.finish_us or 0) <= (was.finish_us or 0) and now.promised_us == was.promised_us
                assert now.segments == was.segments or now.segments[-1].end_us < was.segments[-1].end_us
                if was.spec.after == ended and before[ended].live:
                    assert now.released_us is not None or now.spec.after == before[ended].spec.after

    @precondition(lambda self: self.ids)
    @rule(which=Pulling.which, desk=DESKS, safe=VOLUMES)
    def overrun(self, which: float, desk: int, safe: int) -> None:
        """One that others wait for runs, and falls behind."""
        found = self.transfers()
        awaited = [
            t.spec.after
            for t in found.values()
            if t.live and t.spec.after and t.released_us is None and found[t.spec.after].state is State.RESERVED
        ]
        if awaited:
            name = awaited[int(which * len(awaited))]
            self.clock.now_us = max(self.clock.now_us, found[name].start_us or 0) + safe
            self.attempt(Start(name, "me"), desk)
            self.unjudged.add(name)
            self.attempt(Rebook(name, "me", safe_bytes=safe, policy=POLICY), desk)


@pytest.mark.parametrize("seed", range(2))
def test_in_any_history_turns_are_kept(seed: int, postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "_REST", 0)
    machine = type("Machine", (Chaining,), {"server": postgres, "_hypothesis_internal_use_seed": seed})
    run_state_machine_as_test(
        machine,
        settings=histories(20),
    )


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.desks(2)
async def test_chains_on_two_desks_at_once(world: World, seed: int, clock: Clock) -> None:
    """Ends, changes and new successors meet on the same chains, in two processes' desks: no deadlock, no lost hand-over."""
    print(f"seed {seed}")
    dice = random.Random(seed)
    await network(world, L1, nic_bps=2 * GBIT)
    made: list[str] = []

    async def client(desk: int) -> None:
        for _ in range(25):
            await asyncio.sleep(dice.random() / 500)
            clock.advance(dice.random() / 20)
            name = made[-1 - int(dice.random() ** 2 * len(made))] if made else "none"
            source, target = dice.choice((("h1", "h2"), ("h3", "h4")))
            match dice.choice(("follow", "follow", "follow", "new", "end", "end", "behind", "change", "pause", "resume")):
                case "follow" | "new" as kind:
                    after = name if kind == "follow" and made else None
                    (answer,) = await world.admit(sent(world, dice.random() * 3 + 0.1, source, target, after=after), desk=desk)
                    made.extend([answer.id] if isinstance(answer, Transfer) else [])
                    continue
                case "end":
                    command: Any = End(name, "me", action=dice.choice((Action.FINISH, Action.CANCEL, Action.FAIL)))
                case "behind":
                    command = Rebook(name, "me", safe_bytes=dice.randrange(10**8), policy=POLICY)
                case "change":
                    command = make_change(name, "me", volume_bytes=dice.randrange(1, 10**9))
                case "pause":
                    command = Pause(name, "me", None, POLICY)
                case _:
                    command = Resume(name, "me", None, POLICY)
            try:
                await world.do(command, desk)
            except Problem as problem:
                assert problem.code in REFUSALS, problem

    async with asyncio.timeout(60):
        await asyncio.gather(*(client(n % 2) for n in range(6)))
    await world.check(
        {row.id for row in await world.rows("SELECT DISTINCT subject AS id FROM events WHERE action = 'transfer.rebooked'")}
    )
    assert len(made) > 10  # how many are refused depends on who comes first
    assert await deadlocks(world) == 0


async def deadlocks(w: World) -> int:
    (row,) = await w.rows("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(row.deadlocks)


@pytest.mark.desks(2)
async def test_an_end_that_meets_a_new_successor(world: World, clock: Clock) -> None:
    """Admitted while the end of its predecessor waits for the locks: it is handed over, or refused, and never left waiting."""
    await network(world)
    for _ in range(15):
        (first,) = await world.admit(sent(world, 1))
        assert isinstance(first, Transfer)
        clock.advance(2)
        answers = await asyncio.gather(
            world.admit(sent(world, 1, after=first.id), desk=0), world.do(End(first.id, "me", action=Action.CANCEL), 1)
        )
        (second,) = answers[0]
        assert isinstance(second, Transfer) or second.code == "conflict"
        clock.advance(1 / US_PER_S)
    await world.check()
