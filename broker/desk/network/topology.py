# SPDX-License-Identifier: Apache-2.0
"""The whole network at once: replace it by a document in one transaction, and rebook the displaced transfers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.link_document import document_of
from broker.core.network import Link
from broker.desk.ground.batch import Batch
from broker.desk.ground.command import Alone
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.network.displacement import Outcome, find_displaced, give_back, plan_anew, refuse_to_break
from broker.desk.network.links import NOTHING
from broker.store import bookings, nodes
from broker.store.bookings import Head, LinkRecord
from broker.store.events import Event
from broker.store.nodes import Node


@dataclass(frozen=True, slots=True)
class TopologyChange:
    """Ids of links, in order, and what became of the transfers that lost their place. `unchanged`: how many stay as they were.

    `cut_off`: hosts that no link but their own leads to any more. `revision` is that of the whole topology.
    """

    created: Sequence[str]
    changed: Sequence[str]
    deleted: Sequence[str]
    unchanged: int
    cut_off: Sequence[str]
    outcomes: Sequence[Outcome]
    revision: int


@dataclass(slots=True)
class PutTopology(Alone[TopologyChange]):
    """Make the network consist of `links`, without `prune` only add and change. Hosts' NICs and links' windows stay as they are.

    `revision` is what If-Match named; `replan` goes on although promises break.
    """

    links: Sequence[Link]
    actor: str
    prune: bool = True
    replan: bool = False
    revision: int | None = None
    policy: Policy = field(default_factory=Policy)
    nodes: Sequence[Node] | None = None  # metadata of nodes; None: unchanged

    async def act(self, connection: AsyncConnection, batch: Batch) -> TopologyChange:
        """Replace the network, as one change."""
        replica = batch.replica
        if self.revision is not None and self.revision != replica.topology_version:
            raise Problem(
                "precondition-failed",
                f"the topology is at revision {replica.topology_version} now; read it again",
                {"revision": replica.topology_version},
            )
        self._refuse_nics(replica.records)
        present = {link_id: record for link_id, record in replica.records.items() if record.host is None}
        # A link keeps its windows: documents do not speak of them.
        wanted = {
            link.id: replace(link, windows=present[link.id].link.windows) if link.id in present else link for link in self.links
        }
        created = [link for link in wanted.values() if link.id not in present]
        changed = [link for link in wanted.values() if link.id in present and link != present[link.id].link]
        deleted = sorted(present.keys() - wanted.keys()) if self.prune else []

        # What is booked on a link that leads elsewhere now cannot stay, either.
        moved = [link.id for link in changed if _ends(link) != _ends(present[link.id].link)]
        gone = {link_id: f"link {link_id} leads elsewhere now" for link_id in moved}
        gone |= {link_id: f"link {link_id} was deleted" for link_id in deleted}
        capacities = {link.id: NOTHING if link.id in gone else link.capacity() for link in changed} | dict.fromkeys(
            deleted, NOTHING
        )
        displaced = await find_displaced(connection, batch, capacities, self.policy)
        refuse_to_break(displaced, self.replan)
        await self._create(connection, created, batch)
        before = give_back(batch, displaced)
        await bookings.update_links(connection, changed, batch.now_us)
        await bookings.delete_links(connection, deleted, batch.now_us)
        self._note(batch, present, created, changed, deleted)
        if self.nodes is not None and await self._write_nodes(connection, self.nodes, batch):
            await bookings.bump_topology(connection)
            await replica.load_topology(connection)
        if created or changed or deleted:
            await replica.load_topology(connection)
            await self._adopt(connection, batch, created)
        outcomes = await plan_anew(connection, batch, displaced, before, self.actor, self.policy, gone)
        return TopologyChange(
            created=[link.id for link in created],
            changed=[link.id for link in changed],
            deleted=deleted,
            unchanged=len(present) - len(changed) - len(deleted),
            cut_off=_cut_off(replica.records),
            outcomes=outcomes,
            revision=replica.topology_version,
        )

    async def _write_nodes(self, connection: AsyncConnection, given: Sequence[Node], batch: Batch) -> bool:
        """Did anything change?"""
        before, wanted = await nodes.read_all(connection), {node.id: node for node in given}
        changed = [node for node in given if node != before.get(node.id)]
        gone = sorted(before.keys() - wanted.keys()) if self.prune else []
        await nodes.put(connection, changed)
        await nodes.forget(connection, gone)
        for node_id in [*(node.id for node in changed), *gone]:
            was, now = (asdict(known[node_id]) if node_id in known else None for known in (before, wanted))
            batch.event(Event(batch.now_us, self.actor, "node.changed", "node", node_id, was, now))
        return bool(changed or gone)

    def _refuse_nics(self, records: Mapping[str, LinkRecord]) -> None:
        errors = [
            {
                "field": f"links.{number}.id",
                "detail": f"{link.id} is the NIC of host {record.host}; leave it out, it stays as it is",
            }
            for number, link in enumerate(self.links)
            if (record := records.get(link.id)) is not None and record.host is not None
        ]
        if errors:
            raise Problem("invalid", f"{errors[0]['field']}: {errors[0]['detail']}", {"errors": errors[:20]})

    async def _create(self, connection: AsyncConnection, created: Sequence[Link], batch: Batch) -> None:
        if not created:
            return
        try:
            await bookings.insert_links(connection, created, batch.now_us)
        except bookings.LinkExists as exists:
            number = next(n for n, link in enumerate(self.links) if link.id == exists.link_id)
            raise Problem.of_field(f"links.{number}.id", str(exists), "exists") from None

    async def _adopt(self, connection: AsyncConnection, batch: Batch, created: Sequence[Link]) -> None:
        """Let new links be booked on in this very transaction; one that comes back has a ledger already."""
        records = batch.replica.records
        heads = {link.id: Head(records[link.id].version, records[link.id].revision) for link in created}
        await batch.replica.catch_up(connection, heads, batch.now_us)
        batch.heads.update({link_id: head.version for link_id, head in heads.items()})

    def _note(
        self,
        batch: Batch,
        present: Mapping[str, LinkRecord],
        created: Sequence[Link],
        changed: Sequence[Link],
        deleted: Sequence[str],
    ) -> None:
        def note(action: str, link_id: str, now: Link | None) -> None:
            before = document_of(present[link_id].link) if link_id in present else None
            after = None if now is None else document_of(now)
            batch.event(Event(batch.now_us, self.actor, action, "link", link_id, before, after))

        for link in created:
            note("link.created", link.id, link)
        for link in changed:
            note("link.changed", link.id, link)
        for link_id in deleted:
            note("link.deleted", link_id, None)


def _ends(link: Link) -> tuple[str, str]:
    return link.source, link.target


def _cut_off(records: Mapping[str, LinkRecord]) -> list[str]:
    """Hosts whose node no link of the network touches, while there is any network."""
    nodes = {node for record in records.values() if record.host is None for node in _ends(record.link)}
    return sorted({record.host for record in records.values() if record.host is not None and nodes.isdisjoint(_ends(record.link))})
