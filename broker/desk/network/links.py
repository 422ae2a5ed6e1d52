# SPDX-License-Identifier: Apache-2.0
"""Changes of links, their capacity and their windows.

A capacity below the bookings is first refused with the promises that it would break. With `replan`, those transfers are replanned, the highest
priority first, and each whose promise is broken has the reason.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.calendar import DISTANT_PAST_US
from broker.core.capacity import Window
from broker.core.link_document import document_of
from broker.core.network import Link
from broker.core.units import format_time
from broker.desk.ground.batch import Batch
from broker.desk.ground.command import Alone
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.network.displacement import Outcome, find_displaced, give_back, plan_anew, refuse_to_break
from broker.desk.planning.replan import describe_promise
from broker.store import access, bookings, hosts, transfers
from broker.store.bookings import LinkRecord, WindowRecord
from broker.store.events import Event
from broker.store.transfers import Transfer

# Capacity of a link that is to be deleted.
NOTHING = [(DISTANT_PAST_US, 0)]


@dataclass(frozen=True, slots=True)
class LinkChange:
    """What a change of one link gives: the link as it is now (None: deleted), and what became of the transfers that lost their place."""

    record: LinkRecord | None
    outcomes: Sequence[Outcome] = ()


@dataclass(slots=True)
class CreateLinks(Alone[list[LinkRecord]]):
    """Add links; all or none."""

    links: Sequence[Link]
    actor: str

    async def act(self, connection: AsyncConnection, batch: Batch) -> list[LinkRecord]:
        """Add them. Raises Problem where there is one already."""
        for link in self.links:
            if link.id in batch.replica.records:
                raise Problem.of_field("id", f"there is a link {link.id!r} already", "exists")
        try:
            await bookings.insert_links(connection, self.links, batch.now_us)
        except bookings.LinkExists as exists:
            raise Problem.of_field("id", str(exists), "exists") from None
        await batch.replica.load_topology(connection)
        for link in self.links:
            batch.event(Event(batch.now_us, self.actor, "link.created", "link", link.id, None, document_of(link)))
        return [batch.replica.records[link.id] for link in self.links]


@dataclass(slots=True)
class ChangeLink(Alone[LinkChange]):
    """Replace a link by `changed(link)`. `revision` is what If-Match named; `replan` goes on although promises break."""

    link_id: str
    actor: str
    changed: Callable[[Link], Link]
    revision: int | None = None
    replan: bool = False
    policy: Policy = field(default_factory=Policy)

    async def act(self, connection: AsyncConnection, batch: Batch) -> LinkChange:
        """Change it, and re-plan or release what it no longer carries."""
        record = find_link(batch, self.link_id, self.revision)
        link = self.changed(record.link)

        async def write() -> None:
            await bookings.update_links(connection, [link], batch.now_us)
            batch.event(
                Event(batch.now_us, self.actor, "link.changed", "link", link.id, document_of(record.link), document_of(link))
            )

        return await change_one(connection, batch, link, write, self.actor, self.replan, self.policy)


@dataclass(slots=True)
class AddWindow(Alone[LinkChange]):
    """Add a window of reduced capacity to a link."""

    window: WindowRecord
    actor: str
    replan: bool = False
    policy: Policy = field(default_factory=Policy)

    async def act(self, connection: AsyncConnection, batch: Batch) -> LinkChange:
        """Add it, and re-plan or release what the link no longer carries."""
        window = self.window
        record = find_link(batch, window.link_id)
        if window.end_us <= batch.now_us:
            raise Problem.of_field("end", f"{format_time(window.end_us)} is in the past")
        shown = {
            "id": window.id,
            "begin_us": window.begin_us,
            "end_us": window.end_us,
            "bps": window.bps,
            "kind": window.kind,
            "reason": window.reason,
        }

        async def write() -> None:
            await bookings.insert_window(connection, window, batch.now_us)
            batch.event(Event(batch.now_us, self.actor, "window.created", "link", window.link_id, None, shown))

        link = replace(record.link, windows=(*record.link.windows, Window(window.begin_us, window.end_us, window.bps)))
        return await change_one(connection, batch, link, write, self.actor, self.replan, self.policy)


@dataclass(slots=True)
class RemoveWindow(Alone[LinkChange]):
    """Take a window off a link."""

    link_id: str
    window_id: str
    actor: str

    async def act(self, connection: AsyncConnection, batch: Batch) -> LinkChange:
        """Take it off; nothing that is booked changes."""
        record = find_link(batch, self.link_id)
        if all(window.id != self.window_id for window in record.windows):
            raise Problem("not-found", f"link {self.link_id} has no window {self.window_id}")
        await bookings.delete_window(connection, self.link_id, self.window_id, batch.now_us)
        batch.event(Event(batch.now_us, self.actor, "window.removed", "link", self.link_id, {"id": self.window_id}, None))
        await batch.replica.load_topology(connection)
        return LinkChange(batch.replica.records[self.link_id])


@dataclass(slots=True)
class DeleteLink(Alone[LinkChange]):
    """`replan` plans the transfers on it anew over other paths; otherwise they keep it from being deleted."""

    link_id: str
    actor: str
    revision: int | None = None
    replan: bool = False
    policy: Policy = field(default_factory=Policy)

    async def act(self, connection: AsyncConnection, batch: Batch) -> LinkChange:
        """Delete it. Raises Problem where transfers are booked on it and must not be displaced."""
        record = find_link(batch, self.link_id, self.revision)
        if record.host is not None:
            raise Problem("conflict", f"{self.link_id} is the NIC of host {record.host}; remove the host instead")
        displaced = await find_displaced(connection, batch, {self.link_id: NOTHING}, self.policy)
        refuse_to_break(displaced, self.replan, f"deleting {self.link_id}")
        before = give_back(batch, displaced)
        await bookings.delete_links(connection, [self.link_id], batch.now_us)
        batch.event(Event(batch.now_us, self.actor, "link.deleted", "link", self.link_id, document_of(record.link), None))
        await batch.replica.load_topology(connection)
        outcomes = await plan_anew(
            connection, batch, displaced, before, self.actor, self.policy, {self.link_id: f"link {self.link_id} was deleted"}
        )
        return LinkChange(None, outcomes)


@dataclass(slots=True)
class RemoveHost(Alone[None]):
    """Forget a host: its token, and the links that stand for its NIC."""

    host: str
    actor: str

    async def act(self, connection: AsyncConnection, batch: Batch) -> None:
        """Remove the host, its NIC link and its agent's token. Raises Problem while it has live transfers."""
        nic = [link_id for link_id, record in batch.replica.records.items() if record.host == self.host]
        if await hosts.get(connection, self.host) is None:
            raise Problem("not-found", f"host {self.host!r} is not enrolled")
        holding = await find_live_transfers(connection, nic, batch.now_us)
        if holding:
            raise Problem(
                "breaks-promises",
                f"{len(holding)} live transfers begin or end at {self.host}; drain it and wait, or cancel them first",
                {"broken": [describe_promise(transfer) for transfer in holding[:100]]},
            )
        await bookings.delete_links(connection, nic, batch.now_us)
        await hosts.remove(connection, self.host)
        await access.revoke(connection, batch.now_us, host=self.host)
        for token in await access.revoke_enrolments(connection, batch.now_us, host=self.host):
            batch.event(Event(batch.now_us, self.actor, "enrolment_token.revoked", "host", self.host, None, {"id": token.id}))
        batch.event(Event(batch.now_us, self.actor, "host.removed", "host", self.host, None, None))
        await batch.replica.load_topology(connection)


def find_link(batch: Batch, link_id: str, revision: int | None = None) -> LinkRecord:
    """The link. Raises Problem where there is none, or it is another revision."""
    record = batch.replica.records.get(link_id)
    if record is None:
        raise Problem("not-found", f"there is no link {link_id!r}")
    if revision is not None and revision != record.revision:
        raise Problem(
            "precondition-failed", f"the link is at revision {record.revision} now; read it again", {"revision": record.revision}
        )
    return record


async def find_live_transfers(connection: AsyncConnection, link_ids: Sequence[str], now_us: int) -> list[Transfer]:
    """Live transfers with something still booked on any of the links, locked; the most important first, then the oldest."""
    ids = await bookings.find_transfers(connection, link_ids, now_us)
    found = (await transfers.get_many(connection, ids, lock=True)).values()
    return sorted((t for t in found if t.live), key=lambda t: (-t.spec.priority, t.created_us, t.id))


async def change_one(
    connection: AsyncConnection,
    batch: Batch,
    link: Link,
    write: Callable[[], Awaitable[None]],
    actor: str,
    replan: bool,
    policy: Policy,
) -> LinkChange:
    """Make `link` what it shall be, by `write`, and rebook what that displaces."""
    displaced = await find_displaced(connection, batch, {link.id: link.capacity()}, policy)
    refuse_to_break(displaced, replan)
    before = give_back(batch, displaced)
    await write()
    await batch.replica.load_topology(connection)
    outcomes = await plan_anew(connection, batch, displaced, before, actor, policy)
    return LinkChange(batch.replica.records[link.id], outcomes)
