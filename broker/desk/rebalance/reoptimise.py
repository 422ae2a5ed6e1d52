# SPDX-License-Identifier: Apache-2.0
"""Both ends of a re-optimisation: a snapshot of the bookings, read without locks, and the command that books a proposal.

While the solver runs in between, other requests are booked. A proposal is therefore applied only if every link that it books or releases, and
every transfer that it moves, is unchanged: as a whole or not at all.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.plan import Plan, PlanRejected, verify
from broker.core.segments import Segment
from broker.core.units import format_time
from broker.desk.ground.batch import Batch, summarise
from broker.desk.ground.command import Unkeyed
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.rebalance.proposal import IN_A_CHAIN, Changed, LinkVersion, Movable, Proposal, Snapshot, find_movable
from broker.store import transfers
from broker.store.bookings import Head
from broker.store.session import read_one_instant
from broker.store.transfers import Transfer

Json = dict[str, Any]

# How long an agent may not hear of a change: event streams look at the database at least this often.
HEARING_US = 2_000_000


@dataclass(frozen=True, slots=True)
class Chosen:
    """A filter of the transfers that may move: they match every given criterion. Empty: no restriction."""

    project: str | None = None
    links: frozenset[str] = frozenset()
    transfers: frozenset[str] = frozenset()

    def __contains__(self, transfer: Transfer) -> bool:
        return (
            (self.project is None or transfer.spec.project == self.project)
            and (not self.links or bool(self.links & transfer.links()))
            and (not self.transfers or transfer.id in self.transfers)
        )


async def read_snapshot(connection: AsyncConnection, now_us: int, cut_us: int, chosen: Chosen, most: int) -> Snapshot:
    """What is booked, of one instant, without a lock; must be the first statement of its transaction.

    Raises Problem `too-large` when more than `most` transfers could move.
    """
    await read_one_instant(connection)
    replica = Replica()
    await replica.load_topology(connection)
    heads = {link_id: Head(record.version, record.revision) for link_id, record in replica.records.items()}
    # Transfers that end before the cut stay and do not conflict with new plans.
    await replica.catch_up(connection, heads, cut_us)
    found: list[Movable] = []
    kept: dict[str, int] = {}
    unfinished = await transfers.find_unfinished(connection)
    awaited = {transfer.spec.after for transfer in unfinished if transfer.released_us is None}
    for transfer in unfinished:
        if transfer not in chosen:
            continue
        item = find_movable(transfer, replica.network.links, cut_us) if transfer.id not in awaited else IN_A_CHAIN
        if isinstance(item, Movable):
            found.append(item)
        else:
            kept[item] = kept.get(item, 0) + 1
    if len(found) > most:
        raise Problem(
            "too-large",
            f"{len(found)} transfers could move, at most {most} are planned together; name a project, links or transfers",
            {"movable": len(found), "limit": most},
        )
    return Snapshot(
        taken_us=now_us,
        cut_us=cut_us,
        links=tuple(record.link for record in replica.records.values()),
        calendars=replica.calendars,
        versions={link_id: LinkVersion(head.version, head.revision) for link_id, head in heads.items()},
        movable=found,
        kept=kept,
    )


@dataclass(frozen=True, slots=True)
class Move:
    """A transfer's new plan from its cut on, good for the state of it that `fingerprint` tells."""

    transfer_id: str
    cut_us: int
    fingerprint: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The part of a proposal that is needed to apply it, stored with the job so that an operator can review it first."""

    cut_us: int
    commit_by_us: int
    links: Mapping[str, LinkVersion]
    moves: Sequence[Move]

    @classmethod
    def of(cls, proposal: Proposal, commit_by_us: int) -> "Agreement":
        """What an operator agrees to who commits this proposal."""
        moves = [
            Move(change.before.request.id, change.before.cut_us, change.before.fingerprint(), change.segments)
            for change in proposal.changes
        ]
        return cls(proposal.cut_us, commit_by_us, proposal.links, moves)

    def document(self) -> Json:
        """As JSON, to keep with the job."""
        return {
            "cut_us": self.cut_us,
            "commit_by_us": self.commit_by_us,
            "links": {link_id: [v.version, v.revision] for link_id, v in self.links.items()},
            "moves": [[m.transfer_id, m.cut_us, m.fingerprint, [tuple(s) for s in m.segments]] for m in self.moves],
        }

    @classmethod
    def from_document(cls, document: Json) -> "Agreement":
        """Of the JSON that `document` gave."""
        return cls(
            document["cut_us"],
            document["commit_by_us"],
            {link_id: LinkVersion(*pair) for link_id, pair in document["links"].items()},
            [
                Move(transfer_id, cut, mark, tuple([Segment(begin, end, rate, tuple(path)) for begin, end, rate, path in rows]))
                for transfer_id, cut, mark, rows in document["moves"]
            ],
        )


@dataclass(slots=True)
class Apply(Unkeyed):
    """Book an agreement, all or nothing. Raises Problem `conflict` with `changed` where it does not hold any more.

    `also` is written in the same transaction, so that the job and the bookings agree on whether it happened.
    """

    agreement: Agreement
    actor: str
    also: Callable[[AsyncConnection], Awaitable[None]] | None = None
    moved: list[str] = field(default_factory=list)

    def transfer_ids(self) -> Iterable[str]:
        """The transfers that are moved."""
        return [move.transfer_id for move in self.agreement.moves]

    def links(self, replica: Replica, found: Mapping[str, Transfer]) -> set[str]:  # noqa: ARG002
        """Every link whose version was agreed to."""
        return set(self.agreement.links)

    def decide(self, batch: Batch) -> int:
        """How many transfers were moved."""
        agreement, records = self.agreement, batch.replica.records
        if batch.now_us > agreement.commit_by_us:
            raise _stale(f"it was to be applied before {format_time(agreement.commit_by_us)}", "late", [])
        # Others of this batch may have booked already: their entries get their versions when all is written.
        booked_now = {entry.link_id for entry in batch.journal.done}
        links = [
            link_id
            for link_id, seen in agreement.links.items()
            if link_id not in records
            or link_id in booked_now
            or seen != LinkVersion(batch.heads[link_id], records[link_id].revision)
        ]
        if links:
            raise _stale(f"something was booked on, given back to or changed at {_name_some(links)} meanwhile", "links", links)
        present = {move.transfer_id: self._movable(batch, move) for move in agreement.moves}
        changed = [
            m.transfer_id
            for m in agreement.moves
            if (item := present[m.transfer_id]) is None or item.fingerprint() != m.fingerprint
        ]
        if changed:
            raise _stale(f"{_name_some(changed)} changed meanwhile", "transfers", changed)
        kept = {m.transfer_id: batch.release_after(batch.transfers[m.transfer_id], m.cut_us) for m in agreement.moves}
        for move in agreement.moves:
            item = present[move.transfer_id]
            assert item is not None
            try:
                verify(item.request, Plan(move.segments), batch.replica.network.links, batch.calendars)
            except PlanRejected as rejected:
                raise _stale(f"the new plans do not fit any more ({rejected})", "links", []) from None
            batch.book(move.transfer_id, move.segments)
        for move in agreement.moves:
            item = present[move.transfer_id]
            assert item is not None
            self._move(batch, move, item, kept[move.transfer_id])
        if self.also is not None:
            batch.also(self.also)
        return len(agreement.moves)

    def _movable(self, batch: Batch, move: Move) -> Movable | None:
        transfer = batch.transfers.get(move.transfer_id)
        if transfer is None:
            return None
        item = find_movable(transfer, batch.replica.network.links, self.agreement.cut_us)
        return item if isinstance(item, Movable) and item.cut_us == move.cut_us else None

    def _move(self, batch: Batch, move: Move, item: Movable, kept: tuple[Segment, ...]) -> None:
        transfer = batch.transfers[move.transfer_id]
        before = summarise(transfer)
        assert item.request.volume_bytes is not None
        transfer.carried_bytes = transfer.booked_bytes - item.request.volume_bytes
        transfer.segments = (*kept, *move.segments)
        transfer.start_us = transfer.segments[0].begin_us
        transfer.finish_us = max(segment.end_us for segment in move.segments)
        transfer.plan_from_us = move.cut_us
        transfer.plan_revision += 1
        if transfer.finish_us <= item.promise_us:
            transfer.reason = None  # whatever slowed it, the promise is kept again
        batch.change(transfer, self.actor, "transfer.replanned", before)


def _stale(detail: str, kind: str, ids: Sequence[str]) -> Problem:
    return Problem(
        "conflict",
        f"{detail}: the result holds no longer, nothing was changed; ask for a new one (POST /v1/plans with apply: true computes until it fits)",
        {"changed": {"kind": kind, "ids": list(ids[:100])}},
    )


def is_stale(problem: Problem) -> bool:
    """Is computing anew the way out?"""
    return problem.code == "conflict" and "changed" in problem.more


def _name_some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")


def describe_result(proposal: Proposal, agreement: Agreement, *, applied: bool, rounds: int, most: int) -> Json:
    """What people see of a proposal; `agreement` is kept beside for later."""
    return {
        "objective": proposal.objective,
        "considered": proposal.considered,
        "kept": proposal.kept,
        "before": asdict(proposal.before),
        "after": asdict(proposal.after),
        "changes": [_describe_change(change) for change in proposal.changes[:most]],
        "changes_total": len(proposal.changes),
        "cut": format_time(proposal.cut_us),
        "apply_by": format_time(agreement.commit_by_us),
        "links": {link_id: v.version for link_id, v in proposal.links.items()},
        "solver": proposal.solver,
        "note": proposal.note,
        "rounds": rounds,
        "applied": applied,
        "agreement": agreement.document(),
    }


def _describe_change(change: Changed) -> Json:
    item, plan = change.before, change.plan
    started = item.start_us < item.cut_us
    return {
        "transfer_id": item.request.id,
        "label": item.label,
        "source": item.request.source,
        "destination": item.request.destination,
        "promised": format_time(item.promise_us),
        "before": _describe_plan(item.start_us, item.finish_us, item.ahead),
        "after": _describe_plan(item.start_us if started else plan.start_us, plan.finish_us, plan.segments),
    }


def _describe_plan(start_us: int, finish_us: int, segments: Sequence[Segment]) -> Json:
    paths = sorted({segment.path for segment in segments})
    return {
        "start": format_time(start_us),
        "finish": format_time(finish_us),
        "paths": [list(path) for path in paths],
        "peak_bps": max(segment.rate_bps for segment in segments),
    }
