# SPDX-License-Identifier: Apache-2.0
"""Changes of the network: links, their capacity, their windows.

Lowering capacity under bookings first answers with the promises it would break; told to go on, it plans those transfers anew, the most
important first, and each that could not keep its promise says why.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.calendar import Calendar
from broker.core.capacity import Window
from broker.core.network import Link
from broker.core.transfer import Action, State
from broker.core.units import format_time
from broker.desk.admit import Policy
from broker.desk.batch import Batch, summary
from broker.desk.change import book_rest, waiting
from broker.desk.problems import Problem
from broker.desk.release import end
from broker.store import access, bookings, hosts, transfers
from broker.store.bookings import LinkRecord, WindowRecord
from broker.store.events import Event
from broker.store.transfers import Transfer


@dataclass(frozen=True, slots=True)
class LinkChange:
    """What a change of one link gives: the link as it is now, and the transfers that had to be planned anew."""

    record: LinkRecord
    replanned: tuple[str, ...]
    broken: tuple[str, ...]


@dataclass(slots=True)
class CreateLinks:
    links: Sequence[Link]
    actor: str

    async def act(self, connection: AsyncConnection, batch: Batch) -> list[LinkRecord]:
        for link in self.links:
            if link.id in batch.books.records:
                raise Problem.of_field("id", f"there is a link {link.id!r} already", "exists")
        try:
            await bookings.insert_links(connection, self.links, batch.now_us)
        except bookings.LinkExists as exists:
            raise Problem.of_field("id", str(exists), "exists") from None
        await batch.books.load_topology(connection)
        for link in self.links:
            batch.event(Event(batch.now_us, self.actor, "link.created", "link", link.id, None, describe(link)))
        return [batch.books.records[link.id] for link in self.links]


@dataclass(slots=True)
class ChangeLink:
    """Replace a link by `changed(link)`. `revision` is what If-Match named; `replan` goes on although promises break."""

    link_id: str
    actor: str
    changed: Callable[[Link], Link]
    revision: int | None = None
    replan: bool = False
    policy: Policy = field(default_factory=Policy)

    async def act(self, connection: AsyncConnection, batch: Batch) -> LinkChange:
        record = find(batch, self.link_id, self.revision)
        link = self.changed(record.link)
        broken = await broken_promises(connection, batch, link)
        refuse_to_break(broken, self.replan)
        await bookings.update_link(connection, link, batch.now_us)
        batch.event(Event(batch.now_us, self.actor, "link.changed", "link", link.id, describe(record.link), describe(link)))
        return await settle(connection, batch, link.id, broken, self.actor, self.policy)


@dataclass(slots=True)
class AddWindow:
    window: WindowRecord
    actor: str
    replan: bool = False
    policy: Policy = field(default_factory=Policy)

    async def act(self, connection: AsyncConnection, batch: Batch) -> LinkChange:
        window = self.window
        record = find(batch, window.link_id)
        if window.end_us <= batch.now_us:
            raise Problem.of_field("end", f"{format_time(window.end_us)} is in the past")
        core_windows = (*record.link.windows, Window(window.begin_us, window.end_us, window.bps))
        broken = await broken_promises(connection, batch, replace(record.link, windows=core_windows))
        refuse_to_break(broken, self.replan)
        await bookings.insert_window(connection, window, batch.now_us)
        shown = {
            "id": window.id,
            "begin_us": window.begin_us,
            "end_us": window.end_us,
            "bps": window.bps,
            "kind": window.kind,
            "reason": window.reason,
        }
        batch.event(Event(batch.now_us, self.actor, "window.created", "link", window.link_id, None, shown))
        return await settle(connection, batch, window.link_id, broken, self.actor, self.policy)


@dataclass(slots=True)
class RemoveWindow:
    link_id: str
    window_id: str
    actor: str

    async def act(self, connection: AsyncConnection, batch: Batch) -> LinkChange:
        record = find(batch, self.link_id)
        if all(window.id != self.window_id for window in record.windows):
            raise Problem("not-found", f"link {self.link_id} has no window {self.window_id}")
        await bookings.delete_window(connection, self.link_id, self.window_id, batch.now_us)
        batch.event(Event(batch.now_us, self.actor, "window.removed", "link", self.link_id, {"id": self.window_id}, None))
        return await settle(connection, batch, self.link_id, [], self.actor, Policy())


@dataclass(slots=True)
class DeleteLink:
    link_id: str
    actor: str
    revision: int | None = None

    async def act(self, connection: AsyncConnection, batch: Batch) -> None:
        record = find(batch, self.link_id, self.revision)
        if record.host is not None:
            raise Problem("conflict", f"{self.link_id} is the NIC of host {record.host}; remove the host instead")
        holding = await live_on(connection, self.link_id, batch.now_us)
        if holding:
            raise Problem(
                "breaks-promises",
                f"{len(holding)} live transfers are booked on {self.link_id}; cancel them or lower its capacity to 0 with on_broken=replan first",
                {"broken": [shown_promise(transfer) for transfer in holding[:100]]},
            )
        await bookings.delete_link(connection, self.link_id, batch.now_us)
        batch.event(Event(batch.now_us, self.actor, "link.deleted", "link", self.link_id, describe(record.link), None))
        batch.heads.pop(self.link_id, None)
        await batch.books.load_topology(connection)


@dataclass(slots=True)
class RemoveHost:
    """Forget a host: its token, and the links that stand for its NIC."""

    host: str
    actor: str

    async def act(self, connection: AsyncConnection, batch: Batch) -> None:
        nic = [link_id for link_id, record in batch.books.records.items() if record.host == self.host]
        if await hosts.get(connection, self.host) is None:
            raise Problem("not-found", f"host {self.host!r} is not enrolled")
        holding = {t.id: t for link_id in nic for t in await live_on(connection, link_id, batch.now_us)}
        if holding:
            raise Problem(
                "breaks-promises",
                f"{len(holding)} live transfers begin or end at {self.host}; drain it and wait, or cancel them first",
                {"broken": [shown_promise(transfer) for transfer in list(holding.values())[:100]]},
            )
        for link_id in nic:
            await bookings.delete_link(connection, link_id, batch.now_us)
            batch.heads.pop(link_id, None)
        await hosts.remove(connection, self.host)
        await access.revoke(connection, batch.now_us, host=self.host)
        batch.event(Event(batch.now_us, self.actor, "host.removed", "host", self.host, None, None))
        await batch.books.load_topology(connection)


def find(batch: Batch, link_id: str, revision: int | None = None) -> LinkRecord:
    record = batch.books.records.get(link_id)
    if record is None:
        raise Problem("not-found", f"there is no link {link_id!r}")
    if revision is not None and revision != record.revision:
        raise Problem(
            "precondition-failed", f"the link is at revision {record.revision} now; read it again", {"revision": record.revision}
        )
    return record


async def live_on(connection: AsyncConnection, link_id: str, now_us: int) -> list[Transfer]:
    """Live transfers with something still booked on the link, locked; the most important first, then the oldest."""
    ids = await bookings.transfers_on(connection, link_id, now_us)
    found = (await transfers.get_many(connection, ids, lock=True)).values()
    # The ledger also names those that have given everything back: paused, or planned anew on another path.
    there = (t for t in found if t.live and any(link_id in s.path and s.end_us > now_us for s in t.segments))
    return sorted(there, key=lambda t: (-t.priority, t.created_us, t.id))


async def broken_promises(connection: AsyncConnection, batch: Batch, changed: Link) -> list[Transfer]:
    """Transfers whose booking does not fit into the changed link any more, when the more important ones are seated first."""
    capacity = changed.capacity()
    present = batch.books.calendars[changed.id]
    trial = Calendar(present.capacity)
    trial.times, trial.free, trial.n = present.times.copy(), present.free.copy(), present.n
    trial.set_capacity(capacity)
    if trial.lowest(batch.now_us, 2**60) >= 0:
        return []
    seats = Calendar(capacity)
    broken = []
    for transfer in await live_on(connection, changed.id, batch.now_us):
        ahead = [s for s in transfer.segments if changed.id in s.path and s.end_us > batch.now_us]
        for segment in ahead:
            seats.book(*segment[:3])
        if any(seats.lowest(max(s.begin_us, batch.now_us), s.end_us) < 0 for s in ahead):
            for segment in ahead:
                seats.release(*segment[:3])
            broken.append(transfer)
    return broken


def refuse_to_break(broken: Sequence[Transfer], replan: bool) -> None:
    if broken and not replan:
        raise Problem(
            "breaks-promises",
            f"this would break the promises made to {len(broken)} transfers; send on_broken=replan to plan them anew",
            {"broken": [shown_promise(transfer) for transfer in broken[:100]], "broken_total": len(broken)},
        )


async def settle(
    connection: AsyncConnection, batch: Batch, link_id: str, broken: Sequence[Transfer], actor: str, policy: Policy
) -> LinkChange:
    """After the change is written: plan the broken transfers anew on the network as it is now."""
    await batch.books.load_topology(connection)
    kept = [(transfer, summary(transfer)) for transfer in broken]
    for transfer, _ in kept:
        batch.transfers[transfer.id] = transfer
    late = []
    why = f"the capacity of {link_id} was lowered"
    # All give back first: the most important one then finds all of the room that there is.
    released = {transfer.id: batch.release_after(transfer, batch.now_us, within_slots=True) for transfer, _ in kept}
    for transfer, before in kept:
        carried = transfer.carried_by(batch.now_us)
        transfer.segments = released[transfer.id]
        transfer.plan_from_us, transfer.carried_bytes = batch.now_us, carried
        try:
            if carried < transfer.booked_bytes:
                book_rest(batch, transfer, None, "capacity_lowered", why, policy)
            else:  # only the rest of its last slot was lost
                transfer.finish_us = transfer.segments[-1].end_us
        except Problem as problem:
            reason = waiting("capacity_lost", f"{why}, and the rest cannot be booked anew: {problem.detail}", link_id)
            end(batch, transfer, Action.EXPIRE if transfer.state is State.HELD else Action.FAIL, reason)
        if transfer.reason is not None:
            transfer.reason["limited_by"] = link_id
        if not transfer.live or (transfer.finish_us or 0) > (transfer.promised_us or 0):
            late.append(transfer.id)
        batch.change(transfer, actor, "transfer.replanned", before)
    return LinkChange(batch.books.records[link_id], tuple(transfer.id for transfer in broken), tuple(late))


def shown_promise(transfer: Transfer) -> dict[str, Any]:
    finish = format_time(transfer.finish_us) if transfer.finish_us is not None else None
    return {"id": transfer.id, "label": transfer.label, "priority": transfer.priority, "finish": finish}


def describe(link: Link) -> dict[str, Any]:
    """A link for the audit log."""
    return {
        "source": link.source,
        "target": link.target,
        "capacity_bps": link.capacity_bps,
        "mtu_bytes": link.mtu_bytes,
        "channel_bps": link.channel_bps,
        "slot_us": link.slot_us,
        "metric": link.metric,
        "available": [list(step) for step in link.available],
    }
