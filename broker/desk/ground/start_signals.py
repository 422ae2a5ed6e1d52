# SPDX-License-Identifier: Apache-2.0
"""Chains: a transfer with `after` begins when another one, its predecessor, has ended (RR-6205, section 2.2: time control by signals).

Until then its start depends on its predecessor: its booking does not begin before the predecessor is planned to finish. Only a successor
that starts by the clock keeps its own time. When a predecessor moves, its successors move as well (`handover`, `overrun`).
"""

from broker.core.transfer import Mode, State
from broker.core.transfer_spec import OnOverrun, SignalKind, StartSignal
from broker.core.units import US_PER_S
from broker.desk.ground.batch import Batch
from broker.desk.ground.problems import Problem
from broker.store.transfers import Transfer

# What is not said of a start signal.
DIRECT = StartSignal()

# What the broker's word takes to a sender that waits for it: a transaction, and the answer to its poll. 65 to 90 ms on two busy cores.
WORD_US = 100_000

# A change of the first moves all of them, while everybody else waits.
LONGEST = 200
MAX_SUCCESSORS = 16

# A handshake is answered within a round trip; a word of the broker takes two agents' requests.
_TIMEOUT_US = {SignalKind.CLOCK: US_PER_S // 5, SignalKind.DIRECT: US_PER_S // 5, SignalKind.BROKER: 5 * US_PER_S}


def signal_of(transfer: Transfer) -> StartSignal:
    """What was asked of its start signal, or the default."""
    return transfer.spec.signal or DIRECT


def begins_by_clock(transfer: Transfer) -> bool:
    """Does it keep its own time, whatever becomes of its predecessor?"""
    return signal_of(transfer).kind is SignalKind.CLOCK


def is_delayed(transfer: Transfer) -> bool:
    """Does it give way to a predecessor that needs longer?"""
    return signal_of(transfer).on_overrun is OnOverrun.DELAY


def word_us(signal: StartSignal | None) -> int:
    """How long after the end of its predecessor a successor can begin: handshakes go between hosts, and clocks need no word."""
    return WORD_US if (signal or DIRECT).kind is SignalKind.BROKER else 0


def timeout_us(transfer: Transfer) -> int:
    """After so long without a word the signal counts as lost."""
    signal = signal_of(transfer)
    return _TIMEOUT_US[signal.kind] if signal.timeout_us is None else signal.timeout_us


def waits(transfer: Transfer) -> bool:
    """Has it not begun, nor been told that it need not wait any more?"""
    return transfer.spec.after is not None and transfer.released_us is None and transfer.state in (State.HELD, State.RESERVED)


def find_awaited(batch: Batch, transfer: Transfer) -> Transfer | None:
    """The predecessor that determines its start. A paused predecessor does not delay it."""
    if not waits(transfer) or begins_by_clock(transfer) or transfer.spec.after is None:
        return None
    predecessor = batch.transfers.get(transfer.spec.after)
    return predecessor if predecessor is not None and predecessor.live and not predecessor.paused else None


def turn_us(batch: Batch, transfer: Transfer) -> int:
    """When the one that it waits for is planned to finish; 0 where nothing is to be waited for."""
    predecessor = find_awaited(batch, transfer)
    return 0 if predecessor is None or predecessor.finish_us is None else predecessor.finish_us


def earliest_us(batch: Batch, transfer: Transfer) -> int:
    """Before that a new plan for it must not begin; 0 where nothing is to be waited for."""
    turn = turn_us(batch, transfer)
    return turn + word_us(transfer.spec.signal) if turn else 0


def predecessor_of(batch: Batch, after: str, mode: Mode) -> Transfer:
    """The transfer that a new one shall wait for. Raises Problem naming the field that stands in the way."""
    if mode not in (Mode.MANAGED, Mode.WRAPPED):
        detail = f"nobody would tell a transfer of mode {mode} to begin; it must be one that an agent sends: managed or wrapped"
        raise Problem.of_field("after", detail, "unsupported")
    found = batch.transfers.get(after)
    if found is None:
        raise Problem.of_field("after", f"there is no transfer {after!r}")
    if found.mode not in (Mode.MANAGED, Mode.WRAPPED):
        detail = f"nobody reports the end of {after}, whose mode is {found.mode}; it must be one that an agent sends"
        raise Problem.of_field("after", detail, "unsupported")
    if not found.live:
        raise Problem.of_field("after", f"{after} is {found.state} already; leave `after` out", "conflict")
    if found.paused:
        raise Problem.of_field("after", f"{after} is paused, and nobody knows when it will end", "conflict")
    if len(batch.successors(after)) >= MAX_SUCCESSORS:
        raise Problem.of_field("after", f"{MAX_SUCCESSORS} transfers wait for {after} already", "conflict")
    if _length(batch, found) >= LONGEST:
        raise Problem.of_field("after", f"{after} is the last of {LONGEST} that wait for each other; no more are kept in step")
    return found


def _length(batch: Batch, transfer: Transfer) -> int:
    """How many wait for each other up to this one."""
    number, at = 1, transfer
    while (ahead := batch.transfers.get(at.spec.after or "")) is not None and at.released_us is None and number <= LONGEST:
        number, at = number + 1, ahead
    return number
