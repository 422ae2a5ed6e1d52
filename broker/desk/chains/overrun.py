# SPDX-License-Identifier: Apache-2.0
"""A predecessor that needs longer: the broker books its remaining volume first, and its successors begin later if their deadlines allow.

The remainder is first planned on the free capacity, as if it had no successors. Only if it would then end after a successor is booked to
begin are that successor and those behind it released, and rebooked after it.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy

from broker.core.reason import Reason
from broker.core.units import format_time
from broker.desk.ground import start_signals
from broker.desk.ground.batch import Batch, summarise
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.planning.replan import Wanted, describe_promise, replan
from broker.store.transfers import Transfer

ACTOR = "hand-over"

# Each attempt plans the whole chain anew: after these, everybody stays where they are.
_MAX_ATTEMPTS = 8


def first_in_line(batch: Batch, transfer: Transfer, plan: Callable[[], None], policy: Policy, *, by_will: bool) -> None:
    """Carry out `plan`, which books `transfer` anew and raises Problem to refuse, before those that wait for it.

    `by_will`: somebody asked for the change, so it is refused (`breaks-promises`) where a successor of the same owner could not keep its
    deadline. Otherwise it has to be: successors that cannot be later, or do not want to (on_overrun), keep their places.
    """
    followers = _followers(batch, transfer, everybody=by_will)
    saved = {one.id: copy(one) for one in (transfer, *followers)}
    mark = batch.mark()

    def undo() -> None:
        batch.back_to(mark)
        for name, before in saved.items():
            batch.transfers[name].become(before)

    refusal: Problem | None = None
    try:
        plan()
    except Problem as problem:
        if not followers:
            raise
        refusal = problem
    if refusal is None and not any(is_early(batch, one) for one in followers):
        return
    staying: set[str] = set()
    for _ in range(_MAX_ATTEMPTS):
        undo()
        moving = _without(followers, staying)
        try:
            stuck = _attempt(batch, moving, saved, plan, policy)
        except Problem as problem:
            refusal = refusal or problem
            break
        if stuck is None:
            _tell(batch, moving, saved)
            return
        if by_will and stuck.owner == transfer.owner:
            broken = _would_break(stuck)
            undo()
            raise broken
        staying.add(stuck.id)
    undo()
    if refusal is not None:
        raise refusal
    plan()


def can_move(transfer: Transfer) -> bool:
    """Will its agents hear of another place?"""
    return not transfer.paused and transfer.unheard_us is None


def is_early(batch: Batch, transfer: Transfer) -> bool:
    """Is it booked to begin before the one that it waits for is to finish?"""
    return transfer.start_us is not None and not transfer.paused and transfer.start_us < start_signals.turn_us(batch, transfer)


def delay(batch: Batch, transfer: Transfer, missing_bytes: int, policy: Policy) -> None:
    """Book what it is to carry anew, behind its predecessor. Raises Problem, and leaves it as it was, where that does not fit."""
    replan(batch, transfer, Wanted.of(transfer), missing_bytes, transfer.spec.not_before_us, policy)
    if transfer.promised_us is not None and transfer.finish_us is not None and transfer.finish_us > transfer.promised_us:
        transfer.reason = Reason("predecessor_late", f"{transfer.spec.after} needs longer", transfer.spec.after, transfer.finish_us)


def missing_bytes(transfer: Transfer) -> int:
    """Of a transfer that has not begun: what was booked for times that are over has carried nothing."""
    return transfer.booked_bytes - transfer.carried_bytes


def _followers(batch: Batch, transfer: Transfer, *, everybody: bool) -> list[Transfer]:
    """Those behind it that can be moved, each after the one that it waits for."""
    found = [transfer]
    for ahead in found:  # grows meanwhile
        waiting_for_it = [
            one for one in batch.successors(ahead.id) if start_signals.find_awaited(batch, one) is not None and can_move(one)
        ]
        found += [one for one in waiting_for_it if everybody or start_signals.is_delayed(one)]
    return found[1:]


def _without(followers: Sequence[Transfer], staying: set[str]) -> list[Transfer]:
    """The transfers that move: without those that stay, and those behind these."""
    out = set(staying)
    moving = []
    for one in followers:
        if one.id in out or one.spec.after in out:
            out.add(one.id)
        else:
            moving.append(one)
    return moving


def _attempt(
    batch: Batch, moving: Sequence[Transfer], saved: Mapping[str, Transfer], plan: Callable[[], None], policy: Policy
) -> Transfer | None:
    """Carry out `plan` with the bookings of `moving` released, then rebook these; returns the first that does not fit.

    Raises Problem where even that leaves no room for `plan`.
    """
    for one in moving:
        kept = batch.release_after(one, batch.now_us)
        one.cut_to(kept, max([batch.now_us, *(segment.end_us for segment in kept)]))
    plan()
    for one in moving:
        before = saved[one.id]
        if not _takes_its_place(batch, one, before):
            try:
                delay(batch, one, missing_bytes(before), policy)
            except Problem:
                return one
    return None


def _takes_its_place(batch: Batch, transfer: Transfer, before: Transfer) -> bool:
    """Book what it had, if that is all ahead, behind its predecessor, and still free."""
    begins = min((segment.begin_us for segment in before.segments), default=0)
    if begins < max(batch.now_us, start_signals.turn_us(batch, transfer)):
        return False
    for segment in before.segments:
        if any(batch.calendars[name].lowest(segment.begin_us, segment.end_us) < segment.rate_bps for name in segment.path):
            return False
    transfer.become(before)
    batch.book(transfer.id, before.segments)
    return True


def _tell(batch: Batch, moved: Sequence[Transfer], saved: Mapping[str, Transfer]) -> None:
    for one in moved:
        before = saved[one.id]
        if one.plan_revision != before.plan_revision:
            batch.change(one, ACTOR, "transfer.delayed", summarise(before))


def _would_break(stuck: Transfer) -> Problem:
    when = "" if stuck.spec.deadline_us is None else f" by its deadline {format_time(stuck.spec.deadline_us)}"
    return Problem(
        "breaks-promises",
        f"{stuck.id} waits for this transfer and could not be done{when} any more: change or cancel it first",
        {"broken": [describe_promise(stuck)], "broken_total": 1},
    )
