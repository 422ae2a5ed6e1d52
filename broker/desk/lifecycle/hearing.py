# SPDX-License-Identifier: Apache-2.0
"""Transfers whose agents cannot be heard. An agent may carry out a transfer that it has fetched even if the broker cannot hear it.

Such a transfer keeps its booking to the end and through the fallback time after it; only then does the broker assume its end, and a late report
corrects that. A transfer that its agent never fetched cannot be carried out and may be withdrawn. While a transfer is unheard, the broker
neither moves its booking nor gives it to others, because its sender still follows the plan that it knows.
"""

from collections.abc import Callable
from dataclasses import dataclass

from broker.core.reason import Reason
from broker.core.transfer import Action, Mode, State
from broker.core.units import format_time
from broker.desk.ground.batch import Batch, summarise
from broker.desk.lifecycle.modify import OneTransfer
from broker.desk.lifecycle.transitions import end
from broker.store.transfers import Transfer

LastHeard = Callable[[str], str]  # of a host: when its agent was last heard, in words


def find_untold(transfer: Transfer) -> list[str]:
    """The hosts that it cannot do without whose agents have never fetched it."""
    parts = [(transfer.spec.source, transfer.source_told)]
    if transfer.mode == Mode.MANAGED:
        parts.append((transfer.spec.destination, transfer.destination_told))
    return [host for host, told in parts if not told]


@dataclass(slots=True)
class Withdraw(OneTransfer):
    """Its start has passed, and an agent that it needs never fetched it: end it and release its booking."""

    last_heard: LastHeard = str

    def decide(self, batch: Batch) -> Transfer:
        """Expire it where an agent never fetched it; what it booked is given back."""
        transfer = self.transfer(batch)
        missing = find_untold(transfer)
        if transfer.state is not State.RESERVED or not missing:
            return transfer  # fetched, started or ended meanwhile
        before = summarise(transfer)
        agents = " and ".join(f"the agent on {host} ({self.last_heard(host)})" for host in missing)
        end(batch, transfer, Action.EXPIRE, Reason("never_fetched", f"{agents} never fetched it", missing[0]))
        batch.change(transfer, self.actor, "transfer.expired", before)
        return transfer


@dataclass(slots=True)
class WithdrawUnused(OneTransfer):
    """The agent that would pace it has reported everything, and nothing has begun: the booking was not used."""

    def decide(self, batch: Batch) -> Transfer:
        """Expire it where its time went by unused; what it booked is given back."""
        transfer = self.transfer(batch)
        if transfer.state is not State.RESERVED:
            return transfer
        before = summarise(transfer)
        missing = "no command was run for it" if transfer.mode == Mode.WRAPPED else "no packet of it was seen"
        end(batch, transfer, Action.EXPIRE, Reason("unused", f"{missing} on {transfer.spec.source}", transfer.spec.source))
        batch.change(transfer, self.actor, "transfer.expired", before)
        return transfer


@dataclass(slots=True)
class Miss(OneTransfer):
    """Mark a transfer as unheard. It keeps its booking."""

    def decide(self, batch: Batch) -> Transfer:
        """Note since when its agents cannot be heard; it keeps its booking."""
        transfer = self.transfer(batch)
        if transfer.live and transfer.unheard_us is None:
            before = summarise(transfer)
            transfer.unheard_us = batch.now_us
            batch.change(transfer, self.actor, "transfer.unheard", before)
        return transfer


@dataclass(slots=True)
class Hear(OneTransfer):
    """Its agents are heard again. Where its end was assumed it goes on, at the fallback rate if its booking is over."""

    def decide(self, batch: Batch) -> Transfer:
        """Its agents were heard: it goes on, or an end that was assumed is taken back."""
        transfer = self.transfer(batch)
        if transfer.unheard_us is None and not transfer.assumed:
            return transfer
        if not transfer.live and not transfer.assumed:
            return transfer  # cancelled: `GiveBack` sees to it
        before = summarise(transfer)
        if transfer.assumed:
            batch.move(transfer, Action.HEAR)
            transfer.assumed, transfer.actual_finish_us, transfer.reason = False, None, None
            transfer.actual_start_us = transfer.actual_start_us or transfer.start_us
        transfer.unheard_us = None
        batch.change(transfer, self.actor, "transfer.heard", before)
        return transfer


@dataclass(slots=True)
class AssumeLost(OneTransfer):
    """Unheard until its booking and the fallback time were over: it counts as failed until a report corrects that."""

    last_heard: LastHeard = str

    def decide(self, batch: Batch) -> Transfer:
        """End it as failed, assumed: any later word corrects it."""
        transfer = self.transfer(batch)
        if not transfer.live or transfer.unheard_us is None:
            return transfer
        before = summarise(transfer)
        detail = (
            f"not heard of since {format_time(transfer.unheard_us)}, long after the end of its booking "
            f"(agent on {transfer.spec.source}: {self.last_heard(transfer.spec.source)}); a late report will correct this"
        )
        end(batch, transfer, Action.FAIL, Reason("agents_lost", detail, transfer.spec.source))
        transfer.assumed = True
        batch.change(transfer, self.actor, "transfer.failed", before)
        return transfer


@dataclass(slots=True)
class GiveBack(OneTransfer):
    """It was cancelled while unheard. Its sender knows by now, or its booking is over: release the rest."""

    def decide(self, batch: Batch) -> Transfer:
        """Give back the booking of a canceled transfer whose sender now knows."""
        transfer = self.transfer(batch)
        if transfer.live or transfer.assumed or transfer.unheard_us is None:
            return transfer
        before = summarise(transfer)
        transfer.segments = batch.release_after(transfer, batch.now_us)
        transfer.unheard_us = None
        batch.change(transfer, self.actor, "transfer.given_back", before)
        return transfer
