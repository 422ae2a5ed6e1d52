# SPDX-License-Identifier: Apache-2.0
"""State changes and ends: commit, start, finish, fail, cancel, expire. Unused capacity is returned to gamma(t) at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.core.reason import Reason
from broker.core.segments import Segment
from broker.core.transfer import Action, State
from broker.desk.ground import start_signals
from broker.desk.ground.batch import Batch, summarise
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.modify import OneTransfer
from broker.store.transfers import Transfer

_PAST_TENSE = {
    Action.COMMIT: "transfer.committed",
    Action.START: "transfer.started",
    Action.FINISH: "transfer.finished",
    Action.FAIL: "transfer.failed",
    Action.CANCEL: "transfer.canceled",
    Action.EXPIRE: "transfer.expired",
}


@dataclass(slots=True)
class Commit(OneTransfer):
    """A held booking becomes a reservation."""

    def decide(self, batch: Batch) -> Transfer:
        """HELD becomes RESERVED. Raises Problem where the hold is over."""
        transfer = self.transfer(batch)
        if transfer.state is State.RESERVED:
            return transfer  # said twice
        if transfer.hold_until_us is not None and transfer.hold_until_us <= batch.now_us:
            raise Problem("conflict", "the hold has run out; ask again", {"state": str(State.EXPIRED)})
        before = summarise(transfer)
        batch.move(transfer, Action.COMMIT)
        transfer.hold_until_us = None
        batch.change(transfer, self.actor, _PAST_TENSE[Action.COMMIT], before)
        return transfer


@dataclass(slots=True)
class Start(OneTransfer):
    """The first byte has left (managed) or the booked time has come (reserve)."""

    at_us: int = 0

    def decide(self, batch: Batch) -> Transfer:
        """It becomes ACTIVE; twice is once."""
        transfer = self.transfer(batch)
        if transfer.state is State.ACTIVE:
            return transfer
        before = summarise(transfer)
        batch.move(transfer, Action.START)
        transfer.actual_start_us = self.at_us or batch.now_us
        batch.change(transfer, self.actor, _PAST_TENSE[Action.START], before)
        return transfer


# Clocks of hosts are off by a few milliseconds, and a predecessor lets go by so much sooner.
_EARLY_US = 20_000


@dataclass(slots=True)
class Unchain(OneTransfer):
    """Its sender began without the end of its predecessor: on a signal that let it go, or on none in time.

    Whatever becomes of the predecessor now is booked around it. One that began clearly before its booked begin did so on an early end: of
    that the broker hears, too, and then moves all of its booking (`handover`).
    """

    at_us: int = 0

    def decide(self, batch: Batch) -> Transfer:
        """The successor no longer waits for its signal."""
        transfer = self.transfer(batch)
        at = self.at_us or batch.now_us
        if not start_signals.waits(transfer) or transfer.paused or transfer.start_us is None or at < transfer.start_us - _EARLY_US:
            return transfer
        before = summarise(transfer)
        transfer.released_us = batch.now_us
        batch.change(transfer, self.actor, "transfer.unchained", before)
        return transfer


@dataclass(slots=True)
class End(OneTransfer):
    """FINISH, FAIL, CANCEL or EXPIRE: release everything that is still booked. Ending in the state it already has is no change.

    An end that was only assumed is corrected. Who cancels a transfer that is unheard does not stop its sender: what is booked stays so
    until that one knows (`hearing.GiveBack`).
    """

    action: Action = Action.CANCEL
    at_us: int | None = None
    bytes_done: int | None = None
    checksum: str | None = None
    reason: Reason | None = None

    def decide(self, batch: Batch) -> Transfer:
        """End it and release its unused booking. Idempotent."""
        transfer = self.transfer(batch)
        if not transfer.live and not transfer.assumed and _leads_to(self.action) is transfer.state:
            return transfer
        before = summarise(transfer)
        if transfer.assumed:
            batch.move(transfer, Action.HEAR)
            transfer.assumed = False
        unheard_us = transfer.unheard_us if self.action is Action.CANCEL else None
        end(batch, transfer, self.action, self.reason, release=unheard_us is None)
        transfer.unheard_us = unheard_us
        if self.bytes_done is not None:
            transfer.bytes_done = self.bytes_done
        if transfer.state is State.FINISHED:
            # A holding time ends with its plan: no agent counts its bytes. Otherwise the report has the count.
            if self.bytes_done is None:
                transfer.bytes_done = transfer.booked_bytes if transfer.spec.volume_bytes is None else transfer.spec.volume_bytes
            transfer.checksum = self.checksum
            transfer.actual_start_us = transfer.actual_start_us or transfer.start_us
        transfer.actual_finish_us = self.at_us or batch.now_us
        batch.change(transfer, self.actor, _PAST_TENSE[self.action], before)
        return transfer


def end(batch: Batch, transfer: Transfer, action: Action, reason: Reason | None, *, release: bool = True) -> None:
    """Move to an end state and release the remaining booking."""
    batch.move(transfer, action)
    if release:
        transfer.segments = batch.release_after(transfer, batch.now_us)
        transfer.unheard_us = None
    transfer.hold_until_us = None
    transfer.paused = False
    transfer.measured_bps = None
    transfer.reason = reason
    transfer.actual_finish_us = batch.now_us


def find_released_parts(before: Sequence[Segment], after: Sequence[Segment]) -> tuple[Segment, ...]:
    """What of the segments `before` is not among those `after` a release, which cuts them short or leaves them out."""
    kept = {(segment.begin_us, segment.path): segment.end_us for segment in after}
    cuts = ((segment, kept.get((segment.begin_us, segment.path), segment.begin_us)) for segment in before)
    return tuple(segment._replace(begin_us=cut) for segment, cut in cuts if cut < segment.end_us)


def _leads_to(action: Action) -> State:
    return {Action.FINISH: State.FINISHED, Action.FAIL: State.FAILED, Action.CANCEL: State.CANCELED, Action.EXPIRE: State.EXPIRED}[
        action
    ]
