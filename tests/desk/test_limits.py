# SPDX-License-Identifier: Apache-2.0
"""What a token may have at once: whichever door it comes through, in whatever order, and with several desks at a time."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from broker.core.allowance import GB_HOUR, Allowance, Use, booked_ahead
from broker.core.network import Link
from broker.core.transfer import Action
from broker.core.units import US_PER_S
from broker.desk.admission.admit import Admit
from broker.desk.admission.ask import Ask
from broker.desk.admission.preemption import AdmitByPreemption
from broker.desk.admission.quote import Quote
from broker.desk.ground.limits import Account
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.modify import Pause, Rebook, Resume
from broker.desk.lifecycle.transitions import End
from broker.store import token_use
from broker.store.transfers import Transfer
from tests.asks import make_change
from tests.desk.world import GBIT, POLICY, World
from tests.service import START_US, Clock

L1 = Link("L1", "A", "B", GBIT)
HOUR = 3600
GB = 10**9


def admit(w: World, *asks: Ask, owner: str = "me", **allowed: Any) -> Admit:
    return Admit(asks or [w.ask()], owner, POLICY, allowance=Allowance(**allowed))


def account(owner: str = "me", **allowed: Any) -> Account:
    return Account(owner, Allowance(**allowed))


def refused(answer: Any, limit: str, code: str = "limit-exceeded") -> dict[str, Any]:
    assert isinstance(answer, Problem), answer
    assert (answer.code, answer.more["limit"]["name"]) == (code, limit), answer
    found: dict[str, Any] = answer.more["limit"]
    return found


async def use(w: World, owner: str = "me") -> Use:
    async with w.look.transaction() as connection:
        return (await token_use.read(connection, [owner]))[owner]


async def test_open_transfers(world: World) -> None:
    await world.links(L1)
    answers = await world.do(admit(world, world.ask(), world.ask(), world.ask(), open_transfers=2))
    assert [type(answer) for answer in answers] == [Transfer, Transfer, Problem]
    assert refused(answers[2], "open_transfers") == {"name": "open_transfers", "value": 2, "used": 2}
    refused((await world.do(admit(world, open_transfers=2)))[0], "open_transfers")
    assert isinstance((await world.do(admit(world, owner="you", open_transfers=2)))[0], Transfer), "of another token"
    for planner in ("vbls", "vifi"):
        more = [world.ask(planner=planner) for _ in range(3)]
        answers = await world.do(admit(world, *more, open_transfers=4))
        assert [type(answer) for answer in answers[:2]] == [Transfer, Transfer]
        refused(answers[2], "open_transfers")
        for answer in answers[:2]:
            await world.do(End(answer.id, "me", action=Action.CANCEL))
    assert (await use(world)).open == 2


async def test_what_is_booked_ahead(world: World) -> None:
    """A booking counts from the request to its end, and what ends early gives it back."""
    await world.links(L1)
    late = START_US + 100 * HOUR * US_PER_S
    near, far, other = world.ask(GB), world.ask(GB, not_before_us=late), world.ask(GB, not_before_us=late)
    answers = await world.do(admit(world, near, far, other, booked_gb_hours=101))
    assert isinstance(answers[0], Transfer) and isinstance(answers[1], Transfer)
    limit = refused(answers[2], "booked_gb_hours")
    assert limit["value"] == 101 and 100 < limit["used"] < 101
    counted = [booked_ahead(t.booked_bytes, t.created_us, t.finish_us) for t in answers[:2]]
    assert await use(world) == Use(2, sum(counted)) and sum(counted) // GB_HOUR == 100
    await world.do(Pause(far.id, "me"))
    assert await use(world) == Use(2, counted[0]), "what is paused has nothing booked"
    refused((await world.do(admit(world, world.ask(2 * GB, not_before_us=late), booked_gb_hours=101)))[0], "booked_gb_hours")
    await world.do(End(near.id, "me", action=Action.CANCEL))
    assert await use(world) == Use(1, 0)


DOORS: dict[str, Callable[[World, str, str, Account], Any]] = {
    "change": lambda _, plain, __, me: make_change(plain, "me", volume_bytes=50 * GB, account=me),
    "later": lambda _, plain, __, me: make_change(plain, "me", not_before_us=START_US + 20 * HOUR * US_PER_S, account=me),
    "resume": lambda _, __, paused, me: Resume(paused, "me", None, POLICY, me),
    "admit": lambda w, *_: admit(w, w.ask(50 * GB), booked_gb_hours=1),
    "joint": lambda w, *_: admit(w, w.ask(50 * GB, planner="vifi"), w.ask(50 * GB, planner="vifi"), booked_gb_hours=1),
    "preempt": lambda w, *_: AdmitByPreemption(
        [w.ask(50 * GB, preempt=True, priority=5)], "me", POLICY, allowance=Allowance(booked_gb_hours=1)
    ),
    "quote": lambda w, _, __, me: Quote(w.ask(50 * GB), ["vbls", "fbls"], POLICY, me),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("preview", [False, True], ids=["done", "previewed"])
async def test_every_door_refuses_and_leaves_everything_as_it_was(world: World, door: str, preview: bool, clock: Clock) -> None:
    await world.links(L1)
    plain, paused = await world.admit(world.ask(GB), world.ask(40 * GB))
    assert isinstance(plain, Transfer) and isinstance(paused, Transfer)
    await world.do(Pause(paused.id, "me"))
    before = await world.everything()
    command = DOORS[door](world, plain.id, paused.id, account(booked_gb_hours=1))
    try:
        answer = (await world.desks[0].foresee(command)).result if preview else await world.do(command)
        answers = list(answer.values()) if isinstance(answer, dict) else answer
    except Problem as problem:
        answers = [problem]
    for one in answers:
        refused(one, "booked_gb_hours")
    assert await world.everything() == before
    await world.check()


@pytest.mark.parametrize(
    "wish", [{"priority": 6}, {"not_before_us": START_US + 2 * HOUR * US_PER_S}, {"deadline_us": START_US + 2 * HOUR * US_PER_S}]
)
async def test_what_may_not_be_asked_for(world: World, wish: dict[str, Any]) -> None:
    """422 naming the field, whatever is free: when it is booked, quoted or changed. What was agreed before stays so."""
    allowed: dict[str, Any] = {"priority": 5, "horizon_s": HOUR}
    limit, field = ("priority", "priority") if "priority" in wish else ("horizon_s", next(iter(wish)).removesuffix("_us"))
    await world.links(L1)
    before, agreed = await world.admit(world.ask(), world.ask(**wish))
    assert isinstance(before, Transfer) and isinstance(agreed, Transfer)
    answers = await world.do(admit(world, world.ask(**wish), world.ask(), **allowed))
    assert isinstance(answers[1], Transfer)
    refused(answers[0], limit, "beyond-limits")
    assert [error["field"] for error in answers[0].more["errors"]] == [field]
    for command in (
        Quote(world.ask(**wish), ["vbls"], POLICY, account(**allowed)),
        make_change(before.id, "me", **wish, account=account(**allowed)),
    ):
        with pytest.raises(Problem) as caught:
            await world.do(command)
        refused(caught.value, limit, "beyond-limits")
    changed = await world.do(make_change(agreed.id, "me", label="new", **wish, account=account(**allowed)))
    assert changed.spec.label == "new"


async def test_nothing_ends_beyond_the_horizon(world: World) -> None:
    """One token booked a link until 2052."""
    await world.links(L1)
    (long,) = await world.do(admit(world, world.ask(10**15), horizon_s=HOUR))
    assert refused(long, "horizon_s", "beyond-limits")["value"] == HOUR
    assert [error["field"] for error in long.more["errors"]] == ["volume_bytes"]


async def test_who_may_wait_for_somebody_elses_transfer(world: World) -> None:
    await world.links(L1)
    await world.nic("h1", "A", GBIT)
    await world.nic("h2", "B", GBIT)
    hosts = {"source": "h1", "destination": "h2", "mode": "wrapped"}
    (first,) = await world.do(admit(world, world.ask(GB, **hosts)))
    assert isinstance(first, Transfer), first

    def behind() -> Ask:
        return world.ask(GB, **hosts, after=first.id)

    for command in (
        admit(world, behind(), owner="you", successors=0),
        Quote(behind(), ["vbls"], POLICY, account("you", successors=0)),
    ):
        try:
            (answer,) = await world.do(command)
        except Problem as problem:
            answer = problem
        refused(answer, "successors", "forbidden")
        assert [error["field"] for error in answer.more["errors"]] == ["after"]
    own = await world.do(admit(world, behind(), successors=0))
    two = await world.do(admit(world, behind(), behind(), owner="you", successors=1))
    assert isinstance(own[0], Transfer) and isinstance(two[0], Transfer)
    refused(two[1], "successors", "forbidden")


async def test_what_the_broker_books_anew_is_never_refused(world: World, clock: Clock) -> None:
    """Even where the token has more than it may: its limit was lowered since."""
    await world.links(L1)
    (booked,) = await world.do(admit(world, world.ask(GB), booked_gb_hours=1))
    refused((await world.do(admit(world, world.ask(400 * GB), booked_gb_hours=1)))[0], "booked_gb_hours")
    clock.advance(4)
    slower = await world.do(Rebook(booked.id, "agent", safe_bytes=0, achieved_bps=10**6, policy=POLICY))
    assert slower.use.byte_us > GB_HOUR and await use(world) == slower.use
    refused((await world.do(admit(world, booked_gb_hours=1)))[0], "booked_gb_hours")
    smaller = await world.do(make_change(booked.id, "me", volume_bytes=GB // 2, account=account(booked_gb_hours=1)))
    assert smaller.use.byte_us < slower.use.byte_us, "less than before is always allowed"


async def test_an_operator_changes_what_others_have_booked(world: World) -> None:
    await world.links(L1)
    (booked,) = await world.do(admit(world, booked_gb_hours=1))
    changed = await world.do(make_change(booked.id, "operator", volume_bytes=300 * GB, account=Account("operator", Allowance())))
    assert await use(world) == changed.use and changed.use.byte_us > GB_HOUR and (await use(world, "operator")).open == 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.desks(3)
async def test_desks_at_once_let_no_more_pass(world: World, seed: int) -> None:
    """Each desk knows what its own last transaction saw. On links of their own, they do not even wait for each other."""
    print(f"seed {seed}")
    dice = random.Random(seed)
    await world.links(*(Link(f"L{i}", f"A{i}", f"B{i}", GBIT) for i in range(3)))
    booked: list[str] = []
    most = 7

    async def client(desk: int) -> None:
        for _ in range(12):
            await asyncio.sleep(dice.random() / 500)
            if booked and dice.random() < 0.3:
                await world.do(End(booked.pop(), "me", action=Action.CANCEL), desk)
                continue
            asks = [world.ask(1000, f"A{desk}", f"B{desk}", not_before_us=START_US + 10**12) for _ in range(dice.randrange(1, 4))]
            for answer in await world.do(admit(world, *asks, open_transfers=most), desk):
                if isinstance(answer, Transfer):
                    booked.append(answer.id)
                else:
                    refused(answer, "open_transfers")
            assert (await use(world)).open <= most

    await asyncio.gather(*(client(desk) for desk in range(3)))
    assert (await use(world)).open == len(booked)
    await world.check()
    # And nobody is refused by what a desk remembers: another one made room since.
    while booked:
        await world.do(End(booked.pop(), "me", action=Action.CANCEL), 0)
    for desk in range(3):
        answers = await world.do(
            admit(world, *(world.ask(1000, f"A{desk}", f"B{desk}") for _ in range(2)), open_transfers=most), desk
        )
        assert all(isinstance(answer, Transfer) for answer in answers)
    await world.check()


async def test_admission_reads_no_use_but_at_its_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What limits cost: one read for a token that this desk has not seen, then none, however many transfers it has."""
    reads: list[set[str]] = []
    read = token_use.read

    async def counted(connection: Any, owners: Any) -> Any:
        reads.append(set(owners))
        return await read(connection, owners)

    monkeypatch.setattr(token_use, "read", counted)
    await world.links(L1)
    for _ in range(5):
        await world.do(admit(world, open_transfers=5))
    assert reads == [{"me"}]
    refused((await world.do(admit(world, open_transfers=5)))[0], "open_transfers")
    assert reads == [{"me"}, {"me"}]
    await world.admit(world.ask())
    assert len(reads) == 2, "a token without limits is not looked up"
