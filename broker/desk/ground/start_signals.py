# SPDX-License-Identifier: Apache-2.0
"""Chains: a transfer with `after` begins when another one, its predecessor, has ended (RR-6205, section 2.2: time control by signals).

Until then its place in time hangs on its predecessor's: what is booked for it does not begin before that one is planned to finish. Only
a successor that starts by the clock keeps its own time. What moves a predecessor moves those behind it (`handover`, `overrun`).
"""

from typing import Any

from broker.core.transfer import Mode, State
from broker.core.units import US_PER_S
from broker.desk.ground.batch import Batch
from broker.desk.ground.problems import Problem
from broker.store.transfers import Transfer

Signal = dict[str, Any]

# What is not said of a start signal (api.schemas.StartSignal shows the same defaults).
DIRECT: Signal = {"kind": "direct", "timeout_s": None, "on_timeout": "start", "on_overrun": "delay"}
CLOCK, BROKER = "clock", "broker"

# What the broker's word takes to a sender that waits for it: a transaction, and the answer to its poll. 65 to 90 ms on two busy cores.
WORD_US = 100_000

# A change of the first moves all of them, while everybody else waits.
LONGEST = 200
MOST_SUCCESSORS = 16

# A handshake is answered within a round trip; a word of the broker takes two agents' requests.
_TIMEOUT_US = {"direct": US_PER_S // 5, "broker": 5 * US_PER_S, CLOCK: US_PER_S // 5}


def kind_of(transfer: Transfer) -> str:
    """clock | direct | broker."""
    return str((transfer.signal or DIRECT)["kind"])


def is_delayed(transfer: Transfer) -> bool:
    """Does it give way to a predecessor that needs longer?"""
    return bool((transfer.signal or DIRECT)["on_overrun"] == "delay")


def word_us(signal: Signal | None) -> int:
    """How long after the end of its predecessor a successor can begin: handshakes go between hosts, and clocks need no word."""
    return WORD_US if (signal or DIRECT)["kind"] == BROKER else 0


def timeout_us(transfer: Transfer) -> int:
    """After so long without a word the signal counts as lost."""
    signal = transfer.signal or DIRECT
    return _TIMEOUT_US[kind_of(transfer)] if signal["timeout_s"] is None else round(signal["timeout_s"] * US_PER_S)


def waits(transfer: Transfer) -> bool:
    """Has it not begun, nor been told that it need not wait any more?"""
    return transfer.after is not None and transfer.released_us is None and transfer.state in (State.HELD, State.RESERVED)


def find_awaited(batch: Batch, transfer: Transfer) -> Transfer | None:
    """The predecessor that its place in time hangs on. One that is paused holds nobody up."""
    if not waits(transfer) or kind_of(transfer) == CLOCK or transfer.after is None:
        return None
    predecessor = batch.transfers.get(transfer.after)
    return predecessor if predecessor is not None and predecessor.live and not predecessor.paused else None


def turn_us(batch: Batch, transfer: Transfer) -> int:
    """When the one that it waits for is planned to finish; 0 where nothing is to be waited for."""
    predecessor = find_awaited(batch, transfer)
    return 0 if predecessor is None or predecessor.finish_us is None else predecessor.finish_us


def earliest_us(batch: Batch, transfer: Transfer) -> int:
    """Before that a new plan for it must not begin; 0 where nothing is to be waited for."""
    turn = turn_us(batch, transfer)
    return turn + word_us(transfer.signal) if turn else 0


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
    if len(batch.successors(after)) >= MOST_SUCCESSORS:
        raise Problem.of_field("after", f"{MOST_SUCCESSORS} transfers wait for {after} already", "conflict")
    if _length(batch, found) >= LONGEST:
        raise Problem.of_field("after", f"{after} is the last of {LONGEST} that wait for each other; no more are kept in step")
    return found


def _length(batch: Batch, transfer: Transfer) -> int:
    """How many wait for each other up to this one."""
    number, at = 1, transfer
    while (ahead := batch.transfers.get(at.after or "")) is not None and at.released_us is None and number <= LONGEST:
        number, at = number + 1, ahead
    return number
