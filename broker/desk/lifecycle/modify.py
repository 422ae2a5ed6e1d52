# SPDX-License-Identifier: Apache-2.0
"""Changes of a booking: PATCH, pause, resume and rebooking. Each is checked like a new booking; if it is refused, the old booking stays."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from broker.core.network import Network
from broker.core.reason import Reason
from broker.core.transfer import Mode, State
from broker.core.transfer_spec import SpecPatch, TransferSpec
from broker.core.units import MICROBITS_PER_BYTE, format_time
from broker.desk.chains.overrun import first_in_line
from broker.desk.ground.batch import Batch, summarise
from broker.desk.ground.command import Unkeyed
from broker.desk.ground.limits import NOBODY, Account, refuse_wish
from broker.desk.ground.modes import refuse_unmanageable
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.planning.plan import find_routes
from broker.desk.planning.replan import Wanted, find_plannable_links, lead_of, rebook, replan, request_remainder
from broker.store.transfers import Transfer


@dataclass(slots=True)
class OneTransfer(Unkeyed):
    """A command on one transfer. `revision` is what If-Match named; None: any."""

    transfer_id: str
    actor: str
    revision: int | None = None

    def transfer_ids(self) -> Iterable[str]:
        """The one transfer."""
        return (self.transfer_id,)

    def transfer(self, batch: Batch) -> Transfer:
        """The locked transfer. Raises Problem when there is none or it is another revision."""
        transfer = batch.transfers.get(self.transfer_id)
        if transfer is None:
            raise Problem("not-found", f"there is no transfer {self.transfer_id}")
        if self.revision is not None and self.revision != transfer.revision:
            raise Problem(
                "precondition-failed",
                f"the transfer is at revision {transfer.revision} now; read it again",
                {"revision": transfer.revision},
            )
        return transfer

    def live_transfer(self, batch: Batch) -> Transfer:
        """The locked transfer. Raises Problem where it has ended."""
        transfer = self.transfer(batch)
        if not transfer.live:
            raise Problem(
                "conflict", f"the transfer is {transfer.state} and cannot be changed any more", {"state": str(transfer.state)}
            )
        return transfer


@dataclass(slots=True)
class Replanning(OneTransfer):
    """A command that may book other paths than the present plan takes."""

    def links(self, replica: Replica, found: Mapping[str, Transfer]) -> set[str]:
        """The links of every path that it may take."""
        transfer = found.get(self.transfer_id)
        return set() if transfer is None else find_plannable_links(replica, transfer.spec)


def refuse_unheard(transfer: Transfer) -> None:
    """Its sender would go on by the plan that it knows. Raises Problem `unheard`."""
    if transfer.unheard_us is not None:
        raise Problem(
            "unheard",
            f"the agent on {transfer.spec.source} has not been heard of this transfer since {format_time(transfer.unheard_us)} and goes on by "
            "the plan that it has: change it when it is heard again, or cancel it (what is booked stays booked until its sender knows)",
            {"host": transfer.spec.source, "unheard_since": format_time(transfer.unheard_us)},
        )


_BOOKED = ("duration_us", "rate_max_bps", "rate_min_bps", "deadline_us", "not_before_us", "planner", "options")


@dataclass(slots=True)
class Change(Replanning):
    """PATCH: only the given fields change. A change of the booking replans the remaining volume."""

    policy: Policy = field(default_factory=Policy)
    patch: SpecPatch = field(default_factory=SpecPatch)
    account: Account = NOBODY  # of the caller

    def links(self, replica: Replica, found: Mapping[str, Transfer]) -> set[str]:
        """The links of every path that it may take before or after the change."""
        transfer = found.get(self.transfer_id)
        if transfer is None:
            return set()
        return find_plannable_links(replica, transfer.spec) | find_plannable_links(replica, self.patch.apply(transfer.spec))

    def decide(self, batch: Batch) -> Transfer:
        """Plan it anew as the patch wants it. Raises Problem where that cannot be, and leaves it as it was."""
        transfer = self.live_transfer(batch)
        before = summarise(transfer)
        wanted = self._wanted(transfer, batch.replica.network)
        self._refuse_wishes(transfer.spec, wanted.spec, batch.now_us)
        booked_anew = wanted.booked_bytes != transfer.booked_bytes or any(
            getattr(wanted.spec, name) != getattr(transfer.spec, name) for name in _BOOKED
        )
        if booked_anew:
            refuse_unheard(transfer)
        if not booked_anew:
            pass
        elif transfer.paused:
            # There is nothing to plan until it is resumed, but what could never be planned is refused now.
            request_remainder(transfer, wanted, None, batch.now_us, max(wanted.spec.not_before_us, batch.now_us))
        else:

            def plan() -> None:
                replan(batch, transfer, wanted, None, wanted.spec.not_before_us, self.policy, explain=True, account=self.account)

            first_in_line(batch, transfer, plan, self.policy, by_will=True)
            transfer.promised_us = transfer.finish_us
        wanted.give_to(transfer)
        batch.change(transfer, self.actor, "transfer.changed", before)
        return transfer

    def _refuse_wishes(self, before: TransferSpec, after: TransferSpec, now_us: int) -> None:
        """Only what changes can be more than the token may ask for."""
        refuse_wish(
            self.account,
            now_us,
            priority=after.priority if after.priority != before.priority else None,
            not_before_us=after.not_before_us if after.not_before_us != before.not_before_us else None,
            deadline_us=after.deadline_us if after.deadline_us != before.deadline_us else None,
        )

    def _wanted(self, transfer: Transfer, network: Network) -> Wanted:
        before, wanted = transfer.spec, Wanted.of(transfer)
        wanted.spec = after = self.patch.apply(before)
        if "not_before_us" in self.patch:
            if transfer.state is State.ACTIVE:
                raise Problem.of_field("not_before", "the transfer has begun", "conflict")
            wanted.spec = after = replace(after, not_before_us=after.not_before_us or transfer.created_us)
        if "volume_bytes" in self.patch:
            if before.volume_bytes is None:
                raise Problem.of_field("volume_bytes", "this transfer holds capacity for a time; change duration_s", "conflict")
            if transfer.mode is Mode.MANAGED and transfer.state is State.ACTIVE and after.volume_bytes != before.volume_bytes:
                raise Problem.of_field("volume_bytes", "the file is being sent; its size cannot change now", "conflict")
            wanted.book_volume(transfer, network, self.policy)
        if "duration_us" in self.patch and before.duration_us is None:
            raise Problem.of_field("duration_s", "this transfer carries a volume; change volume_bytes", "conflict")
        refuse_unmanageable(transfer.mode, after.duration_us, after.options)
        return wanted


@dataclass(slots=True)
class Pause(OneTransfer):
    """Pause until resumed; the booking from now on is released."""

    policy: Policy = field(default_factory=Policy)

    def decide(self, batch: Batch) -> Transfer:
        """Give back what it booked from now on."""
        transfer = self.live_transfer(batch)
        if transfer.paused:
            return transfer
        if transfer.state is State.HELD:
            raise Problem("conflict", "a held booking can be committed or cancelled, not paused", {"state": "HELD"})
        refuse_unheard(transfer)
        before = summarise(transfer)
        transfer.carried_bytes = transfer.carried_by(batch.now_us)
        transfer.segments = batch.release_after(transfer, batch.now_us)
        transfer.plan_from_us = batch.now_us
        transfer.plan_revision += 1
        transfer.paused = True
        transfer.reason = Reason("paused", f"paused by {self.actor}")
        batch.change(transfer, self.actor, "transfer.paused", before)
        return transfer


@dataclass(slots=True)
class Resume(Replanning):
    """Book what is not yet carried, from now on. An owner who resumes agrees to the finish that this gives; what somebody else paused
    keeps its promise, and may have broken it.
    """

    policy: Policy = field(default_factory=Policy)
    account: Account = NOBODY

    def decide(self, batch: Batch) -> Transfer:
        """Book the remaining volume, from now on."""
        transfer = self.live_transfer(batch)
        if not transfer.paused:
            return transfer
        before = summarise(transfer)
        not_before = max(transfer.spec.not_before_us, batch.now_us)
        replan(batch, transfer, Wanted.of(transfer), None, not_before, self.policy, explain=True, account=self.account)
        transfer.paused = False
        transfer.reason = None
        if self.actor == transfer.owner:
            transfer.promised_us = transfer.finish_us
        batch.change(transfer, self.actor, "transfer.resumed", before)
        return transfer


@dataclass(slots=True)
class Rebook(Replanning):
    """A sender fell behind its booking: rebook the missing volume. A deadline that can no longer be met is given up, with the reason."""

    safe_bytes: int = 0
    achieved_bps: int = 0  # what the hosts can do, when that is less than was booked; 0: no reason to think so
    policy: Policy = field(default_factory=Policy)

    def decide(self, batch: Batch) -> Transfer:
        """Book the bytes that are not yet safe, from the next boundary on, even if that breaks the promise."""
        transfer = self.live_transfer(batch)
        if transfer.paused or transfer.spec.volume_bytes is None:
            return transfer
        before = summarise(transfer)
        paths = find_routes(batch.replica.network, transfer.spec.source, transfer.spec.destination, transfer.spec.options)
        rate_max = self.achieved_bps or transfer.spec.rate_max_bps
        left = transfer.spec.volume_bytes - self.safe_bytes - self._carried_meanwhile(transfer, batch.now_us)
        missing = self.policy.with_margin(max(left, 1), rate_max, paths)
        why = "the transfer fell behind its booking"
        if self.achieved_bps:
            why += f": its hosts reach {self.achieved_bps} bit/s"
        remaining = min(missing, transfer.booked_bytes)

        def plan() -> None:
            rebook(batch, transfer, remaining, "behind", why, self.policy, self.achieved_bps)

        first_in_line(batch, transfer, plan, self.policy, by_will=False)
        batch.change(transfer, self.actor, "transfer.rebooked", before)
        return transfer

    def _carried_meanwhile(self, transfer: Transfer, now_us: int) -> int:
        """What its hosts carry by the old plan until they hear of the new one."""
        lead_us = lead_of(transfer, self.policy)
        booked = transfer.carried_by(now_us + lead_us) - transfer.carried_by(now_us)
        reached = self.achieved_bps * lead_us // MICROBITS_PER_BYTE if self.achieved_bps else booked
        return max(0, min(booked, reached))
