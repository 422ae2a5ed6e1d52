# SPDX-License-Identifier: Apache-2.0
"""ViFi plans transfers one after the other (RR-6205, section 3.1): where one begins as another ends, it waits for that one's signal."""

from collections.abc import Sequence
from dataclasses import replace

from broker.core.transfer import Mode
from broker.core.units import round_up
from broker.desk.ground import start_signals
from broker.desk.ground.batch import Batch
from broker.store.transfers import Transfer


def link_turns(planned: Sequence[Transfer], batch: Batch, margin_us: int) -> None:
    """Chain those of `planned` that agents send and that follow one another on a link within `margin_us`, or a slot of it.

    One that begins where several end waits for none of them: a signal has one sender. Where rates are capped plans overlap, and what
    overlaps does not follow.
    """
    sent = [t for t in planned if t.mode in (Mode.MANAGED, Mode.WRAPPED)]
    for transfer in sent:
        ahead = [one for one in sent if one is not transfer and _meet(one, transfer, batch, margin_us)]
        if len(ahead) == 1:
            transfer.spec = replace(transfer.spec, after=ahead[0].id, signal=start_signals.signal_of(transfer))
    for transfer in planned:
        if transfer.spec.after is None and transfer.spec.signal is not None:
            transfer.spec = replace(transfer.spec, signal=None)  # it was asked for in case


def _meet(ahead: Transfer, behind: Transfer, batch: Batch, margin_us: int) -> bool:
    """Does `behind` begin where `ahead` ends, on a link of both?"""
    shared = ahead.links() & behind.links()
    if not shared or ahead.finish_us is None or behind.start_us is None:
        return False
    slots = (batch.replica.records[link_id].link.slot_us for link_id in shared)
    touching = round_up(ahead.finish_us + margin_us, max(slots))
    return ahead.finish_us <= behind.start_us <= touching
