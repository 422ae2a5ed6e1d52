# SPDX-License-Identifier: Apache-2.0
"""Changes to what is booked: PATCH, pause, resume, booking the rest anew. Each is checked like a new booking, and keeps the old when refused."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.core.network import Network
from broker.core.plan import Plan
from broker.core.request import Request
from broker.core.transfer import Mode, State
from broker.core.units import format_time
from broker.desk.admit import Policy, plan_or_refuse, planner_named
from broker.desk.batch import Batch, summary
from broker.desk.books import Books
from broker.desk.command import Unkeyed
from broker.desk.problems import Problem
from broker.store.transfers import Transfer

REST_PLANNER = "vbls"


@dataclass(slots=True)
class OneTransfer(Unkeyed):
    """A command on one transfer. `revision` is what If-Match named; None: any."""

    transfer_id: str
    actor: str
    revision: int | None = None

    def transfer_ids(self) -> Iterable[str]:
        return (self.transfer_id,)

    def links(self, books: Books, found: Mapping[str, Transfer]) -> set[str]:
        """Those of the route that a new plan would take."""
        transfer = found.get(self.transfer_id)
        route = books.network.route(transfer.source, transfer.destination) if transfer is not None else None
        return set(route.path) if route is not None else set()

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
        transfer = self.transfer(batch)
        if not transfer.live:
            raise Problem(
                "conflict", f"the transfer is {transfer.state} and cannot be changed any more", {"state": str(transfer.state)}
            )
        return transfer


_ABSENT: Any = object()


@dataclass(slots=True)
class Change(OneTransfer):
    """PATCH: only the given fields change. Whatever concerns the booking makes a new plan for what is not yet carried."""

    policy: Policy = field(default_factory=Policy)
    volume_bytes: int = _ABSENT
    rate_max_bps: int | None = _ABSENT
    rate_min_bps: int | None = _ABSENT
    not_before_us: int | None = _ABSENT
    deadline_us: int | None = _ABSENT
    priority: int = _ABSENT
    planner: str = _ABSENT
    label: str | None = _ABSENT
    project: str | None = _ABSENT
    metadata: dict[str, Any] | None = _ABSENT

    _BOOKING = ("rate_max_bps", "rate_min_bps", "deadline_us", "planner")

    def decide(self, batch: Batch) -> Transfer:
        transfer = self.live_transfer(batch)
        before = summary(transfer)
        wanted = self._wanted(transfer, batch.books.network)
        if not self._concerns_booking(transfer, wanted):
            pass
        elif transfer.paused:
            # There is nothing to plan until it is resumed, but what could never be planned is refused now.
            request_rest(transfer, wanted, wanted.booked_bytes - transfer.carried_bytes, max(wanted.not_before_us, batch.now_us))
        else:
            plan_rest(batch, transfer, wanted, remaining=None, not_before_us=wanted.not_before_us, policy=self.policy)
            transfer.promised_us = transfer.finish_us
        for name in ("volume_bytes", "booked_bytes", "rate_max_bps", "rate_min_bps", "deadline_us", "not_before_us", "planner",
                     "priority", "label", "project", "metadata"):  # fmt: skip
            setattr(transfer, name, getattr(wanted, name))
        batch.change(transfer, self.actor, "transfer.changed", before)
        return transfer

    def _wanted(self, transfer: Transfer, network: Network) -> "Wanted":
        wanted = Wanted.of(transfer)
        for name in ("rate_max_bps", "rate_min_bps", "deadline_us", "planner", "priority", "label", "project", "metadata"):
            given = getattr(self, name)
            if given is not _ABSENT:
                setattr(wanted, name, given)
        if self.not_before_us is not _ABSENT:
            if transfer.state is State.ACTIVE:
                raise Problem.of_field("not_before", "the transfer has begun", "conflict")
            wanted.not_before_us = transfer.created_us if self.not_before_us is None else self.not_before_us
        if self.volume_bytes is not _ABSENT:
            if transfer.mode == Mode.MANAGED and transfer.state is State.ACTIVE and self.volume_bytes != transfer.volume_bytes:
                raise Problem.of_field("volume_bytes", "the file is being sent; its size cannot change now", "conflict")
            wanted.volume_bytes = self.volume_bytes
            wanted.booked_bytes = self.volume_bytes
            if transfer.mode == Mode.MANAGED:
                route = network.route(transfer.source, transfer.destination)
                wanted.booked_bytes = self.policy.with_margin(self.volume_bytes, wanted.rate_max_bps, route)
        return wanted

    def _concerns_booking(self, transfer: Transfer, wanted: "Wanted") -> bool:
        names = ("booked_bytes", "rate_max_bps", "rate_min_bps", "deadline_us", "not_before_us", "planner")
        return any(getattr(wanted, name) != getattr(transfer, name) for name in names)


@dataclass(slots=True)
class Wanted:
    """What a changed transfer shall be; a refused change leaves the transfer itself untouched."""

    volume_bytes: int
    booked_bytes: int
    rate_max_bps: int | None
    rate_min_bps: int | None
    not_before_us: int
    deadline_us: int | None
    planner: str
    priority: int
    label: str | None
    project: str | None
    metadata: dict[str, Any] | None

    @classmethod
    def of(cls, transfer: Transfer) -> "Wanted":
        return cls(*(getattr(transfer, name) for name in cls.__slots__))


@dataclass(slots=True)
class Pause(OneTransfer):
    """Send nothing until resumed; what is booked from now on goes back."""

    policy: Policy = field(default_factory=Policy)

    def decide(self, batch: Batch) -> Transfer:
        transfer = self.live_transfer(batch)
        if transfer.paused:
            return transfer
        if transfer.state is State.HELD:
            raise Problem("conflict", "a held booking can be committed or cancelled, not paused", {"state": "HELD"})
        before = summary(transfer)
        transfer.carried_bytes = transfer.carried_by(batch.now_us)
        transfer.segments = batch.release_after(transfer, batch.now_us)
        transfer.plan_from_us = batch.now_us
        transfer.plan_revision += 1
        transfer.paused = True
        transfer.reason = waiting("paused", f"paused by {self.actor}")
        batch.change(transfer, self.actor, "transfer.paused", before)
        return transfer


@dataclass(slots=True)
class Resume(OneTransfer):
    """Book what is not yet carried, from now on."""

    policy: Policy = field(default_factory=Policy)

    def decide(self, batch: Batch) -> Transfer:
        transfer = self.live_transfer(batch)
        if not transfer.paused:
            return transfer
        before = summary(transfer)
        not_before = max(transfer.not_before_us, batch.now_us)
        plan_rest(batch, transfer, Wanted.of(transfer), remaining=None, not_before_us=not_before, policy=self.policy)
        transfer.paused = False
        transfer.reason = None
        batch.change(transfer, self.actor, "transfer.resumed", before)
        return transfer


@dataclass(slots=True)
class BookRest(OneTransfer):
    """A sender fell behind what is booked: book what is missing anew. A deadline that cannot be kept any more is given up, with the reason."""

    safe_bytes: int = 0
    achieved_bps: int = 0  # what the hosts can do, when that is less than was booked; 0: no reason to think so
    policy: Policy = field(default_factory=Policy)

    def decide(self, batch: Batch) -> Transfer:
        transfer = self.live_transfer(batch)
        if transfer.paused:
            return transfer
        before = summary(transfer)
        route = batch.books.network.route(transfer.source, transfer.destination)
        rate_max = self.achieved_bps or transfer.rate_max_bps
        missing = self.policy.with_margin(max(transfer.volume_bytes - self.safe_bytes, 1), rate_max, route)
        why = "the transfer fell behind its booking"
        if self.achieved_bps:
            why += f": its hosts reach {self.achieved_bps} bit/s"
        book_rest(batch, transfer, min(missing, transfer.booked_bytes), "behind", why, self.policy, self.achieved_bps)
        batch.change(transfer, self.actor, "transfer.rebooked", before)
        return transfer


def book_rest(
    batch: Batch, transfer: Transfer, remaining: int | None, code: str, why: str, policy: Policy, ceiling_bps: int = 0
) -> None:
    """Plan the rest within the deadline, else as early as possible with the broken promise as the reason. Raises Problem when nothing fits.

    With `ceiling_bps`, no faster than that: booking more than its hosts can do would leave most of each new booking unused, too.
    """
    wanted = Wanted.of(transfer)
    # What is left goes as early as it can, whatever planner was wanted: a fixed rate may be free for so long only much later.
    wanted.planner = REST_PLANNER
    if ceiling_bps:
        route = batch.books.network.route(transfer.source, transfer.destination)
        ceiling_bps = max(ceiling_bps, route.channel_bps if route is not None else 1)
        wanted.rate_max_bps = min(wanted.rate_max_bps or ceiling_bps, ceiling_bps)
        if wanted.rate_min_bps is not None:
            wanted.rate_min_bps = min(wanted.rate_min_bps, wanted.rate_max_bps)
    not_before = max(transfer.not_before_us, batch.now_us)
    mark = batch.mark()
    try:
        plan_rest(batch, transfer, wanted, remaining, not_before, policy)
        transfer.reason = waiting(code, why)
    except Problem:
        batch.back_to(mark)
        if transfer.deadline_us is None:
            raise
        missed = transfer.deadline_us
        wanted.deadline_us = None
        plan_rest(batch, transfer, wanted, remaining, not_before, policy)
        transfer.deadline_us = None
        transfer.reason = waiting(
            "promise_broken", f"{why}; the deadline {format_time(missed)} cannot be kept", until_us=transfer.finish_us
        )


def plan_rest(batch: Batch, transfer: Transfer, wanted: Wanted, remaining: int | None, not_before_us: int, policy: Policy) -> None:
    """Replace everything from the cut on by a new plan for `remaining` bytes (None: what is not carried until then).

    The cut leaves running agents the time to hear of it. Raises Problem and leaves `transfer` as it was; the batch is the caller's to undo.
    """
    lead = 0
    if transfer.mode == Mode.MANAGED:
        lead = policy.replan_lead_us if transfer.state is State.ACTIVE else policy.managed_lead_us
    cut = batch.now_us + lead if transfer.segments or transfer.mode == Mode.MANAGED else batch.now_us
    path = transfer.segments[0].path if transfer.segments else ()
    cut = batch.slot_boundary(path, cut)
    if remaining is None:
        remaining = wanted.booked_bytes - transfer.carried_by(cut)
    request = request_rest(transfer, wanted, remaining, max(not_before_us, cut))
    kept = batch.release_after(transfer, cut)
    plan: Plan = plan_or_refuse(request, wanted.planner, batch)
    batch.book(transfer.id, plan.segments)
    transfer.segments = (*kept, *plan.segments)
    # Agents that have not begun get their grace from where they can begin now.
    begun = transfer.mode == Mode.RESERVE or transfer.state is State.ACTIVE
    transfer.start_us = transfer.segments[0].begin_us if begun else plan.start_us
    transfer.finish_us = plan.finish_us
    transfer.plan_from_us = cut
    transfer.carried_bytes = wanted.booked_bytes - remaining
    transfer.plan_revision += 1


def request_rest(transfer: Transfer, wanted: Wanted, remaining: int, not_before_us: int) -> Request:
    """The planning request for `remaining` bytes. Raises Problem naming the field where it is wrong on its own."""
    if remaining <= 0:
        raise Problem.of_field("volume_bytes", f"{wanted.booked_bytes - remaining} bytes are carried already", "conflict")
    request = Request(
        id=transfer.id,
        source=transfer.source,
        destination=transfer.destination,
        volume_bytes=remaining,
        not_before_us=not_before_us,
        rate_max_bps=wanted.rate_max_bps,
        rate_min_bps=wanted.rate_min_bps,
        deadline_us=wanted.deadline_us,
        priority=wanted.priority,
    )
    for problem in request.problems():
        raise Problem.of_field(problem.field, problem.detail)
    planner_named(wanted.planner)
    return request


def waiting(code: str, detail: str, limited_by: str | None = None, until_us: int | None = None) -> dict[str, Any]:
    """A `waiting_reason` (design: every waiting or slowed transfer says why)."""
    return {"code": code, "detail": detail, "limited_by": limited_by, "until_us": until_us}
