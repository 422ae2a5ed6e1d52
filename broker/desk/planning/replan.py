# SPDX-License-Identifier: Apache-2.0
"""Replanning of the remaining volume of a transfer, after a requested change or after a loss of capacity."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from broker.core.network import Network
from broker.core.plan import Plan
from broker.core.reason import Reason
from broker.core.request import Request
from broker.core.transfer import Mode, State
from broker.core.transfer_spec import TransferSpec
from broker.core.units import US_PER_S, format_time
from broker.desk.ground import start_signals
from broker.desk.ground.batch import Batch
from broker.desk.ground.limits import NOBODY, Account, refuse_replan
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.planning.counter_offers import Question
from broker.desk.planning.plan import find_booking_planner, find_routed_links, find_routes, make_planner_request, plan_or_refuse
from broker.planners import REPLANNER
from broker.store.transfers import Transfer


@dataclass(slots=True)
class Wanted:
    """What a changed transfer shall be; a refused change leaves the transfer itself untouched."""

    spec: TransferSpec
    booked_bytes: int

    @classmethod
    def of(cls, transfer: Transfer) -> "Wanted":
        """What the transfer has now."""
        return cls(transfer.spec, transfer.booked_bytes)

    def give_to(self, transfer: Transfer) -> None:
        """Write it into the transfer."""
        transfer.spec, transfer.booked_bytes = self.spec, self.booked_bytes

    def book_volume(self, transfer: Transfer, network: Network, policy: Policy) -> None:
        """Set `booked_bytes` from its volume."""
        assert self.spec.volume_bytes is not None
        self.booked_bytes = self.spec.volume_bytes
        if transfer.mode is not Mode.RESERVE:
            paths = find_routes(network, self.spec.source, self.spec.destination, self.spec.options)
            self.booked_bytes = policy.with_margin(self.spec.volume_bytes, self.spec.rate_max_bps, paths)


def find_plannable_links(replica: Replica, spec: TransferSpec) -> set[str]:
    """Every link that a new plan for the transfer may book."""
    not_before = max(spec.not_before_us, replica.looked_us)
    return find_routed_links(replica, spec.source, spec.destination, spec.options, spec.rate_min_bps, not_before, spec.deadline_us)


def rebook(
    batch: Batch, transfer: Transfer, remaining: int | None, code: str, why: str, policy: Policy, ceiling_bps: int = 0
) -> None:
    """Plan the rest within the deadline, else as early as possible with the broken promise as the reason. Raises Problem when nothing fits.

    With `ceiling_bps`, no faster than that: booking more than its hosts can do would leave most of each new booking unused, too.
    """
    wanted = Wanted.of(transfer)
    # What is left goes as early as it can, whatever planner was wanted: a fixed rate may be free for so long only much later.
    wanted.spec = replace(transfer.spec, planner=REPLANNER)
    if ceiling_bps:
        wanted.spec = _capped(wanted.spec, ceiling_bps, batch.replica.network)
    not_before = max(transfer.spec.not_before_us, batch.now_us)
    mark = batch.mark()
    try:
        replan(batch, transfer, wanted, remaining, not_before, policy)
        transfer.reason = Reason(code, why)
    except Problem:
        batch.back_to(mark)
        missed = transfer.spec.deadline_us
        if missed is None:
            raise
        wanted.spec = replace(wanted.spec, deadline_us=None)
        replan(batch, transfer, wanted, remaining, not_before, policy)
        transfer.spec = replace(transfer.spec, deadline_us=None)
        transfer.reason = Reason(
            "promise_broken", f"{why}; the deadline {format_time(missed)} cannot be kept", until_us=transfer.finish_us
        )


def _capped(spec: TransferSpec, ceiling_bps: int, network: Network) -> TransferSpec:
    """`spec` at no more than the ceiling, or one channel where that is more."""
    ceiling_bps = max(
        [ceiling_bps, *(route.channel_bps for route in find_routes(network, spec.source, spec.destination, spec.options))]
    )
    rate_max = min(spec.rate_max_bps or ceiling_bps, ceiling_bps)
    rate_min = None if spec.rate_min_bps is None else min(spec.rate_min_bps, rate_max)
    return replace(spec, rate_max_bps=rate_max, rate_min_bps=rate_min)


def replan(
    batch: Batch,
    transfer: Transfer,
    wanted: Wanted,
    remaining: int | None,
    not_before_us: int,
    policy: Policy,
    *,
    explain: bool = False,
    account: Account = NOBODY,
) -> None:
    """Replace everything from the cut on by a new plan for `remaining` bytes (None: the volume, or holding time, that is left by then).

    The cut leaves running agents the time to hear of it. Raises Problem, with counter-offers if it is to `explain`, and leaves
    `transfer` as it was; the batch is the caller's to undo. What waits for a predecessor begins no earlier than that one is planned to
    finish; nothing runs yet whose agents would have to hear of it first.
    """
    not_before_us = max(not_before_us, start_signals.earliest_us(batch, transfer))
    lead = 0 if start_signals.find_awaited(batch, transfer) is not None else lead_of(transfer, policy)
    kept = batch.release_after(transfer, batch.now_us + lead)
    # What is kept reaches to the end of its slot, and of several paths at once perhaps to different ends. Where it ends sooner than the lead
    # there is no old plan that could still be followed, and running agents need no more than to hear of the new one.
    notice = min(lead, policy.hearing_us) if transfer.state is State.ACTIVE else lead
    cut = max([batch.now_us + notice, *(segment.end_us for segment in kept)])
    rest = copy(transfer)
    rest.cut_to(kept, cut)
    request = request_remainder(rest, wanted, remaining, cut, max(not_before_us, cut))
    question = _question(batch, transfer, wanted, not_before_us, policy) if explain else None
    plan: Plan = plan_or_refuse(request, wanted.spec.planner, batch, question)
    refuse_replan(
        account, batch, transfer, wanted.booked_bytes if wanted.spec.duration_us is None else plan.volume_bytes, plan.finish_us
    )
    batch.book(transfer.id, plan.segments)
    carried = rest.carried_bytes
    if wanted.spec.duration_us is not None:
        wanted.booked_bytes = transfer.booked_bytes = carried + plan.volume_bytes
    elif remaining is not None:
        carried = wanted.booked_bytes - remaining
    transfer.segments = (*kept, *plan.segments)
    # Agents that have not begun get their grace from where they can begin now.
    begun = transfer.mode == Mode.RESERVE or transfer.state is State.ACTIVE
    transfer.start_us = transfer.segments[0].begin_us if begun else plan.start_us
    transfer.finish_us = plan.finish_us
    transfer.plan_from_us = cut
    transfer.carried_bytes = carried
    transfer.plan_revision += 1


def lead_of(transfer: Transfer, policy: Policy) -> int:
    """How long agents need to hear of a new plan."""
    if transfer.mode == Mode.RESERVE:
        return 0
    return policy.replan_lead_us if transfer.state is State.ACTIVE else policy.managed_lead_us


def request_remainder(transfer: Transfer, wanted: Wanted, remaining: int | None, cut_us: int, not_before_us: int) -> Request:
    """The planning request for the volume left at the cut, or for `remaining` bytes. Raises Problem naming the field that is wrong."""
    held = 0
    duration = wanted.spec.duration_us
    if duration is not None:
        held = transfer.held_by(cut_us)
        if held >= duration:
            raise Problem.of_field("duration_s", f"{held / US_PER_S} s of it are over already", "conflict")
    else:
        if remaining is None:
            remaining = wanted.booked_bytes - transfer.carried_by(cut_us)
        if remaining <= 0:
            raise Problem.of_field("volume_bytes", f"{wanted.booked_bytes - remaining} bytes are carried already", "conflict")
    find_booking_planner(wanted.spec.planner)
    request = make_planner_request(
        transfer.id, wanted.spec, remaining, not_before_us, duration_us=None if duration is None else duration - held
    )
    for problem in request.problems():
        raise Problem.of_field(problem.field, problem.detail)
    return request


def _question(batch: Batch, transfer: Transfer, wanted: Wanted, not_before_us: int, policy: Policy) -> Question:
    def again(spec: TransferSpec, now_us: int) -> Request:
        altered = replace(wanted, spec=spec)
        if spec.volume_bytes != wanted.spec.volume_bytes:  # a rate alone leaves the margin as it is, like a PATCH of the rate
            altered.book_volume(transfer, batch.replica.network, policy)
        cut = now_us + lead_of(transfer, policy)
        return request_remainder(transfer, altered, None, cut, max(not_before_us, cut))

    return Question(wanted.spec, again)


def describe_promise(transfer: Transfer) -> dict[str, Any]:
    """A transfer in an answer that says which promises would break."""
    finish = format_time(transfer.finish_us) if transfer.finish_us is not None else None
    return {"id": transfer.id, "label": transfer.spec.label, "priority": transfer.spec.priority, "finish": finish}
