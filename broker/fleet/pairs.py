# SPDX-License-Identifier: Apache-2.0
"""Predecessors and successors: what their two senders are told of each other.

Only the successor's sender waits, and only the predecessor's sender signals; receivers hear of neither.
"""

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.calendar import Calendar
from broker.core.transfer import State
from broker.core.units import format_time
from broker.desk.ground import start_signals
from broker.fleet.early import early_from
from broker.store import bookings, transfers
from broker.store.bookings import LinkRecord
from broker.store.hosts import Host
from broker.store.transfers import Transfer

Json = dict[str, Any]


def pair_key(secret: bytes, predecessor_id: str, successor_id: str) -> str:
    """The key that the two senders of one pair share, in hex. Derived, so that it is stored nowhere."""
    said = b"start signal\0" + predecessor_id.encode() + b"\0" + successor_id.encode()
    return hmac.new(secret, said, hashlib.sha256).hexdigest()


@dataclass(slots=True)
class Pairs:
    """For the transfers that a host sends: their predecessors, their successors, and their earliest starts."""

    predecessors: Mapping[str, Transfer] = field(default_factory=dict)  # by successor
    successors: Mapping[str, Sequence[Transfer]] = field(default_factory=dict)  # by predecessor
    early: Mapping[str, int] = field(default_factory=dict)  # by successor

    def hosts(self) -> set[str]:
        """The senders at the other ends."""
        behind = (transfer for each in self.successors.values() for transfer in each)
        return {transfer.spec.source for transfer in (*self.predecessors.values(), *behind)}

    def start_after(self, transfer: Transfer, peers: Mapping[str, Host], secret: bytes) -> Json | None:
        """What its sender waits for (api.schemas.StartAfter)."""
        predecessor = self.predecessors.get(transfer.id)
        if predecessor is None:
            return None
        early, signal = self.early.get(transfer.id), start_signals.signal_of(transfer)
        return {
            "predecessor": _peer(predecessor, pair_key(secret, predecessor.id, transfer.id), peers),
            "kind": signal.kind,
            "early_from": None if early is None else format_time(early),
            "timeout_us": start_signals.timeout_us(transfer),
            "on_timeout": signal.on_timeout,
            "released": transfer.released_us is not None,
        }

    def end_signals(self, transfer: Transfer, peers: Mapping[str, Host], secret: bytes) -> list[Json]:
        """Whom its sender tells that it is done (api.schemas.EndSignal)."""
        return [
            {
                "successor": _peer(successor, pair_key(secret, transfer.id, successor.id), peers),
                "kind": start_signals.signal_of(successor).kind,
                "timeout_us": start_signals.timeout_us(successor),
                "on_overrun": start_signals.signal_of(successor).on_overrun,
            }
            for successor in self.successors.get(transfer.id, ())
        ]


def _peer(transfer: Transfer, key: str, peers: Mapping[str, Host]) -> Json:
    host = peers.get(transfer.spec.source)
    address = host.data_address if host else ""
    return {"transfer_id": transfer.id, "host": transfer.spec.source, "data_address": address, "key": key}


async def pairs_of(
    connection: AsyncConnection, host: str, assigned: Iterable[Transfer], links: Mapping[str, LinkRecord], now_us: int
) -> Pairs:
    """The pairs of those of `assigned` that `host` sends."""
    sent = [transfer for transfer in assigned if transfer.spec.source == host]
    if not sent:
        return Pairs()
    named = await transfers.get_many(connection, {t.spec.after for t in sent if t.spec.after is not None})
    predecessors = {t.id: named[t.spec.after] for t in sent if t.spec.after is not None and t.spec.after in named}
    successors: dict[str, list[Transfer]] = defaultdict(list)
    for successor in await transfers.find_successors(connection, [t.id for t in sent]):
        if successor.spec.after is not None and successor.state is not State.HELD and not successor.paused:
            successors[successor.spec.after].append(successor)
    waiting = [t for t in sent if t.id in predecessors and start_signals.waits(t) and not start_signals.begins_by_clock(t)]
    calendars = await _calendars(connection, waiting, links, now_us)
    early = {t.id: at for t in waiting if (at := early_from(t, predecessors[t.id], calendars, now_us)) is not None}
    return Pairs(predecessors, successors, early)


async def _calendars(
    connection: AsyncConnection, waiting: Sequence[Transfer], links: Mapping[str, LinkRecord], now_us: int
) -> dict[str, Calendar]:
    """The free capacity of the links of `waiting` transfers, up to their last finish."""
    until = max((transfer.finish_us or 0 for transfer in waiting), default=0)
    calendars = {}
    for link_id in sorted({link_id for transfer in waiting for link_id in transfer.links()} & links.keys()):
        calendars[link_id] = Calendar(links[link_id].link.capacity())
        rows = await bookings.read_booked(connection, link_id, now_us, until)
        calendars[link_id].book_all(rows.begins, rows.ends, rows.deltas)
    return calendars
