# SPDX-License-Identifier: Apache-2.0
"""A preview of any command leaves the replica, the database and what is admitted next as they were, and answers as the command would."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest

from broker.core.network import Link
from broker.core.transfer import Action
from broker.core.units import US_PER_S
from broker.desk.admission.admit import Admit
from broker.desk.admission.preemption import AdmitByPreemption
from broker.desk.admission.quote import Quote
from broker.desk.ground.command import Preview
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.modify import Pause, Rebook, Resume
from broker.desk.lifecycle.transitions import Commit, End, Start
from broker.desk.network.links import AddWindow, ChangeLink, CreateLinks, DeleteLink, RemoveHost, RemoveWindow
from broker.desk.network.topology import PutTopology
from broker.store import bookings
from broker.store.bookings import WindowRecord
from broker.store.idempotency import Key
from tests.asks import make_change
from tests.desk.world import GBIT, POLICY, World
from tests.service import START_US

TABLES = ("links", "link_steps", "link_windows", "ledger", "transfers", "events", "idempotency_keys", "topology", "hosts", "tokens")


def at(seconds: float) -> int:
    return START_US + int(seconds * US_PER_S)


@dataclass
class Scene:
    """Three nodes, two ways from A to B, and bookings of every state a command can meet."""

    w: World
    ids: dict[str, str]

    def window(self, begin: float, end: float) -> WindowRecord:
        return WindowRecord("w2", "L1", at(begin), at(end), 0, "outage", None)


async def scene(w: World) -> Scene:
    await w.links(Link("L1", "A", "B", GBIT), Link("L2", "A", "C", GBIT), Link("L3", "C", "B", GBIT), Link("L4", "B", "D", GBIT))
    await w.nic("h1", "A", GBIT)
    async with w.look.transaction() as connection:
        await bookings.insert_window(connection, WindowRecord("w1", "L3", at(50), at(60), 10, "maintenance", None), w.clock())
        await connection.exec_driver_sql(
            "INSERT INTO hosts (name, node, nic_bps, data_address, enrolled_us) VALUES ('h1', 'A', 1, 'x:1', 1)"
        )
    asks = {
        "plain": w.ask(250_000_000, not_before_us=at(10)),
        "held": w.ask(not_before_us=at(10), hold=True),
        "paused": w.ask(not_before_us=at(10)),
        "humble": w.ask(10 * GBIT, not_before_us=at(100), best_effort=True, priority=-1),
        "far": w.ask(not_before_us=at(1000), source="h1"),
    }
    for transfer in await w.admit(*asks.values()):
        assert not isinstance(transfer, Problem)
    await w.do(Pause(asks["paused"].id, "me", None, POLICY))
    return Scene(w, {name: ask.id for name, ask in asks.items()})


KINDS: dict[str, Callable[[Scene], Any]] = {
    "admit": lambda s: Admit([s.w.ask(not_before_us=at(10)) for _ in range(2)], "me", POLICY, Key("me", "k", b"1")),
    "admit, refused": lambda s: Admit([s.w.ask(10 * GBIT, not_before_us=at(10), deadline_us=at(12))], "me", POLICY),
    "preempt": lambda s: AdmitByPreemption(
        [s.w.ask(20 * GBIT, not_before_us=at(100), deadline_us=at(190), preempt=True)], "me", POLICY, candidates=[s.ids["humble"]]
    ),
    "quote": lambda s: Quote(s.w.ask(not_before_us=at(10)), ("vbls", "fbls"), POLICY),
    "change": lambda s: make_change(s.ids["plain"], "me", volume_bytes=500_000_000),
    "change, refused": lambda s: make_change(s.ids["plain"], "me", volume_bytes=10**15, deadline_us=at(20)),
    "pause": lambda s: Pause(s.ids["plain"], "me", None, POLICY),
    "resume": lambda s: Resume(s.ids["paused"], "me", None, POLICY),
    "rest": lambda s: Rebook(s.ids["plain"], "me", None, safe_bytes=1000, policy=POLICY),
    "commit": lambda s: Commit(s.ids["held"], "me"),
    "commit, refused": lambda s: Commit("nobody", "me"),
    "start": lambda s: Start(s.ids["plain"], "me"),
    "cancel": lambda s: End(s.ids["plain"], "me", action=Action.CANCEL),
    "finish, illegal": lambda s: End(s.ids["held"], "me", action=Action.FINISH),
    "create": lambda _: CreateLinks([Link("L9", "A", "B", GBIT)], "me"),
    "create, refused": lambda _: CreateLinks([Link("L9", "A", "B", GBIT), Link("L1", "A", "B", GBIT)], "me"),
    "capacity": lambda _: ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=10**8), None, True, POLICY),
    "capacity, refused": lambda _: ChangeLink("L1", "me", lambda link: replace(link, capacity_bps=10**8), None, False, POLICY),
    "window": lambda s: AddWindow(s.window(0, 200), "me", True, POLICY),
    "no window": lambda _: RemoveWindow("L3", "w1", "me"),
    "delete": lambda _: DeleteLink("L4", "me"),
    "delete, refused": lambda _: DeleteLink("L1", "me"),
    "delete, replan": lambda _: DeleteLink("L1", "me", None, True, POLICY),
    "topology": lambda _: PutTopology(
        [Link("L1", "A", "B", 10**8), Link("L4", "D", "B", GBIT), Link("L9", "A", "B", GBIT)], "me", True, True, None, POLICY
    ),
    "topology, the same": lambda _: PutTopology([Link("L1", "A", "B", GBIT)], "me", False),
    "topology, refused": lambda _: PutTopology([], "me"),
    "host, refused": lambda _: RemoveHost("h1", "me"),
}


async def everything(w: World) -> Any:
    """All that is stored, and all that the desk remembers."""
    replica = w.desks[0].replica
    memory = {
        link_id: (calendar.capacity, calendar.steps(), replica.versions[link_id]) for link_id, calendar in replica.calendars.items()
    }
    tables = [await w.rows(f"SELECT * FROM {name} ORDER BY 1, 2") for name in TABLES]
    return (
        memory,
        replica.topology_version,
        replica.records,
        replica.hosts,
        replica.drained,
        tuple(replica.network.links.items()),
        tables,
    )


def _only_new(since: Any) -> Any:
    async def checked(connection: Any, spans: dict[str, Any], from_us: int) -> Any:
        assert set(spans) == {"L9"}, "the replica are read anew"
        return await since(connection, spans, from_us)

    return checked


async def quoted(w: World) -> Any:
    """What would be booked next, on one path and on the other."""
    answers = await w.do(Quote(w.ask(2 * GBIT, not_before_us=at(5)), ("vbls", "fbls"), POLICY))
    return {name: answer.segments for name, answer in answers.items()}


async def answer(w: World, command: Any) -> Any:
    """What a command answers, times of deciding aside."""
    try:
        result = await w.do(command)
    except Problem as problem:
        return problem.code, problem.detail
    return plain(result)


def plain(result: Any) -> Any:
    if isinstance(result, list):
        return [plain(item) for item in result]
    if isinstance(result, Problem):
        return result.code, result.more["binding"]
    if hasattr(result, "segments") and hasattr(result, "state"):
        return result.state, result.segments, result.revision, result.reason
    return result


@pytest.mark.parametrize("kind", KINDS)
async def test_a_preview_leaves_no_trace_and_tells_the_truth(world: World, kind: str) -> None:
    s = await scene(world)
    command = KINDS[kind](s)
    quote = await quoted(world)
    await world.desks[0].warm_up()
    before, replica = await everything(world), world.desks[0].replica
    with patch.object(bookings, "read_since", _only_new(bookings.read_since)):
        foreseen = await answer(world, Preview(command))
        assert await everything(world) == before
        assert world.desks[0].replica is replica
        assert await quoted(world) == quote
    assert await answer(world, command) == foreseen
    await world.check()


async def test_a_preview_waits_its_turn_and_stands_alone(world: World) -> None:
    """What stands before it in the queue is booked when it decides; what stands behind knows nothing of it."""
    await world.links(Link("L1", "A", "B", GBIT))
    asks = [world.ask(125_000_000, not_before_us=at(10)) for _ in range(3)]
    desk = world.desks[0]
    works = [desk.submit(Admit([asks[0]], "me", POLICY)), desk.submit(Preview(Admit([asks[1]], "me", POLICY)))]
    works.append(desk.submit(Admit([asks[2]], "me", POLICY)))

    (first,), (foreseen,), (second,) = await asyncio.gather(*works)
    assert [t.start_us for t in (first, foreseen, second)] == [at(10), at(11), at(11)]
    await world.check()
