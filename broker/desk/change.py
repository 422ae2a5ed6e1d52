# SPDX-License-Identifier: Apache-2.0
"""Changes to what is booked: PATCH, pause, resume, booking the rest anew. Each is checked like a new booking, and keeps the old when refused."""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from broker.core.network import Network
from broker.core.plan import Plan
from broker.core.request import Options, Request
from broker.core.transfer import Mode, State
from broker.core.units import US_PER_S, format_time
from broker.desk.admit import Policy
from broker.desk.batch import Batch, summary
from broker.desk.books import Books
from broker.desk.command import Unkeyed
from broker.desk.explain import Changes, Question
from broker.desk.modes import refuse_unmanageable
from broker.desk.planning import booking_planner, plan_or_refuse, routed_links, routes
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


@dataclass(slots=True)
class Replanning(OneTransfer):
    """A command that may book other paths than the present plan takes."""

    def links(self, books: Books, found: Mapping[str, Transfer]) -> set[str]:
        transfer = found.get(self.transfer_id)
        return set() if transfer is None else plannable_links(books, transfer)


def plannable_links(books: Books, transfer: Transfer) -> set[str]:
    """Every link that a new plan for the transfer may book."""
    not_before = max(transfer.not_before_us, books.looked_us)
    return routed_links(
        books,
        transfer.source,
        transfer.destination,
        transfer.options,
        transfer.rate_min_bps,
        not_before,
        transfer.deadline_us,
    )


_ABSENT: Any = object()
_PLAIN = ("rate_max_bps", "rate_min_bps", "deadline_us", "planner", "priority", "best_effort", "label", "project", "metadata")
_CHOOSING = ("rate_min_bps", "not_before_us", "deadline_us")  # what the choice of paths hangs on, beside the options
_BOOKED = ("booked_bytes", "duration_us", "rate_max_bps", "rate_min_bps", "deadline_us", "not_before_us", "planner", "options")


@dataclass(slots=True)
class Change(Replanning):
    """PATCH: only the given fields change. Whatever concerns the booking makes a new plan for what is not yet carried."""

    policy: Policy = field(default_factory=Policy)
    volume_bytes: int = _ABSENT
    duration_us: int = _ABSENT
    rate_max_bps: int | None = _ABSENT
    rate_min_bps: int | None = _ABSENT
    not_before_us: int | None = _ABSENT
    deadline_us: int | None = _ABSENT
    priority: int = _ABSENT
    best_effort: bool = _ABSENT
    planner: str = _ABSENT
    label: str | None = _ABSENT
    project: str | None = _ABSENT
    metadata: dict[str, Any] | None = _ABSENT
    options: Mapping[str, Any] = field(default_factory=dict)  # fields of `Options`

    def links(self, books: Books, found: Mapping[str, Transfer]) -> set[str]:
        transfer = found.get(self.transfer_id)
        if transfer is None:
            return set()
        given = {name: value for name in _CHOOSING if (value := getattr(self, name)) is not _ABSENT and value is not None}
        changed = replace(transfer, options=self._options(transfer), **given)
        return plannable_links(books, transfer) | plannable_links(books, changed)

    def _options(self, transfer: Transfer) -> Options:
        return replace(transfer.options, **self.options) if self.options else transfer.options

    def decide(self, batch: Batch) -> Transfer:
        transfer = self.live_transfer(batch)
        before = summary(transfer)
        wanted = self._wanted(transfer, batch.books.network)
        if all(getattr(wanted, name) == getattr(transfer, name) for name in _BOOKED):
            pass
        elif transfer.paused:
            # There is nothing to plan until it is resumed, but what could never be planned is refused now.
            request_rest(transfer, wanted, None, batch.now_us, max(wanted.not_before_us, batch.now_us))
        else:
            plan_rest(batch, transfer, wanted, None, wanted.not_before_us, self.policy, explain=True)
            transfer.promised_us = transfer.finish_us
        wanted.give_to(transfer)
        batch.change(transfer, self.actor, "transfer.changed", before)
        return transfer

    def _wanted(self, transfer: Transfer, network: Network) -> "Wanted":
        wanted = Wanted.of(transfer)
        for name in _PLAIN:
            given = getattr(self, name)
            if given is not _ABSENT:
                setattr(wanted, name, given)
        if self.options:
            wanted.options = self._options(transfer)
        if self.not_before_us is not _ABSENT:
            if transfer.state is State.ACTIVE:
                raise Problem.of_field("not_before", "the transfer has begun", "conflict")
            wanted.not_before_us = transfer.created_us if self.not_before_us is None else self.not_before_us
        if self.volume_bytes is not _ABSENT:
            if transfer.volume_bytes is None:
                raise Problem.of_field("volume_bytes", "this transfer holds capacity for a time; change duration_s", "conflict")
            if transfer.mode == Mode.MANAGED and transfer.state is State.ACTIVE and self.volume_bytes != transfer.volume_bytes:
                raise Problem.of_field("volume_bytes", "the file is being sent; its size cannot change now", "conflict")
            wanted.set_volume(self.volume_bytes, transfer, network, self.policy)
        if self.duration_us is not _ABSENT:
            if transfer.duration_us is None:
                raise Problem.of_field("duration_s", "this transfer carries a volume; change volume_bytes", "conflict")
            wanted.duration_us = self.duration_us
        refuse_unmanageable(Mode(transfer.mode), wanted.duration_us, wanted.options)
        return wanted


@dataclass(slots=True)
class Wanted:
    """What a changed transfer shall be; a refused change leaves the transfer itself untouched."""

    volume_bytes: int | None
    duration_us: int | None
    booked_bytes: int
    rate_max_bps: int | None
    rate_min_bps: int | None
    not_before_us: int
    deadline_us: int | None
    planner: str
    priority: int
    best_effort: bool
    options: Options
    label: str | None
    project: str | None
    metadata: dict[str, Any] | None

    @classmethod
    def of(cls, transfer: Transfer) -> "Wanted":
        return cls(*(getattr(transfer, name) for name in cls.__slots__))

    def give_to(self, transfer: Transfer) -> None:
        for name in self.__slots__:
            setattr(transfer, name, getattr(self, name))

    def set_volume(self, volume_bytes: int, transfer: Transfer, network: Network, policy: Policy) -> None:
        """And what is to be booked for it."""
        self.volume_bytes = self.booked_bytes = volume_bytes
        if transfer.mode != Mode.RESERVE:
            paths = routes(network, transfer.source, transfer.destination, self.options)
            self.booked_bytes = policy.with_margin(volume_bytes, self.rate_max_bps, paths)


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
class Resume(Replanning):
    """Book what is not yet carried, from now on."""

    policy: Policy = field(default_factory=Policy)

    def decide(self, batch: Batch) -> Transfer:
        transfer = self.live_transfer(batch)
        if not transfer.paused:
            return transfer
        before = summary(transfer)
        not_before = max(transfer.not_before_us, batch.now_us)
        plan_rest(batch, transfer, Wanted.of(transfer), None, not_before, self.policy, explain=True)
        transfer.paused = False
        transfer.reason = None
        batch.change(transfer, self.actor, "transfer.resumed", before)
        return transfer


@dataclass(slots=True)
class BookRest(Replanning):
    """A sender fell behind what is booked: book what is missing anew. A deadline that cannot be kept any more is given up, with the reason."""

    safe_bytes: int = 0
    achieved_bps: int = 0  # what the hosts can do, when that is less than was booked; 0: no reason to think so
    policy: Policy = field(default_factory=Policy)

    def decide(self, batch: Batch) -> Transfer:
        transfer = self.live_transfer(batch)
        if transfer.paused or transfer.volume_bytes is None:
            return transfer
        before = summary(transfer)
        paths = routes(batch.books.network, transfer.source, transfer.destination, transfer.options)
        rate_max = self.achieved_bps or transfer.rate_max_bps
        missing = self.policy.with_margin(max(transfer.volume_bytes - self.safe_bytes, 1), rate_max, paths)
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
        paths = routes(batch.books.network, transfer.source, transfer.destination, transfer.options)
        ceiling_bps = max([ceiling_bps, *(route.channel_bps for route in paths)])
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


def plan_rest(
    batch: Batch,
    transfer: Transfer,
    wanted: Wanted,
    remaining: int | None,
    not_before_us: int,
    policy: Policy,
    *,
    explain: bool = False,
) -> None:
    """Replace everything from the cut on by a new plan for `remaining` bytes (None: what is not carried, or held, until then).

    The cut leaves running agents the time to hear of it. Raises Problem, with counter-offers if it is to `explain`, and leaves
    `transfer` as it was; the batch is the caller's to undo.
    """
    lead = lead_of(transfer, policy)
    kept = batch.release_after(transfer, batch.now_us + lead)
    # What is kept reaches to the end of its slot, and of several paths at once perhaps to different ends.
    cut = max([batch.now_us + lead, *(segment.end_us for segment in kept)])
    rest = copy(transfer)
    rest.cut_to(kept, cut)
    request = request_rest(rest, wanted, remaining, cut, max(not_before_us, cut))
    question = _question(batch, transfer, wanted, not_before_us, policy) if explain else None
    plan: Plan = plan_or_refuse(request, wanted.planner, batch, question)
    batch.book(transfer.id, plan.segments)
    carried = rest.carried_bytes
    if wanted.duration_us is not None:
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


def request_rest(transfer: Transfer, wanted: Wanted, remaining: int | None, cut_us: int, not_before_us: int) -> Request:
    """The planning request for what is not carried by the cut, or for `remaining` bytes. Raises Problem naming the field that is wrong."""
    held = 0
    if wanted.duration_us is not None:
        held = transfer.held_by(cut_us)
        if held >= wanted.duration_us:
            raise Problem.of_field("duration_s", f"{held / US_PER_S} s of it are over already", "conflict")
    else:
        if remaining is None:
            remaining = wanted.booked_bytes - transfer.carried_by(cut_us)
        if remaining <= 0:
            raise Problem.of_field("volume_bytes", f"{wanted.booked_bytes - remaining} bytes are carried already", "conflict")
    booking_planner(wanted.planner)
    request = Request(
        id=transfer.id,
        source=transfer.source,
        destination=transfer.destination,
        volume_bytes=remaining,
        not_before_us=not_before_us,
        rate_max_bps=wanted.rate_max_bps,
        rate_min_bps=wanted.rate_min_bps,
        deadline_us=wanted.deadline_us,
        duration_us=None if wanted.duration_us is None else wanted.duration_us - held,
        priority=wanted.priority,
        options=wanted.options,
    )
    for problem in request.problems():
        raise Problem.of_field(problem.field, problem.detail)
    return request


def _question(batch: Batch, transfer: Transfer, wanted: Wanted, not_before_us: int, policy: Policy) -> Question:
    def again(changes: Changes, now_us: int) -> Request:
        altered = replace(wanted)
        for name, value in changes.items():
            setattr(altered, name, value)
        if "volume_bytes" in changes:  # a rate alone leaves the margin as it is, like a PATCH of the rate
            altered.set_volume(changes["volume_bytes"], transfer, batch.books.network, policy)
        cut = now_us + lead_of(transfer, policy)
        return request_rest(transfer, altered, None, cut, max(not_before_us, cut))

    return Question(wanted.volume_bytes, wanted.deadline_us, again)


def waiting(code: str, detail: str, limited_by: str | None = None, until_us: int | None = None) -> dict[str, Any]:
    """A `waiting_reason` (design: every waiting or slowed transfer says why)."""
    return {"code": code, "detail": detail, "limited_by": limited_by, "until_us": until_us}
