# SPDX-License-Identifier: Apache-2.0
"""Joint re-planning of what has not yet been sent, as a pure computation: from a snapshot of the bookings to a proposal.

Every promise is kept: a transfer moves only to a plan that ends no later than it was promised (or, where that promise is broken already,
no later than now planned), and nothing is proposed that is not better than what is booked.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm
from typing import Any

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, PlanRejected, Refusal, verify
from broker.core.request import Request
from broker.core.segments import Segment, coalesce
from broker.core.transfer import Mode, State
from broker.core.units import MAX_SLOT_US, US_PER_S, round_up
from broker.planners.optimal.measure import congestion, weight
from broker.store.transfers import Transfer

OBJECTIVES = ("congestion", "admitted", "volume", "completion")
IN_A_CHAIN = "waits for another, or another waits for it"
_BETTER = 1e-6  # relative: less is rounding


@dataclass(frozen=True, slots=True)
class Movable:
    """A transfer that may be planned anew: the rest of it as a request, and what it has booked from its own cut on.

    `promise_us` is when it was promised to end; `finish_us`, which may lie later, is when it is booked to.
    """

    request: Request
    cut_us: int
    ahead: tuple[Segment, ...]
    start_us: int
    finish_us: int
    promise_us: int
    label: str | None
    managed: bool

    def fingerprint(self) -> str:
        """Equal for equal requests and bookings: what a proposal says of this transfer holds for no other state of it."""
        said = (self.request, self.cut_us, self.ahead, self.promise_us, self.managed)
        return hashlib.sha256(repr(said).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class LinkVersion:
    """A link as the proposal was computed on it: head of its ledger, and revision of the link itself."""

    version: int
    revision: int


@dataclass(slots=True)
class Snapshot:
    """What is booked at one instant, read without locks. `calendars` hold everything, the movable transfers' bookings too."""

    taken_us: int
    cut_us: int
    links: tuple[Link, ...]
    calendars: dict[str, Calendar]
    versions: dict[str, LinkVersion]
    movable: list[Movable]
    kept: dict[str, int]  # why others stay as they are: reason -> how many


@dataclass(frozen=True, slots=True)
class Metrics:
    """Of the movable transfers. `congestion_factor`: the largest share of a link that is booked, by anybody, at an instant at which one
    of them uses it.

    Times in seconds: finishes from the cut on; `weighted_completion_s` is their sum, each times its weight. `change_points`: how often
    rates have to be programmed. `on_time`: how many end as promised; `volume_on_time_bytes`: how much they carry.
    """

    congestion_factor: float
    mean_finish_s: float
    makespan_s: float
    weighted_completion_s: float
    change_points: int
    on_time: int
    volume_on_time_bytes: int


@dataclass(frozen=True, slots=True)
class Changed:
    """One transfer's new plan from its cut on."""

    before: Movable
    segments: tuple[Segment, ...]

    @property
    def plan(self) -> Plan:
        """The new plan."""
        return Plan(self.segments)


@dataclass(slots=True)
class Proposal:
    """`links`: the versions that it is valid for, of every link that a change books or releases."""

    objective: str
    cut_us: int
    considered: int
    kept: dict[str, int]
    changes: tuple[Changed, ...]
    before: Metrics
    after: Metrics
    links: dict[str, LinkVersion]
    solver: dict[str, Any] = field(default_factory=dict)
    note: str | None = None


Solved = tuple[Sequence[Plan | Refusal], dict[str, Any]]  # an answer per request, and what the solver says of itself
Solve = Callable[[Sequence[Request], Network, Mapping[str, Calendar]], Solved]


def find_movable(transfer: Transfer, links: Mapping[str, Link], cut_us: int) -> Movable | str:
    """What of `transfer` may be planned anew, or why it stays as it is, in a few words.

    `cut_us`: what is booked until then stays; rounded up to the slots of its own links, so that what ends there ends on a slot.
    """
    managed = transfer.mode != Mode.RESERVE
    if transfer.state not in (State.RESERVED, State.ACTIVE):
        return f"is {transfer.state}"
    if transfer.paused:
        return "paused"
    if transfer.unheard_us is not None:
        return "is unheard"
    if transfer.spec.after is not None and transfer.released_us is None:
        return IN_A_CHAIN
    if transfer.spec.duration_us is not None:
        return "a holding time (class 2)"
    if transfer.spec.options.path is not None:
        return "its path was asked for"
    if managed and transfer.state is State.ACTIVE:
        return "its agents have begun"
    if not transfer.segments or transfer.finish_us is None or transfer.start_us is None:
        return "nothing is booked"
    used = transfer.links()
    if not used <= links.keys():
        return "a link of its path is gone"
    slot = lcm(*(links[link_id].slot_us for link_id in used))
    cut = round_up(cut_us, slot)
    ahead = tuple(s._replace(begin_us=max(s.begin_us, cut)) for s in transfer.segments if s.end_us > cut)
    remaining = transfer.booked_bytes - transfer.carried_by(cut)
    if slot > MAX_SLOT_US or not ahead or remaining <= 0:
        return "ends too soon"
    if managed and transfer.start_us < cut:
        return "its agents are about to begin"
    promise = min((at for at in (transfer.spec.deadline_us, transfer.promised_us) if at is not None), default=transfer.finish_us)
    request = Request(
        id=transfer.id,
        source=transfer.spec.source,
        destination=transfer.spec.destination,
        volume_bytes=remaining,
        not_before_us=max(transfer.spec.not_before_us, cut),
        rate_max_bps=transfer.spec.rate_max_bps,
        rate_min_bps=transfer.spec.rate_min_bps,
        deadline_us=max(promise, transfer.finish_us),  # later would break the promise, or break it worse
        priority=transfer.spec.priority,
        options=transfer.spec.options,
    )
    if any(request.problems()):
        return "its rest cannot be asked for anew"
    return Movable(request, cut, ahead, transfer.start_us, transfer.finish_us, promise, transfer.spec.label, managed)


def improve(snapshot: Snapshot, objective: str, solve: Solve) -> Proposal:
    """The best joint plan that `solve` finds, if it is better than the bookings; otherwise a proposal without changes."""
    network = Network(snapshot.links)
    free = {link_id: _copy(calendar) for link_id, calendar in snapshot.calendars.items()}
    for item in snapshot.movable:
        _book(free, item.ahead, -1)
    requests = [_make_request(item, objective) for item in snapshot.movable]
    answers, solver = solve(requests, network, free) if requests else ([], {})
    plans = _fit_together(snapshot.movable, answers, network, free)
    before = _measure(snapshot, [item.ahead for item in snapshot.movable], network, free)
    after = _measure(snapshot, plans, network, free)
    changes = tuple(
        Changed(item, segments) for item, segments in zip(snapshot.movable, plans, strict=True) if segments != coalesce(item.ahead)
    )
    note = None
    if not snapshot.movable:
        note = "no transfer may be planned anew"
    elif not _is_better(objective, before, after):
        note = "what is booked is as good as anything that was found in time; nothing would change"
        changes, after = (), before
    used = {link_id for change in changes for s in (*change.before.ahead, *change.segments) for link_id in s.path}
    return Proposal(
        objective,
        snapshot.cut_us,
        len(snapshot.movable),
        snapshot.kept,
        changes,
        before,
        after,
        {link_id: snapshot.versions[link_id] for link_id in sorted(used)},
        solver,
        note,
    )


def _make_request(item: Movable, objective: str) -> Request:
    """Where as much as possible shall be on time, a broken promise is tried for once more."""
    request = item.request
    if objective in ("admitted", "volume") and request.not_before_us < item.promise_us < item.finish_us:
        return replace(request, deadline_us=item.promise_us)
    return request


def _fit_together(
    items: Sequence[Movable], answers: Sequence[Plan | Refusal], network: Network, free: Mapping[str, Calendar]
) -> list[tuple[Segment, ...]]:
    """Segments from the cut on, per transfer, that fit together: transfers that keep their plans come first."""
    keeping = {index for index, answer in enumerate(answers) if isinstance(answer, Refusal)}
    while True:
        calendars = {link_id: _copy(calendar) for link_id, calendar in free.items()}
        for index in keeping:
            _book(calendars, items[index].ahead, 1)
        misfits = set()
        for index, (item, answer) in enumerate(zip(items, answers, strict=True)):
            if index in keeping or isinstance(answer, Refusal):
                continue
            try:  # the promise is the request's deadline, so this minds it, too
                verify(item.request, answer, network.links, calendars)
            except PlanRejected:
                misfits.add(index)
            else:
                _book(calendars, answer.segments, 1)
        if not misfits:
            break
        keeping |= misfits  # at the worst all keep their plans, which fit because they are booked
    return [
        coalesce(item.ahead if index in keeping or isinstance(answer, Refusal) else answer.segments)
        for index, (item, answer) in enumerate(zip(items, answers, strict=True))
    ]


def _measure(snapshot: Snapshot, plans: Sequence[tuple[Segment, ...]], network: Network, free: Mapping[str, Calendar]) -> Metrics:
    """`free`: the calendars without anything of the movable transfers."""
    items = snapshot.movable
    ends = [max(s.end_us for s in segments) for segments in plans]
    finishes = [(end - snapshot.cut_us) / US_PER_S for end in ends]
    on_time = [item for item, end in zip(items, ends, strict=True) if end <= item.promise_us]
    return Metrics(
        congestion_factor=float(congestion([Plan(segments) for segments in plans], network, free)),
        mean_finish_s=sum(finishes) / len(finishes) if finishes else 0.0,
        makespan_s=max(finishes, default=0.0),
        weighted_completion_s=float(
            sum(weight(item.request) * finish for item, finish in zip(items, map(Fraction, finishes), strict=True))
        ),
        change_points=sum(len(coalesce(segments)) for segments in plans),
        on_time=len(on_time),
        volume_on_time_bytes=sum(item.request.volume_bytes or 0 for item in on_time),
    )


def _is_better(objective: str, before: Metrics, after: Metrics) -> bool:
    match objective:
        case "congestion":
            return after.congestion_factor < before.congestion_factor * (1 - _BETTER)
        case "completion":
            return after.weighted_completion_s < before.weighted_completion_s * (1 - _BETTER)
        case "admitted":
            return after.on_time > before.on_time
        case _:
            return after.volume_on_time_bytes > before.volume_on_time_bytes


def _book(calendars: Mapping[str, Calendar], segments: Sequence[Segment], sign: int) -> None:
    for begin, end, rate, path in segments:
        for link_id in path:
            calendars[link_id].book(begin, end, sign * rate)


def _copy(calendar: Calendar) -> Calendar:
    copy = Calendar(calendar.capacity)
    copy.times, copy.free, copy.n = calendar.times.copy(), calendar.free.copy(), calendar.n
    return copy
