# SPDX-License-Identifier: Apache-2.0
"""Nobody waits for the whole of another caller's work: callers take turns, and large batches are decided in several transactions.

How long planning takes is counted here, not measured: each plan costs four milliseconds.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from broker.core.units import US_PER_S
from broker.desk.admission.admit import Admit
from broker.desk.ground.problems import Problem
from broker.desk.service import desk as desk_module
from broker.desk.service.queue import Queue, Work
from broker.store.idempotency import Key
from broker.store.session import DatabaseAway
from broker.store.transfers import Transfer
from tests.desk.chain import L1, network, sent
from tests.desk.world import POLICY, World
from tests.service import START_US

PER_TRANSACTION = 5  # plans, of a fifth of a slice each


class Planning:
    """How often was planned, and what was committed in which order."""

    def __init__(self) -> None:
        self.plans = 0
        self.transactions = 0

    def busy_s(self) -> float:
        return self.plans * desk_module._SLICE_S / PER_TRANSACTION


@pytest.fixture
def planning(monkeypatch: pytest.MonkeyPatch) -> Iterator[Planning]:
    counted = Planning()
    admit, attempt = Admit._admit, desk_module.Desk._attempt

    def counting(self: Admit, *given: Any) -> Any:
        counted.plans += 1
        return admit(self, *given)

    async def counting_attempt(self: Any, *given: Any) -> Any:
        counted.transactions += 1
        return await attempt(self, *given)

    monkeypatch.setattr(Admit, "_admit", counting)
    monkeypatch.setattr(desk_module.Desk, "_attempt", counting_attempt)
    yield counted


def _begin(w: World, planning: Planning) -> None:
    w.desks[0]._busy_s = planning.busy_s
    planning.transactions = 0


def _batch(w: World, owner: str, size: int, key: Key | None = None, **more: Any) -> Admit:
    return Admit([w.ask(**more) for _ in range(size)], owner, POLICY, key)


async def test_a_large_batch_lets_others_in_between_its_transactions(world: World, planning: Planning) -> None:
    await world.links(L1)
    _begin(world, planning)
    order: list[str] = []

    async def do(name: str, command: Admit) -> Any:
        results = await world.do(command)
        order.append(name)
        return results

    batch = asyncio.create_task(do("batch", _batch(world, "one", 50)))
    await asyncio.sleep(0)
    singles = [asyncio.create_task(do(f"single {n}", _batch(world, "two", 1))) for n in range(4)]
    results = await batch
    assert len(results) == 50 and all(isinstance(result, Transfer) for result in results)
    assert order == ["single 0", "single 1", "single 2", "single 3", "batch"]
    await asyncio.gather(*singles)
    assert planning.transactions >= 50 // PER_TRANSACTION and planning.plans == 54
    await world.check()


async def test_what_one_transaction_has_no_time_for_comes_in_the_next(world: World, planning: Planning) -> None:
    """Each with a key of its own, which is not used up by waiting."""
    await world.links(L1)
    _begin(world, planning)
    commands = [_batch(world, "one", 1, Key("one", f"key {n}", b"body")) for n in range(12)]
    results = await asyncio.gather(*(world.do(command) for command in commands))
    assert [result[0].id for result in results] == [command.asks[0].id for command in commands]
    assert planning.transactions >= 12 / PER_TRANSACTION and planning.plans == 12
    again = await asyncio.gather(*(world.do(_batch(world, "one", 1, Key("one", f"key {n}", b"body"))) for n in range(12)))
    assert [result[0].id for result in again] == [result[0].id for result in results]


async def test_a_batch_that_was_interrupted_goes_on_where_it_stood(
    world: World, planning: Planning, monkeypatch: pytest.MonkeyPatch
) -> None:
    await network(world)
    _begin(world, planning)

    def chain() -> Admit:
        """Each follows the one before; as of a request that is sent again, with other ids."""
        asks = [sent(world, 0.1)]
        for _ in range(11):
            asks.append(sent(world, 0.1, after=asks[-1].id))
        return Admit(asks, "one", POLICY, Key("one", "chain", b"body"))

    attempt = desk_module.Desk._attempt

    async def away_in_the_second(self: Any, *given: Any) -> Any:
        if planning.plans >= PER_TRANSACTION:
            raise DatabaseAway("gone")
        return await attempt(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(desk_module.Desk, "_attempt", away_in_the_second)
        first = await world.do(chain())
    assert [isinstance(result, Transfer) for result in first] == [True] * PER_TRANSACTION + [False] * 7
    assert {result.code for result in first[PER_TRANSACTION:]} == {"unavailable"}

    second = await world.do(chain())
    assert [result.id for result in second[:PER_TRANSACTION]] == [result.id for result in first[:PER_TRANSACTION]]
    assert [result.spec.after for result in second] == [None, *(result.id for result in second[:-1])]
    third = await world.do(chain())
    assert [result.id for result in third] == [result.id for result in second]
    (row,) = await world.rows("SELECT count(*) AS n FROM transfers")
    assert row.n == 12
    await world.check()


async def test_nothing_decided_is_nothing_booked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:

    async def away(*_: Any) -> Any:
        raise DatabaseAway("gone")

    monkeypatch.setattr(desk_module.Desk, "_attempt", away)
    with pytest.raises(DatabaseAway):
        await world.do(_batch(world, "one", 3))


async def test_each_refusal_is_counted_once(world: World, planning: Planning) -> None:
    await world.links(L1)
    _begin(world, planning)
    results = await world.do(_batch(world, "one", 12, source="B", destination="nowhere"))
    assert {result.code for result in results} == {"unknown-node"}
    (row,) = await world.rows("SELECT sum(number) AS n FROM refusals")
    assert row.n == 12


async def test_offers_are_left_out_and_that_is_said_when_there_is_no_time(world: World, planning: Planning) -> None:
    await world.links(L1)
    _begin(world, planning)
    late: dict[str, Any] = {"volume_bytes": 10**15, "deadline_us": START_US + 3600 * US_PER_S}
    (with_offers,) = await world.do(_batch(world, "one", 1, **late))
    assert with_offers.more["counter_offers"] and "offers_omitted" not in with_offers.more
    world.desks[0]._busy_s = iter(range(1000)).__next__
    (without,) = await world.do(_batch(world, "one", 1, **late))
    assert isinstance(without, Problem) and without.code == "infeasible" and without.more["binding"]["link"] == "L1"
    assert without.more["counter_offers"] == [] and "/v1/quotes" in without.more["offers_omitted"]


def test_callers_take_turns_and_nobody_overtakes_himself() -> None:
    loop = asyncio.new_event_loop()
    queue = Queue()
    for owner, number in [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1), ("b", 2)]:
        queue.put(Work(Admit([], f"{owner}", POLICY, Key(owner, str(number), b"")), loop.create_future()))
    loop.close()

    def names(works: list[Work]) -> list[str]:
        return [f"{work.command.key.owner}{work.command.key.key}" for work in works]

    first = queue.take(4)
    assert names(first) == ["a1", "b1", "c1", "a2"] and len(queue) == 2
    queue.put_back(first[2:])
    assert names(queue.take(10)) == ["c1", "a2", "b2", "a3"] and not queue
