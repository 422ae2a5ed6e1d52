# SPDX-License-Identifier: Apache-2.0
"""This process's copy of the network and of every link's gamma(t), brought up to date from the ledger under the links' locks.

A copy is only ever ahead of what is committed inside one transaction; `Journal` takes a failed one back. If it is unknown whether a commit
went through (the connection broke), taking back is still right: the next catch-up reads the rows by version if they are there.
"""

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.allowance import Use
from broker.core.calendar import Calendar
from broker.core.capabilities import Capabilities
from broker.core.network import Network
from broker.store import bookings, hosts
from broker.store.bookings import Head, LinkRecord

# Calendars are pruned when this much of the past has piled up; planning never looks behind the present.
_PRUNE_AFTER_US = 10 * 60 * 1_000_000


class Booking(NamedTuple):
    """A rate on a link during [begin, end), in microseconds."""

    link_id: str
    begin_us: int
    end_us: int
    rate_bps: int


class Replica:
    """This process's copy of the network and its calendars, as of the versions it has read."""

    def __init__(self) -> None:
        self.topology_version = -1
        self.records: dict[str, LinkRecord] = {}
        self.network = Network(())
        self.calendars: dict[str, Calendar] = {}
        self.versions: dict[str, int] = {}
        self.hosts: frozenset[str] = frozenset()
        self.drained: frozenset[str] = frozenset()  # of these: the ones that take nothing new
        self.capabilities: Mapping[str, Capabilities] = {}  # of each host's agent, as it said last
        self.uses: dict[str, Use] = {}  # what tokens had booked when a transaction of ours saw it last
        self.watched: set[str] = set()  # of these: those to be read before they are refused
        self.looked_us = 0  # when the desk began to choose what to lock
        self._pruned_us = 0

    def copy(self) -> "Replica":
        """Others that say the same, to try out on what shall leave no trace. Cheap: some microseconds a link, and a copy of each calendar."""
        same = Replica()
        same.__dict__.update(self.__dict__)
        same.calendars = {link_id: calendar.copy() for link_id, calendar in self.calendars.items()}
        same.versions = dict(self.versions)
        return same

    async def load_topology(self, connection: AsyncConnection) -> None:
        """Read all links anew; calendars of links that are still there keep their bookings under the new capacity."""
        version = await bookings.topology_version(connection)
        self.drained = await hosts.find_drained(connection)
        self.capabilities = await hosts.get_capabilities(connection)
        self.adopt(version, await bookings.load_links(connection))

    def adopt(self, topology_version: int, records: Mapping[str, LinkRecord]) -> None:
        """Take over another topology; calendars of links that stay are kept."""
        self.records = dict(records)
        self.network = Network((record.link for record in records.values()), previous=self.network)
        self.hosts = frozenset(record.host for record in records.values() if record.host is not None)
        for link_id in [gone for gone in self.calendars if gone not in records]:
            del self.calendars[link_id], self.versions[link_id]
        for link_id, record in records.items():
            capacity = record.link.capacity()
            if link_id not in self.calendars:
                self.calendars[link_id] = Calendar(capacity)
                self.versions[link_id] = -1
            elif tuple(capacity) != self.calendars[link_id].capacity:
                self.calendars[link_id].set_capacity(capacity)
        self.topology_version = topology_version

    async def catch_up(self, connection: AsyncConnection, heads: Mapping[str, Head], now_us: int) -> None:
        """Apply the ledger rows newer than what we have, for locked links. Cheap when there are none."""
        behind = {
            link_id: (self.versions[link_id], head.version)
            for link_id, head in heads.items()
            if self.versions[link_id] < head.version
        }
        if behind:
            for link_id, rows in (await bookings.read_since(connection, behind, now_us)).items():
                self.calendars[link_id].book_all(rows.begins, rows.ends, rows.deltas)
            for link_id in behind:
                self.versions[link_id] = heads[link_id].version
        if now_us - self._pruned_us > _PRUNE_AFTER_US:
            self._pruned_us = now_us
            for calendar in self.calendars.values():
                calendar.forget_before(now_us)

    def is_current(self, heads: Mapping[str, Head]) -> bool:
        """Were the locked links planned on as they are now?"""
        return all(link_id in self.records and self.records[link_id].revision == head.revision for link_id, head in heads.items())


def find_freed_links(entries: Iterable[Booking]) -> set[str]:
    """Links of which `entries` together leave more free than before, at some instant. What only moved its rate elsewhere counts as well."""
    changes: dict[str, dict[int, int]] = {}
    for link_id, begin_us, end_us, rate_bps in entries:
        of_link = changes.setdefault(link_id, {})
        of_link[begin_us] = of_link.get(begin_us, 0) + rate_bps
        of_link[end_us] = of_link.get(end_us, 0) - rate_bps
    return {link_id for link_id, of_link in changes.items() if min(accumulate(of_link[at] for at in sorted(of_link))) < 0}


class Journal:
    """Bookings made in memory inside the present transaction, so that they can be taken back."""

    def __init__(self, calendars: Mapping[str, Calendar]) -> None:
        self._calendars = calendars
        self.done: list[Booking] = []

    def book(self, entries: Iterable[Booking]) -> None:
        """Positive rates take capacity, negative ones give it back."""
        for entry in entries:
            self._calendars[entry.link_id].book(entry.begin_us, entry.end_us, entry.rate_bps)
            self.done.append(entry)

    def undo(self, keep: int = 0) -> None:
        """Take back everything after the first `keep` entries, the newest first."""
        while len(self.done) > keep:
            entry = self.done.pop()
            self._calendars[entry.link_id].release(entry.begin_us, entry.end_us, entry.rate_bps)
