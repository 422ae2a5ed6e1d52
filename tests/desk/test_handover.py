# SPDX-License-Identifier: Apache-2.0
"""What an end gives back goes to the successor first; what makes a predecessor later makes the successor later, or frees it."""

import pytest

from broker.core.network import Link
from broker.core.transfer import Action, State
from broker.core.units import US_PER_S
from broker.desk.admit import Quote
from broker.desk.change import BookRest, Change, Pause, Resume
from broker.desk.command import Preview
from broker.desk.forward import PullForward
from broker.desk.links import AddWindow
from broker.desk.preempt import AdmitByPreemption
from broker.desk.problems import Problem
from broker.desk.release import Commit, Start
from broker.store.bookings import WindowRecord
from broker.store.transfers import Transfer
from tests.conftest import Clock
from tests.desk.chain import SECOND, booked, chain_of, end, network, now, reads, seconds, sent
from tests.desk.world import GBIT, POLICY, World, world

ENDS = (Action.FINISH, Action.FAIL, Action.CANCEL)
CLOCK = {"kind": "clock", "timeout_s": None, "on_timeout": "start", "on_overrun": "delay"}
FALLBACK = {"kind": "direct", "timeout_s": None, "on_timeout": "start", "on_overrun": "fallback"}


async def events(w: World, transfer: Transfer) -> list[str]:
    rows = await w.rows("SELECT action FROM events WHERE subject = :id ORDER BY seq", id=transfer.id)
    return [row.action.removeprefix("transfer.") for row in rows]


# -- admission ------------------------------------------------------------------------------------------------------------------------


async def test_a_successor_begins_where_its_predecessor_is_to_finish(database_url: str, clock: Clock) -> None:
    async with world(database_url, clock) as w:
        # Room enough for both at once: only the wish to follow keeps them apart.
        await network(w, Link("L1", "A", "B", 10 * GBIT))
        first, second, third = await chain_of(w, 3, rate_max_bps=GBIT)
        assert second.start_us == first.finish_us and third.start_us == second.finish_us
        assert second.signal is not None and (second.signal["kind"], second.signal["on_overrun"]) == ("direct", "delay")
        assert second.not_before_us < second.start_us, "a caller's own limit is kept apart, for early starts"
        asked = clock.now_us + 60 * US_PER_S
        (late,) = await booked(w, sent(w, after=third.id, not_before_us=asked))
        assert (late.start_us, late.not_before_us) == (asked, asked)
        (by_clock,) = await booked(w, sent(w, rate_max_bps=GBIT, after=third.id, signal=CLOCK))
        assert seconds(w, by_clock.start_us) < 2, "the clock waits for nobody"
        await w.check()


async def test_who_cannot_be_waited_for(database_url: str, clock: Clock) -> None:
    async with world(database_url, clock) as w:
        await network(w)
        reserved, first, paused, over = await booked(w, w.ask(SECOND), sent(w), sent(w), sent(w, 1))
        await w.do(Pause(paused.id, "me", None, POLICY))
        await end(w, over)
        soon = clock.now_us + 5 * US_PER_S
        for more, code, field, word in (
            ({"after": "tr_none"}, "invalid", "after", "no transfer"),
            ({"after": reserved.id}, "unsupported", "after", "reserve"),
            ({"after": paused.id}, "conflict", "after", "paused"),
            ({"after": over.id}, "conflict", "after", "FINISHED"),
            ({"after": first.id, "deadline_us": soon}, "invalid", "deadline", first.id),
            ({"signal": CLOCK}, "invalid", "signal", "after"),
        ):
            (refused,) = await w.admit(sent(w, **more))
            assert isinstance(refused, Problem) and refused.code == code, refused
            assert [e["field"] for e in refused.more["errors"]] == [field] and word in refused.detail
            with pytest.raises(Problem) as quoted:
                await w.do(Quote(sent(w, **more), ["vbls"], POLICY))
            assert (quoted.value.code, quoted.value.detail) == (code, refused.detail)
        (refused,) = await w.admit(w.ask(SECOND, after=first.id))
        assert isinstance(refused, Problem) and refused.more["errors"][0]["field"] == "after"
        (refused,) = await w.admit(sent(w, after=first.id, deadline_us=clock.now_us + 32 * US_PER_S, volume_bytes=1) if False else sent(
            w, 100, after=first.id, deadline_us=clock.now_us + 60 * US_PER_S
        ))
        assert isinstance(refused, Problem) and refused.code == "infeasible" and refused.more["counter_offers"]
        offered = next(offer for offer in refused.more["counter_offers"] if offer["kind"] == "largest_volume")
        (taken,) = await booked(w, w.ask(
            offered["volume_bytes"], "h1", "h2", payload={"path": "x"}, after=first.id, deadline_us=clock.now_us + 60 * US_PER_S
        ))
        assert taken.start_us >= first.finish_us
        await w.check()


async def test_a_batch_refers_to_its_own(database_url: str, clock: Clock) -> None:
    async with world(database_url, clock) as w:
        await network(w)
        asks = [sent(w), sent(w, deadline_us=clock.now_us + US_PER_S * 2), sent(w)]
        asks.append(sent(w, after=asks[0].id))
        asks.append(sent(w, after=asks[1].id))
        made = await w.admit(*asks)
        assert isinstance(made[1], Problem) and isinstance(made[4], Problem)
        assert made[4].code == "conflict" and "item 1" in made[4].detail
        assert made[3].after == made[0].id and made[3].start_us >= made[0].finish_us
        await w.check()


async def test_only_so_many_wait_for_one_and_behind_each_other(
    database_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.desk.chains.MOST_SUCCESSORS", 2)
    monkeypatch.setattr("broker.desk.chains.LONGEST", 3)
    async with world(database_url, clock) as w:
        await network(w)
        chain = await chain_of(w, 3, seconds=1)
        (refused,) = await w.admit(sent(w, after=chain[-1].id))
        assert isinstance(refused, Problem) and "3" in refused.detail
        await booked(w, sent(w, 1, after=chain[0].id))
        (refused,) = await w.admit(sent(w, after=chain[0].id))
        assert isinstance(refused, Problem) and refused.code == "conflict"


# -- ends ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ENDS)
async def test_an_end_moves_the_whole_chain_up(action: Action, database_url: str, clock: Clock) -> None:
    async with world(database_url, clock) as w:
        await network(w)
        chain = await chain_of(w, 4)
        clock.advance(2)
        await w.do(Start(chain[0].id, "me"))
        clock.advance(3)
        (someone,) = await booked(w, w.ask(5 * SECOND))
        await end(w, chain[0], action)
        moved = await now(w, *chain[1:])
        assert 0 <= -seconds(w, moved[0].start_us) < 1e-4, "at once"
        for ahead, behind in zip(moved, moved[1:], strict=False):
            assert behind.start_us == ahead.finish_us
        for was, is_ in zip(chain[1:], moved, strict=True):
            assert reads(is_) == reads(was) and is_.finish_us < was.finish_us - 4 * US_PER_S
            assert (is_.promised_us, is_.plan_revision) == (was.promised_us, 2)
        assert moved[0].released_us is not None and moved[1].released_us is None
        assert await events(w, chain[1]) == ["admitted", "handed_over"]
        assert await events(w, chain[2]) == ["admitted", "moved_up"]
        assert (await now(w, someone))[0].start_us == someone.start_us
        await w.check()


async def test_what_does_not_fit_as_a_whole_stays(database_url: str, clock: Clock) -> None:
    """The sender's own link is taken until the booked begin: the predecessor's place is no use to it."""
    async with world(database_url, clock) as w:
        await network(w, nic_bps=GBIT)
        first, _ = await booked(w, sent(w), sent(w, 12, "h3", "h4", options=None or w.ask().options) if False else w.ask(1))
        second = (await booked(w, sent(w, 5, "h3", "h4", after=first.id)))[0]
        (busy,) = await booked(w, w.ask(4 * SECOND, "h3", "A~x") if False else w.ask(1))
        assert busy
        await end(w, first)
        (moved,) = await now(w, second)
        assert moved.start_us < second.start_us
        await w.check()
