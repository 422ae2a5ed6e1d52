# SPDX-License-Identifier: Apache-2.0
"""The effects of a change of a transfer on its successors, in the same transaction.

When it ends, its successor takes over its released capacity first: the successor's whole plan moves earlier, at its own rates and on its own
paths, and further successors follow. No transfer loses by it: a plan that does not fit as a whole stays. When a transfer is cancelled
before its turn, its successors wait for its predecessor. When a transfer moves so that it would end after a successor is booked to
begin, the successor is rebooked behind it, or stops waiting and keeps its booking. Pulling forward uses the capacity left after that.
"""

from collections import deque
from collections.abc import Iterable
from math import lcm

from broker.core.plan import Plan, PlanRejected, verify
from broker.core.transfer import State
from broker.core.units import MAX_SLOT_US, round_up
from broker.desk.chains.overrun import ACTOR, can_move, delay, is_early, missing_bytes
from broker.desk.ground import start_signals
from broker.desk.ground.batch import Batch, summarise
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.planning.replan import Wanted, request_remainder
from broker.planners import traits_of
from broker.store.transfers import Transfer

# Of a long chain, more move up with the next end: everybody waits meanwhile.
_MAX_MOVES = 16


def update_successors(batch: Batch, noted: Iterable[tuple[str, int | None]], policy: Policy) -> None:
    """Carry on what happened to transfers to those behind them. `noted`: each with the finish that it was planned to have before.

    Nothing is refused here: a command that could break a successor's deadline has refused that itself (`overrun`).
    """
    queue = deque(noted)
    moves = 0
    while queue:
        name, finish_before = queue.popleft()
        transfer = batch.transfers.get(name)
        if transfer is None:
            continue
        for successor in batch.successors(name):
            finish = successor.finish_us
            may_move = moves < _MAX_MOVES
            if not transfer.live or transfer.paused:
                changed = _hand_over(batch, transfer, successor, policy, may_move)
            elif is_early(batch, successor):
                changed = _fall_back(batch, successor, policy)
            else:
                sooner = finish_before is not None and transfer.finish_us is not None and transfer.finish_us < finish_before
                changed = sooner and may_move and _move_up(batch, successor, policy)
            if changed:
                moves += 1
                queue.append((successor.id, finish))


def shift(batch: Batch, transfer: Transfer, begin_us: int) -> bool:
    """Move all of its plan earlier, so that it begins at `begin_us` (or at the next slot of its links), at the same rates on the same
    paths. False, with everything as it was, where it has begun, is unheard, would not be earlier or does not fit as a whole.
    """
    links = batch.replica.network.links
    ahead = [s for s in transfer.segments if s.begin_us >= transfer.plan_from_us]
    used = {link_id for segment in ahead for link_id in segment.path}
    if not ahead or not used <= links.keys() or transfer.unheard_us is not None:
        return False  # no agent would hear of it
    slot = lcm(*(links[link_id].slot_us for link_id in used))
    earlier = ahead[0].begin_us - round_up(begin_us, slot)
    if earlier <= 0 or slot > MAX_SLOT_US:
        return False
    plan = Plan(tuple(s._replace(begin_us=s.begin_us - earlier, end_us=s.end_us - earlier) for s in ahead))
    mark = batch.mark()
    kept = batch.release_after(transfer, batch.now_us)
    try:
        request = request_remainder(transfer, Wanted.of(transfer), missing_bytes(transfer), batch.now_us, begin_us)
        verify(request, plan, links, batch.calendars)
    except (PlanRejected, Problem):
        batch.back_to(mark)
        return False
    batch.book(transfer.id, plan.segments)
    transfer.segments = (*kept, *plan.segments)
    transfer.start_us, transfer.finish_us, transfer.plan_from_us = plan.start_us, plan.finish_us, plan.start_us
    transfer.plan_revision += 1
    if transfer.promised_us is not None and plan.finish_us <= transfer.promised_us:
        transfer.reason = None  # whatever slowed it down: the promise is kept after all
    return True


def _hand_over(batch: Batch, ended: Transfer, successor: Transfer, policy: Policy, may_move: bool) -> bool:
    """Its predecessor has ended, or is paused, which frees the link as well. True if it moved, or waits for another one now."""
    before = summarise(successor)
    ahead = batch.transfers.get(ended.spec.after or "") if ended.released_us is None else None
    if ended.actual_start_us is None and ahead is not None and ahead.live and not ahead.paused and start_signals.waits(successor):
        batch.rechain(successor, ahead.id)
        if may_move:
            _shift_if_wanted(batch, successor, policy)
        batch.change(successor, ACTOR, "transfer.rechained", before)
        return True
    successor.released_us = batch.now_us
    expected = ended.actual_start_us is not None
    moved = may_move and not successor.paused and _shift_if_wanted(batch, successor, policy, expected)
    batch.change(successor, ACTOR, "transfer.handed_over", before)
    return moved


def _move_up(batch: Batch, successor: Transfer, policy: Policy) -> bool:
    before = summarise(successor)
    moved = not successor.paused and start_signals.waits(successor) and _shift_if_wanted(batch, successor, policy)
    if moved:
        batch.change(successor, ACTOR, "transfer.moved_up", before)
    return moved


def _shift_if_wanted(batch: Batch, successor: Transfer, policy: Policy, expected: bool = True) -> bool:
    notice = _notice_us(successor, policy, expected)
    earliest = max(batch.now_us + notice, successor.spec.not_before_us, start_signals.earliest_us(batch, successor))
    return not traits_of(successor.spec.planner).late and shift(batch, successor, earliest)


def _notice_us(successor: Transfer, policy: Policy, expected: bool) -> int:
    """How long its agents take to hear of it. Behind one that runs they stand ready: a signal comes before the broker knows, and what is
    booked from now on is theirs; the broker's own word has its way before it. Behind one that never began, or by the clock, they prepare.
    """
    if successor.state is State.ACTIVE:
        return 0
    if not expected or start_signals.begins_by_clock(successor):
        return policy.managed_lead_us
    return start_signals.word_us(successor.spec.signal)


def _fall_back(batch: Batch, successor: Transfer, policy: Policy) -> bool:
    """Its predecessor will end only after it is booked to begin. True if it ends later now."""
    before, mark = summarise(successor), batch.mark()
    if start_signals.is_delayed(successor) and can_move(successor):
        try:
            delay(batch, successor, missing_bytes(successor), policy)
        except Problem:
            batch.back_to(mark)
        else:
            batch.change(successor, ACTOR, "transfer.delayed", before)
            return True
    successor.released_us = batch.now_us
    batch.change(successor, ACTOR, "transfer.unchained", before)
    return False
