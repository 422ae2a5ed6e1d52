# SPDX-License-Identifier: Apache-2.0
"""Random histories on two desks, with clocks that move, networks that change and databases that fail; the oracle looks after every step."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.core.network import Link
from broker.core.request import NO_OPTIONS, Options
from broker.core.transfer import Action, State
from broker.core.units import US_PER_S
from broker.desk.admission.admit import Admit
from broker.desk.admission.preemption import AdmitByPreemption
from broker.desk.ground.command import Preview
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.hearing import AssumeLost, GiveBack, Hear, Miss, Withdraw
from broker.desk.lifecycle.modify import Change, Pause, Rebook, Resume
from broker.desk.lifecycle.transitions import Commit, End, Start
from broker.desk.network.links import AddWindow, ChangeLink, DeleteLink, RemoveWindow
from broker.desk.network.topology import PutTopology
from broker.desk.service.desk import Desk
from broker.desk.service.timers import run_timers
from broker.store import transfers
from broker.store.bookings import WindowRecord
from broker.store.session import DatabaseAway
from broker.store.transfers import Patience, Transfer
from tests.asks import FILE, make_change
from tests.desk.faults import FAULTS, fault
from tests.desk.world import GBIT, POLICY, World
from tests.postgres import Server
from tests.service import Clock

LINKS = (
    Link("L1", "A", "B", GBIT),
    Link("L2", "B", "C", 600_000_000, mtu_bytes=1500),
    Link("L3", "A", "D", GBIT, channel_bps=100_000_000, slot_us=US_PER_S),
    Link("L4", "D", "C", GBIT, metric=2),
)


CHANGED = (replace(LINKS[0], capacity_bps=GBIT // 3), replace(LINKS[1], target="D"), replace(LINKS[2], slot_us=1), LINKS[3])
ROUTES = (("A", "B"), ("B", "C"), ("A", "C"), ("A", "D"), ("h1", "h2"), ("h1", "C"))


# Skewed to what makes bookings meet: volumes of about a second, windows of a few.
VOLUMES = st.integers(1, 400_000_000)
SECONDS = st.one_of(st.integers(0, 8), st.integers(0, 8_000_000).map(lambda us: us / US_PER_S))
RATES = st.sampled_from((None, 100_000_000, 300_000_000, 10 * GBIT))
DESKS = st.integers(0, 1)
PLANNED = ("vbls", "vbls", "fbls", "spaghetti", "alap", "vifi")
OPTIONS = st.sampled_from((NO_OPTIONS, NO_OPTIONS, Options(split=True), Options(paths=1), Options(most_segments=2),
                           Options(split=True, shortest_segment_us=200_000)))  # fmt: skip


REFUSALS = {
    "unheard",
    "unsupported",
    "conflict",
    "infeasible",
    "invalid",
    "breaks-promises",
    "not-found",
    "no-path",
    "unknown-node",
}


class Broker(RuleBasedStateMachine):
    server: Server

    def __init__(self) -> None:
        super().__init__()
        self.url = self.server.new_database()
        self.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.clock = Clock()
        self.windows = 0
        self.ids: list[str] = []
        self.lost = False  # capacity, since the last look
        self.silent: dict[str, Any] = {}  # unheard ones, with what is booked for them
        self.unjudged: set[str] = set()  # re-booked by what an agent reported, not by what the plan had carried
        self.run(self._open())

    async def _open(self) -> None:
        self.world = World(self.url, self.clock, desks=2)
        self.worker = Desk(self.world.databases[0], self.clock, POLICY)
        await self.world.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(asyncio.wait_for(work, 30))

    def teardown(self) -> None:
        self.run(self.world.stop())
        self.runner.close()
        self.server.drop(self.url)

    # -- the rules ---------------------------------------------------------------------------------------------------------------

    @initialize()
    def network(self) -> None:
        self.run(self.world.links(*LINKS))
        for host, node in (("h1", "A"), ("h2", "C")):
            self.run(self.world.nic(host, node, 2 * GBIT))

    @rule(data=st.data(), route=st.sampled_from(ROUTES), volume=VOLUMES, rate=RATES, deadline=st.none() | SECONDS, start=SECONDS,
          hold=st.booleans(), priority=st.integers(0, 3), planner=st.sampled_from(PLANNED), options=OPTIONS,
          holding=st.sampled_from((False, False, True)), best_effort=st.booleans(), preempt=st.booleans(), desk=DESKS)  # fmt: skip
    def admit(
        self,
        data: st.DataObject,
        route: Any,
        volume: int,
        rate: Any,
        deadline: Any,
        start: Any,
        hold: bool,
        priority: int,
        planner: str,
        options: Any,
        holding: Any,
        best_effort: bool,
        preempt: bool,
        desk: int,
    ) -> None:
        asks = []
        for _ in range(data.draw(st.sampled_from((1, 1, 3)))):
            asks.append(self.world.ask(
                None if holding else volume, *route, duration_us=volume // 100 if holding else None,
                rate_max_bps=rate, hold=hold, priority=priority, planner=planner, options=options,
                not_before_us=self._at(start), deadline_us=None if deadline is None else self._at(start + deadline),
                payload=FILE if route == ("h1", "h2") else None, best_effort=best_effort, preempt=preempt,
            ))  # fmt: skip
        command = AdmitByPreemption(asks, "me", POLICY, None, self.ids) if preempt else Admit(asks, "me", POLICY)
        answers = self.run(self.world.do(command, desk))
        for answer in answers:
            if isinstance(answer, Transfer):
                self.ids.append(answer.id)
            else:
                assert isinstance(answer, Problem) and answer.code in REFUSALS, answer

    def some(self, draw: float) -> str:
        """Mostly one of the newest."""
        return self.ids[-1 - int(draw * draw * len(self.ids))]

    which = st.floats(0, 1, exclude_max=True)

    @precondition(lambda self: self.ids)
    @rule(which=which, desk=DESKS, command=st.sampled_from((Commit, Start, Pause, Resume)))
    def step(self, which: float, desk: int, command: Any) -> None:
        self.attempt(command(self.some(which), "me"), desk)

    @precondition(lambda self: self.ids)
    @rule(which=which, desk=DESKS, action=st.sampled_from((Action.CANCEL, Action.FINISH, Action.FAIL, Action.EXPIRE)))
    def finish(self, which: float, desk: int, action: Any) -> None:
        self.attempt(End(self.some(which), "me", action=action), desk)

    @precondition(lambda self: self.ids)
    @rule(which=which, desk=DESKS, change=st.one_of(
        VOLUMES.map(lambda value: {"volume_bytes": value}),
        RATES.map(lambda value: {"rate_max_bps": value}),
        SECONDS.map(lambda value: {"deadline_us": value}),
        SECONDS.map(lambda value: {"not_before_us": value}),
        st.sampled_from(({"deadline_us": None}, {"not_before_us": None}, {"planner": "fbls"}, {"planner": "vbls"}, {"priority": 9},
                         {"duration_us": US_PER_S}, {"best_effort": True}, {"split": True}, {"split": False},
                         {"paths": 1}, {"most_segments": 1}, {"most_segments": None})),
    ))  # fmt: skip
    def change(self, which: float, desk: int, change: Any) -> None:
        given: dict[str, Any] = {
            name: self._at(value) if name.endswith("_us") and value is not None else value for name, value in change.items()
        }
        self.attempt(make_change(self.some(which), "me", **given), desk)

    @precondition(lambda self: self.ids)
    @rule(which=which, desk=DESKS, kind=st.sampled_from((Pause, Resume, End, Change)))
    def preview(self, which: float, desk: int, kind: Any) -> None:
        """Whatever it answers, nothing is changed."""
        name = self.some(which)
        command = make_change(name, "me", volume_bytes=10**8) if kind is Change else kind(name, "me")
        before = self.run(self.world.everything())
        with suppress(Problem):
            self.run(self.world.do(Preview(command), desk))
        assert self.run(self.world.everything()) == before

    @precondition(lambda self: self.ids)
    @rule(which=which, desk=DESKS, safe=VOLUMES, achieved=st.sampled_from((0, 1, 250_000_000)))
    def behind(self, which: float, desk: int, safe: int, achieved: int) -> None:
        self.unjudged.add(self.some(which))
        self.attempt(Rebook(self.some(which), "me", safe_bytes=safe, achieved_bps=achieved, policy=POLICY), desk)

    @rule(link=st.sampled_from(("L1", "L2", "L3", "h1~up")), bps=st.sampled_from((0, 200_000_000, 500_000_000, GBIT)),
          desk=DESKS, replan=st.booleans())  # fmt: skip
    def capacity(self, link: str, bps: int, desk: int, replan: bool) -> None:
        self.lost = True
        self.attempt(ChangeLink(link, "me", lambda present: replace(present, capacity_bps=bps), None, replan, POLICY), desk)

    @rule(link=st.sampled_from(("L1", "L2", "L3")), begin=SECONDS, length=SECONDS, bps=st.sampled_from((0, 300_000_000)),
          desk=DESKS, replan=st.booleans())  # fmt: skip
    def window(self, link: str, begin: Any, length: Any, bps: int, desk: int, replan: bool) -> None:
        self.lost = True
        self.windows += 1
        start = self._at(begin)
        record = WindowRecord(f"w{self.windows}", link, start, start + 1 + int(length * US_PER_S), bps, "outage", None)
        self.attempt(AddWindow(record, "me", replan, POLICY), desk)

    @precondition(lambda self: self.windows)
    @rule(which=which, link=st.sampled_from(("L1", "L2", "L3")), desk=DESKS)
    def no_window(self, which: float, link: str, desk: int) -> None:
        self.attempt(RemoveWindow(link, f"w{1 + int(which * self.windows)}", "me"), desk)

    @rule(desk=DESKS, link=st.sampled_from(("L1", "L4")), replan=st.booleans())
    def delete(self, desk: int, link: str, replan: bool) -> None:
        self.lost = True
        self.attempt(DeleteLink(link, "me", None, replan, POLICY), desk)

    @rule(desk=DESKS, absent=st.sets(st.sampled_from(LINKS), max_size=2), changed=st.sampled_from(CHANGED), replan=st.booleans(),
          prune=st.booleans(), preview=st.booleans())  # fmt: skip
    def topology(self, desk: int, absent: Any, changed: Any, replan: bool, prune: bool, preview: Any) -> None:
        self.lost = True
        links = [changed if link.id == changed.id else link for link in LINKS if link not in absent]
        command = PutTopology(links, "me", prune, replan, None, POLICY)
        self.attempt(Preview(command) if preview else command, desk)

    @rule(desk=DESKS)
    def create(self, desk: int) -> None:
        with suppress(Problem):
            self.run(self.world.links(LINKS[3]))

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(seconds=st.sampled_from((0, 61, 301)))
    def jobs(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.run(run_timers(self.world.databases[0], self.worker, self.clock(), Patience()))

    @rule(host=st.sampled_from(("h1", "h2")))
    def hand_out(self, host: str) -> None:
        """An agent fetches what it shall do."""
        self.run(self._tell(host))

    async def _tell(self, host: str) -> None:
        async with self.world.databases[1].transaction() as connection:
            await transfers.mark_told(connection, host, {found.id for found in await transfers.find_assigned(connection, host)})

    @precondition(lambda self: self.ids)
    @rule(which=which, desk=DESKS, command=st.sampled_from((Hear, Miss, AssumeLost, GiveBack, Withdraw)))
    def hearing(self, which: float, desk: int, command: Any) -> None:
        self.attempt(command(self.some(which), "me"), desk)

    @rule(desk=DESKS, kind=st.sampled_from(FAULTS), volume=VOLUMES, cancel=st.booleans())
    def database_fails(self, desk: int, kind: Any, volume: int, cancel: bool) -> None:
        """Whatever breaks, and wherever: the answer is DatabaseAway, and books and tables go on together."""
        ask = self.world.ask(volume, "A", "C")

        async def both() -> list[Any]:
            work = [self.world.admit(ask, desk=desk)]
            if cancel and self.ids:
                work.append(self.world.do(End(self.ids[-1], "me", action=Action.CANCEL), desk))
            with fault(kind):
                return await asyncio.gather(*work, return_exceptions=True)

        answers = self.run(both())
        assert any(isinstance(answer, DatabaseAway) for answer in answers), answers
        if self.run(self.world.rows("SELECT 1 FROM transfers WHERE id = :id", id=ask.id)):
            self.ids.append(ask.id)  # the commit went through, only the answer was lost

    def attempt(self, command: Any, desk: int) -> None:
        """A refused command changes nothing at all."""
        before = self.run(self.world.everything())
        try:
            self.run(self.world.do(command, desk))
        except Problem as problem:
            assert problem.code in REFUSALS, problem
            assert self.run(self.world.everything()) == before

    def _at(self, seconds: float) -> int:
        return self.clock.now_us + int(seconds * US_PER_S)

    # -- what is always true --------------------------------------------------------------------------------------------------------

    @invariant()
    def books_and_tables_agree(self) -> None:
        self.run(self.world.check(self.unjudged))

    @invariant()
    def what_was_admitted_is_there(self) -> None:
        rows = self.run(self.world.rows("SELECT id, state, segments, paused FROM transfers ORDER BY created_us, id"))
        assert sorted(row.id for row in rows) == sorted(self.ids)
        for row in rows:
            for begin, end, rate, _ in row.segments:
                assert begin < end and rate > 0
            if State(row.state) in (State.HELD, State.RESERVED) and not row.paused:
                assert row.segments

    @invariant()
    def what_is_unheard_keeps_its_booking(self) -> None:
        """Its sender goes on by the plan that it has. Only capacity that is lost, or an end that somebody told, takes it away."""
        query = "SELECT id, state, segments, unheard_us FROM transfers WHERE unheard_us IS NOT NULL"
        now = {row.id: (row.unheard_us, row.segments) for row in self.run(self.world.rows(query))}
        if not self.lost:
            for name in self.silent.keys() & now.keys():
                assert self.silent[name] == now[name], name
        self.silent, self.lost = now, False
