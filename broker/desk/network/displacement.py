# SPDX-License-Identifier: Apache-2.0
"""Displacement: which transfers no longer fit after a loss of capacity, and how they are replanned.

The remaining capacity is assigned in order of priority; of equal ones, guaranteed transfers come before best-effort ones, and older ones before
younger ones. A transfer that does not fit releases its booking and is replanned over all its paths, in the same order, on the changed network.
Its promise is broken if the new plan ends later than promised, or if there is none; then its reason names the link.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.calendar import Calendar, Step
from broker.core.reason import Reason
from broker.core.segments import Segment
from broker.core.transfer import Action, State
from broker.core.units import FOREVER_US, format_time
from broker.desk.chains.handover import update_successors
from broker.desk.ground.batch import Batch, summarise
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.transitions import end
from broker.desk.planning.replan import describe_promise, lead_of, rebook
from broker.store import bookings, transfers
from broker.store.transfers import Transfer

Capacities = Mapping[str, Sequence[Step]]  # capacity(t) of links as it shall be; that of a deleted link is NOTHING

_MAX_SHOWN = 100
# While thousands are planned anew the process answers others every so often, and PostgreSQL sees that the session lives.
_BREATHE, _SIGN_OF_LIFE = 16, 512


@dataclass(slots=True)
class Displaced:
    """A transfer that has no place on `link_id` any more. What it has booked from `cut_us` on is to be given back."""

    transfer: Transfer
    link_id: str
    cut_us: int
    within_slots: bool  # capacity is gone at once: the cut cannot wait for the end of a slot


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a displaced transfer. `finish_us` is None when the rest could not be booked anew."""

    id: str
    label: str | None
    source: str
    destination: str
    priority: int
    state: State
    link_id: str
    promised_us: int | None
    finish_before_us: int | None
    finish_us: int | None
    broken: bool
    reason: Reason | None


async def find_displaced(connection: AsyncConnection, batch: Batch, capacities: Capacities, policy: Policy) -> list[Displaced]:
    """The transfers that no longer fit when the links have `capacities`, in the order of replanning. Locks the transfers that it reads."""
    lacking = {link_id: steps for link_id, steps in capacities.items() if _lacks(batch, link_id, steps)}
    if not lacking:
        return []
    seats = {link_id: Calendar(steps) for link_id, steps in lacking.items()}
    ids = await bookings.find_transfers(connection, lacking, batch.now_us)
    # Who waits for them may have to move with them, and all rows are locked in one go, in order.
    chain = await transfers.find_chained(connection, ids)
    locked = await transfers.get_many(connection, chain.behind | chain.ahead, lock=True)
    batch.know(locked.values())
    found = [locked[name] for name in ids if name in locked]
    displaced = []
    for transfer in sorted(found, key=_importance):
        ahead = [s for s in transfer.segments if s.end_us > batch.now_us and not seats.keys().isdisjoint(s.path)]
        if (full := _seat(seats, ahead, batch.now_us)) is None:
            continue
        # What runs goes on until its agents can have heard of it, or until its slot ends, if there is room for so long.
        cut = batch.now_us + (0 if _is_over(transfer) else lead_of(transfer, policy))
        until = {s: batch.slot_boundary(s.path, cut) for s in ahead}
        kept = [s._replace(end_us=min(s.end_us, until[s])) for s in ahead if s.begin_us < until[s]]
        at_once = _seat(seats, kept, batch.now_us) is not None
        displaced.append(Displaced(transfer, full, batch.now_us if at_once else cut, at_once))
    return displaced


def refuse_to_break(displaced: Sequence[Displaced], replan: bool, what: str = "this") -> None:
    """Raises Problem, unless the operator has said to go on."""
    held = [item.transfer for item in displaced if not _is_over(item.transfer)]
    if held and not replan:
        raise Problem(
            "breaks-promises",
            f"{what} would break the promises made to {len(held)} transfers; send on_broken=replan to plan them anew, "
            "or first preview=true to see what would become of each",
            {"broken": [describe_promise(transfer) for transfer in held[:_MAX_SHOWN]], "broken_total": len(held)},
        )


def give_back(batch: Batch, displaced: Sequence[Displaced]) -> list[dict[str, Any]]:
    """Release what the displaced have booked; a summary of each from before. To be done while every link has its calendar.

    All give back before anyone is planned anew: the most important one then finds all of the room that there is.
    """
    before = []
    for item in displaced:
        transfer = item.transfer
        before.append(summarise(transfer))
        kept = batch.release_after(transfer, item.cut_us, within_slots=item.within_slots)
        cut = max([item.cut_us, *(segment.end_us for segment in kept)])
        transfer.cut_to(kept, cut)
    return before


async def plan_anew(
    connection: AsyncConnection,
    batch: Batch,
    displaced: Sequence[Displaced],
    before: Sequence[dict[str, Any]],
    actor: str,
    policy: Policy,
    gone: Mapping[str, str] = MappingProxyType({}),
) -> list[Outcome]:
    """Rebook the remaining volume of each on the changed network, the highest priority first.

    `before` is what `give_back` said, `gone` says what happened to links of which nothing is left.
    """
    if batch.rehearsed:
        await connection.rollback()  # everything is read and nothing will be written: release the locks now
    outcomes = []
    noted = len(batch.noted)
    for number, (item, summed) in enumerate(zip(displaced, before, strict=True)):
        transfer = item.transfer
        batch.transfers[transfer.id] = transfer
        if _is_over(transfer):
            batch.change(transfer, actor, "transfer.released", summed)
        else:
            outcomes.append(_plan_anew(batch, item, policy, gone))
            batch.change(transfer, actor, "transfer.replanned", summed)
        if number % _SIGN_OF_LIFE == _SIGN_OF_LIFE - 1:
            await bookings.topology_version(connection)
        elif number % _BREATHE == _BREATHE - 1:
            await asyncio.sleep(0)
    update_successors(batch, batch.noted[noted:], policy)
    return outcomes


def _plan_anew(batch: Batch, item: Displaced, policy: Policy, gone: Mapping[str, str]) -> Outcome:
    transfer, link_id = item.transfer, item.link_id
    why = gone.get(link_id, f"the capacity of {link_id} was lowered")
    promised, finish_before = transfer.promised_us, transfer.finish_us
    mark = batch.mark()
    try:
        if transfer.complete_by(transfer.plan_from_us):  # it lost no more than the rest of its last slot
            transfer.finish_us = max(segment.end_us for segment in transfer.segments)
            transfer.plan_revision += 1
        else:
            rebook(batch, transfer, None, "capacity_lowered", why, policy)
    except Problem as problem:
        batch.back_to(mark)
        reason = Reason("capacity_lost", f"{why}, and the rest cannot be booked anew: {problem.detail}", link_id)
        end(batch, transfer, Action.EXPIRE if transfer.state is State.HELD else Action.FAIL, reason)
    finish = transfer.finish_us if transfer.live else None
    broken = finish is None or finish > (promised or FOREVER_US)
    if finish is not None:
        transfer.reason = _late(transfer, why, link_id) if broken else None
    return Outcome(
        transfer.id,
        transfer.spec.label,
        transfer.spec.source,
        transfer.spec.destination,
        transfer.spec.priority,
        transfer.state,
        link_id,
        promised,
        finish_before,
        finish,
        broken,
        transfer.reason,
    )


def _late(transfer: Transfer, why: str, link_id: str) -> Reason:
    assert transfer.finish_us is not None and transfer.promised_us is not None
    if transfer.reason is not None and transfer.reason.code == "promise_broken":  # the deadline: rebook has said so
        return replace(transfer.reason, limited_by=link_id)
    times = f"done by {format_time(transfer.finish_us)} instead of {format_time(transfer.promised_us)}"
    return Reason("capacity_lowered", f"{why}: {times}", link_id, transfer.finish_us)


def _importance(transfer: Transfer) -> tuple[bool, int, bool, int, str]:
    """Sorts the most important first."""
    return _is_over(transfer), -transfer.spec.priority, transfer.spec.best_effort, transfer.created_us, transfer.id


def _is_over(transfer: Transfer) -> bool:
    """Does it hold nothing but the rest of the slot in which it ended or was paused?"""
    return not transfer.live or transfer.paused


def _lacks(batch: Batch, link_id: str, capacity: Sequence[Step]) -> bool:
    """Is more booked on the link than it would have?"""
    trial = batch.replica.calendars[link_id].copy()
    trial.set_capacity(capacity)
    return trial.lowest(batch.now_us, FOREVER_US) < 0


def _seat(seats: Mapping[str, Calendar], segments: Sequence[Segment], now_us: int) -> str | None:
    """Book `segments` on the calendars in `seats`, as a whole or not at all. Returns None, or a link without room."""
    wanted = [(link_id, s) for s in segments for link_id in s.path if link_id in seats]
    for link_id, s in wanted:
        seats[link_id].book(s.begin_us, s.end_us, s.rate_bps)
    for link_id, s in wanted:
        if seats[link_id].lowest(max(s.begin_us, now_us), s.end_us) < 0:
            for taken, back in wanted:
                seats[taken].release(back.begin_us, back.end_us, back.rate_bps)
            return link_id
    return None
