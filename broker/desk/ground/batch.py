# SPDX-License-Identifier: Apache-2.0
"""The decisions of one transaction: what they read, what they book in memory, and what is to be written."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.allowance import NOTHING, Allowance, Use
from broker.core.calendar import Calendar
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.core.segments import Segment, coalesce
from broker.core.transfer import Action, Mode, after
from broker.core.units import US_PER_S, round_up
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Booking, Journal, Replica, find_freed_links
from broker.planners.offers import Binding
from broker.planners.signature import Spent, never
from broker.store import bookings, decisions, hosts, transfers
from broker.store.bookings import LedgerRow
from broker.store.events import Event
from broker.store.transfers import Transfer

# How many refusals of one batch get the list of reservations that stand in their way: each costs a query under the links' locks.
_EXPLAINED = 16
# How many refusals of one batch get counter-offers: each costs a search, while everybody else waits for the locks.
_OFFERED = 64


class NotLocked(Exception):
    """A planner looked at a link that is not locked: its paths depend on the time, or on a rate that `links` did not foresee. Lock anew."""


class Doubted(Exception):
    """What a token has was known from an earlier transaction, and another desk has booked for it since. Read it, and begin anew."""


class Heavy(Exception):
    """A planner would take too long while everybody waits: what it plans is planned elsewhere (`rehearsal`), and then decided again."""


@dataclass(slots=True)
class Answers:
    """What planners said of requests, whenever they begin: `recording` it elsewhere, and what was brought from there to the desk."""

    recording: bool = False
    plans: dict[tuple[str, Request], Plan | Refusal] = field(default_factory=dict)
    refusals: dict[tuple[str, Request], tuple[Problem, Binding | None]] = field(default_factory=dict)

    @property
    def brought(self) -> bool:
        """Were these plans found elsewhere, to be used here?"""
        return not self.recording and bool(self.plans)


NO_ANSWERS = Answers()


async def find_holders(connection: AsyncConnection, binding: Binding) -> list[str]:
    """The reservations in the way."""
    return await bookings.find_holders(connection, binding.link, binding.begin_us, binding.end_us)


class LockedCalendars(dict[str, Calendar]):
    """gamma(t) of the locked links only: the others may be out of date, and must not be planned on."""

    def __missing__(self, link_id: str) -> Calendar:
        raise NotLocked(link_id)


class Claim(NamedTuple):
    """What a transfer counts more than before for the token that it was booked with."""

    transfer_id: str
    owner: str
    more: Use


class Batch:
    """The working set of one transaction. Commands read `replica` and `transfers`, and call the methods below; nothing else has effects."""

    def __init__(
        self, replica: Replica, heads: Mapping[str, int], found: dict[str, Transfer], now_us: int, *, rehearsed: bool = False
    ) -> None:
        self.replica = replica
        self.transfers = found
        self.now_us = now_us
        self.rehearsed = rehearsed  # a preview: nothing of this will be written
        self.heads = dict(heads)
        every_link = len(heads) >= len(replica.calendars)
        self.calendars: Mapping[str, Calendar] = (
            replica.calendars if every_link else LockedCalendars({link_id: replica.calendars[link_id] for link_id in heads})
        )
        self.touched: set[str] = set()  # hosts whose assignments changed
        self.journal = Journal(replica.calendars)
        self.noted: list[tuple[str, int | None]] = []  # what commands added or changed: (transfer, its finish before)
        self.pulled: set[str] = set()  # transfers pulled forward: the puller need not hear of the capacity that this frees
        self._owners: list[str] = []  # transfer of each journal entry
        self._new: dict[str, Transfer] = {}
        self._changed: dict[str, Transfer] = {}
        self._events: list[Event] = []
        self.unexplained: list[tuple[Problem, Binding]] = []
        self._offers_left = _OFFERED
        self._successors: dict[str, list[str]] = {}  # by predecessor; successors that no longer wait for it are still listed
        # The desk says when the decisions of this transaction have taken long enough for now, and when searches for offers have.
        self.full: Callable[[], bool] = never
        self.spent: Spent = never
        self._used: dict[str, Use] = {}  # by transfer, as it counts for its token by now
        self.answers = NO_ANSWERS
        self.may_go_elsewhere = False
        self.know(list(found.values()))
        self._also: list[Callable[[AsyncConnection], Awaitable[None]]] = []
        self.checked: dict[str, Allowance] = {}  # tokens that were to have no more than this
        self.counted: frozenset[str] = frozenset()  # tokens whose use was read in this transaction
        self._claims: list[Claim] = []  # what changes of what tokens use, in their order
        self._claimed: dict[str, Use] = {}  # their sums
        self.uses: dict[str, Use] = {}  # of the tokens for which this has changed, once it is written

    def know(self, found: Iterable[Transfer]) -> None:
        """Transfers that were locked later than the others."""
        for transfer in found:
            if transfer.id not in self._used:
                self._used[transfer.id] = transfer.use
            self._meet(transfer)

    def _meet(self, transfer: Transfer) -> None:
        self.transfers[transfer.id] = transfer
        if transfer.spec.after is not None:
            self._successors.setdefault(transfer.spec.after, []).append(transfer.id)

    def successors(self, transfer_id: str) -> list[Transfer]:
        """Live transfers that wait for the end of this one (see `chains`), in the order in which they came."""
        found = (self.transfers.get(name) for name in dict.fromkeys(self._successors.get(transfer_id, ())))
        return [t for t in found if t is not None and t.live and t.spec.after == transfer_id and t.released_us is None]

    # -- what commands do -------------------------------------------------------------------------------------------------

    def book(self, transfer_id: str, segments: Iterable[Segment]) -> None:
        """Take the segments' capacity on every link of their paths; equal rates that touch become one ledger row."""
        self._enter(
            transfer_id, [Booking(link_id, s.begin_us, s.end_us, s.rate_bps) for s in coalesce(segments) for link_id in s.path]
        )

    def release_after(self, transfer: Transfer, instant_us: int, *, within_slots: bool = False) -> tuple[Segment, ...]:
        """Give back what `transfer` has booked from `instant_us` on; returns what remains of its segments.

        The cut is rounded up to the links' slots, unless capacity is gone `within_slots`.
        """
        kept, returned = [], []
        for segment in transfer.segments:
            cut = max(segment.begin_us, instant_us if within_slots else self.slot_boundary(segment.path, instant_us))
            if cut < segment.end_us:
                returned.append(segment._replace(begin_us=cut))
            if segment.begin_us < cut:
                kept.append(segment._replace(end_us=min(cut, segment.end_us)))
        gone = [
            Booking(link_id, s.begin_us, s.end_us, -s.rate_bps)
            for s in coalesce(returned)
            for link_id in s.path
            if link_id in self.heads  # a link that was deleted meanwhile has no calendar to return capacity to
        ]
        self._enter(transfer.id, gone)
        return tuple(kept)

    def slot_boundary(self, path: Sequence[str], instant_us: int) -> int:
        """The first instant from `instant_us` on that begins a slot of every link of `path`."""
        for link_id in path:
            record = self.replica.records.get(link_id)
            if record is not None:
                instant_us = round_up(instant_us, record.link.slot_us)
        return instant_us

    def add(self, transfer: Transfer, actor: str) -> None:
        """Add a new transfer, whose plan is booked already."""
        self._new[transfer.id] = transfer
        self._used[transfer.id] = NOTHING
        self._meet(transfer)
        self._claim(transfer)
        self._note(transfer, actor, "transfer.admitted", None)

    def change(self, transfer: Transfer, actor: str, action: str, before: dict[str, Any]) -> None:
        """Write `transfer` back; `before` is what `summary` said of it earlier."""
        transfer.revision += 1
        transfer.updated_us = self.now_us
        if transfer.id not in self._new:
            self._changed[transfer.id] = transfer
        self._claim(transfer)
        self._note(transfer, actor, action, before)

    def rechain(self, transfer: Transfer, after: str) -> None:
        """Let it wait for another one."""
        transfer.spec = replace(transfer.spec, after=after)
        self._successors.setdefault(after, []).append(transfer.id)

    def move(self, transfer: Transfer, action: Action) -> None:
        """Change the state by the table. Raises IllegalTransition."""
        transfer.state = after(transfer.state, action)

    def explain(self, problem: Problem, binding: Binding | None) -> Problem:
        """Have `binding.reservations` of a refusal filled in before the answer goes out."""
        if binding is not None and len(self.unexplained) < _EXPLAINED:
            self.unexplained.append((problem, binding))
        return problem

    def may_offer(self, cost: int = 1) -> bool:
        """Is there time to look for counter-offers to one more refusal?"""
        self._offers_left -= cost
        return self._offers_left >= 0 and not self.spent()

    def use(self, owner: str) -> Use:
        """What the token has by now."""
        return self.replica.uses.get(owner, NOTHING).plus(self._claimed.get(owner, NOTHING))

    def event(self, event: Event) -> None:
        """Add to the history."""
        self._events.append(event)

    def also(self, write: Callable[[AsyncConnection], Awaitable[None]]) -> None:
        """Something beside to be written in the same transaction. To be called when nothing can be refused any more."""
        self._also.append(write)

    def mark(self) -> tuple[int, ...]:
        """Where the batch stands, for `back_to`."""
        return len(self.journal.done), len(self._events), len(self._new), len(self._changed), len(self.noted), len(self._claims)

    def back_to(self, mark: tuple[int, ...]) -> None:
        """Undo what a refused or failed command booked, added and noted. Commands change transfers only after all that can be refused."""
        booked, happened, added, changed, noted, claimed = mark
        self.journal.undo(booked)
        del self._owners[booked:], self._events[happened:], self.noted[noted:]
        while len(self._claims) > claimed:
            claim = self._claims.pop()
            self._used[claim.transfer_id] = self._used[claim.transfer_id].minus(claim.more)
            self._claimed[claim.owner] = self._claimed[claim.owner].minus(claim.more)
        while len(self._new) > added:
            del self.transfers[self._new.popitem()[0]]
        while len(self._changed) > changed:
            self._changed.popitem()

    @property
    def wrote(self) -> bool:
        """Is there anything to write?"""
        return bool(self._events)

    def freed(self) -> set[str]:
        """Links on which there is more free than before, at some instant."""
        if all(entry.rate_bps > 0 for entry in self.journal.done):  # admissions only
            return set()
        owned = zip(self._owners, self.journal.done, strict=True)
        return find_freed_links(entry for transfer_id, entry in owned if transfer_id not in self.pulled)

    # -- what the desk does ------------------------------------------------------------------------------------------------

    async def write(self, connection: AsyncConnection) -> None:
        """Write all that was decided; the caller commits."""
        await transfers.update(connection, list(self._changed.values()))
        rows = self._ledger_rows()
        changes = {owner: more for owner, more in self._claimed.items() if more != NOTHING}
        new = list(self._new.values())
        self.uses = await decisions.append(connection, new, rows, self.heads, changes, self._events)
        self._refuse_doubtful()
        await self.explain_refusals(connection)
        if self.touched:
            await hosts.bump(connection, self.touched)
        for write in self._also:
            await write(connection)

    def _refuse_doubtful(self) -> None:
        """Raises Doubted where another desk has booked for a token meanwhile, and it has more now than a check of this batch allowed."""
        for owner, allowance in self.checked.items():
            if owner in self.uses and self.uses[owner] != self.use(owner) and not allowance.covers(self.uses[owner]):
                self.replica.watched.add(owner)
                raise Doubted(owner)

    async def explain_refusals(self, connection: AsyncConnection) -> None:
        """Fill in what was promised by `explain`. After the ledger is written: what stands in the way may be of this batch."""
        for problem, binding in self.unexplained:
            problem.more["binding"]["reservations"] = await find_holders(connection, binding)

    def _ledger_rows(self) -> list[LedgerRow]:
        rows = []
        for transfer_id, entry in zip(self._owners, self.journal.done, strict=True):
            version = self.heads[entry.link_id] + 1
            self.heads[entry.link_id] = version
            rows.append(LedgerRow(entry.link_id, version, transfer_id, entry.begin_us, entry.end_us, entry.rate_bps))
        return rows

    def _enter(self, transfer_id: str, entries: list[Booking]) -> None:
        self.journal.book(entries)
        self._owners.extend([transfer_id] * len(entries))

    def _claim(self, transfer: Transfer) -> None:
        now = transfer.use
        more = now.minus(self._used[transfer.id])
        if more != NOTHING:
            self._claims.append(Claim(transfer.id, transfer.owner, more))
            self._used[transfer.id] = now
            self._claimed[transfer.owner] = self._claimed.get(transfer.owner, NOTHING).plus(more)

    def _note(self, transfer: Transfer, actor: str, action: str, before: dict[str, Any] | None) -> None:
        self._events.append(Event(self.now_us, actor, action, "transfer", transfer.id, before, summarise(transfer)))
        self.noted.append((transfer.id, None if before is None else before["finish_us"]))
        if transfer.mode != Mode.RESERVE:
            self.touched.update((transfer.spec.source, transfer.spec.destination))
            # The assignments of both senders of a pair depend on both transfers.
            if transfer.spec.after is not None and (predecessor := self.transfers.get(transfer.spec.after)) is not None:
                self.touched.add(predecessor.spec.source)
            self.touched.update(successor.spec.source for successor in self.successors(transfer.id))


_SHOWN_OF_SPEC = ("best_effort", "deadline_us", "rate_max_bps", "priority", "label", "project", "after")
_SHOWN_OF_RECORD = ("reason", "bytes_done", "checksum", "hold_until_us", "released_us", "unheard_us", "assumed")
_SHOWN = (*_SHOWN_OF_SPEC, *_SHOWN_OF_RECORD)
_read_shown_of_spec, _read_shown = attrgetter(*_SHOWN_OF_SPEC), attrgetter(*_SHOWN_OF_RECORD)


def summarise(transfer: Transfer) -> dict[str, Any]:
    """What of a transfer events show: enough to see what changed."""
    shown: dict[str, Any] = {
        "state": str(transfer.state),
        "volume_bytes": transfer.spec.volume_bytes,
        "start_us": transfer.start_us,
        "finish_us": transfer.finish_us,
        "plan_revision": transfer.plan_revision,
    }
    for name, value in zip(_SHOWN, (*_read_shown_of_spec(transfer.spec), *_read_shown(transfer)), strict=True):
        if value:
            shown[name] = value
    if transfer.spec.duration_us is not None:
        shown["duration_s"] = transfer.spec.duration_us / US_PER_S
    if transfer.paused:
        shown["paused"] = True
    return shown
