# SPDX-License-Identifier: Apache-2.0
"""The desired state of an agent: every live transfer that it takes part in, as a whole, under one revision."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.segments import total_rates
from broker.core.transfer import State
from broker.core.transfer_spec import FlowMatch, Payload
from broker.core.units import format_time
from broker.desk.ground.problems import Problem
from broker.fleet.pairs import Pairs, pairs_of
from broker.store import hosts, transfers
from broker.store.bookings import LinkRecord
from broker.store.hosts import Host
from broker.store.session import Database
from broker.store.transfers import Transfer


def channel_key(secret: bytes, transfer_id: str) -> str:
    """The key that the two agents of one transfer share, in hex. Derived, so that it is stored nowhere."""
    return hmac.new(secret, b"data channel\0" + transfer_id.encode(), hashlib.sha256).hexdigest()


class Read(NamedTuple):
    """The document of `GET /v1/agents/{host}/assignments`; and the transfers in it that were never handed to this host before."""

    document: dict[str, Any]
    untold: set[str]


async def hand_out(database: Database, host_name: str, read: Read) -> dict[str, Any]:
    """The document as it may be answered: it is on disk by then that the host has been handed each of them.

    What was withdrawn since it was read, because nobody had fetched it, is left out.
    """
    if not read.untold:
        return read.document
    async with database.transaction() as connection:
        told = await transfers.mark_told(connection, host_name, read.untold)
    gone = read.untold - told
    listed = [item for item in read.document["assignments"] if item["transfer_id"] not in gone]
    return {**read.document, "assignments": listed}


async def load_assignments(
    connection: AsyncConnection,
    host_name: str,
    secret: bytes,
    fallback_rate_bps: int,
    links: Mapping[str, LinkRecord],
    now_us: int,
) -> Read:
    """What its agent shall do; to be answered by way of `hand_out`. Raises Problem for a host that is not enrolled (any more)."""
    # The revision is read first: what changes while we read shows again under the next one.
    host = await hosts.get(connection, host_name)
    if host is None:
        raise Problem("not-found", f"host {host_name!r} is not enrolled")
    wanted = await transfers.find_assigned(connection, host_name)
    pairs = await pairs_of(connection, host_name, wanted, links, now_us)
    others = {t.spec.destination if t.spec.source == host_name else t.spec.source for t in wanted} | pairs.hosts()
    peers = await hosts.get_many(connection, others) if others else {}
    document = {
        "host": host_name,
        "revision": host.revision,
        "server_time": "",  # the route says it when it answers
        "fallback_rate_bps": fallback_rate_bps,
        "assignments": [_describe_assignment(transfer, host_name, peers, pairs, secret) for transfer in wanted],
    }
    return Read(document, {transfer.id for transfer in wanted if not _is_told(transfer, host_name)})


def _is_told(transfer: Transfer, host_name: str) -> bool:
    return transfer.source_told if transfer.spec.source == host_name else transfer.destination_told


def _describe_assignment(transfer: Transfer, host_name: str, peers: dict[str, Host], pairs: Pairs, secret: bytes) -> dict[str, Any]:
    sending = transfer.spec.source == host_name
    peer_name = transfer.spec.destination if sending else transfer.spec.source
    peer = peers.get(peer_name)
    payload = transfer.spec.payload or Payload()
    return {
        "transfer_id": transfer.id,
        "role": "send" if sending else "receive",
        "mode": transfer.mode,
        # A transfer whose end was only assumed goes on.
        "state": str(State.ACTIVE if transfer.assumed else transfer.state),
        "plan_revision": transfer.plan_revision,
        "volume_bytes": transfer.spec.volume_bytes,
        "source_path": payload.path if sending else None,
        "destination_path": None if sending else payload.destination_path or payload.path,
        "overwrite": payload.overwrite,
        "unverified": not payload.verify,
        "segments": [
            {"begin": format_time(begin), "end": format_time(end), "rate_bps": rate}
            for begin, end, rate in total_rates(transfer.segments)
        ],
        "deadline": None if transfer.spec.deadline_us is None else format_time(transfer.spec.deadline_us),
        "paused": transfer.paused,
        "mechanism": transfer.spec.mechanism,
        "match": _match(payload.match, peer) if sending else None,
        "start_after": pairs.start_after(transfer, peers, secret) if sending else None,
        "end_signals": pairs.end_signals(transfer, peers, secret) if sending else [],
        "peer": {
            "host": peer_name,
            "data_address": peer.data_address if peer else "",
            "tls_fingerprint": peer.tls_fingerprint if peer else None,
        },
        "key": channel_key(secret, transfer.id),
    }


def _match(asked: FlowMatch | None, peer: Host | None) -> dict[str, Any] | None:
    """The packets of an observed transfer; they go to the other agent's address unless another was given."""
    if asked is None:
        return None
    return {
        "protocol": asked.protocol,
        "address": asked.address or (peer.data_address.rpartition(":")[0].strip("[]") if peer else ""),
        "source_ports": asked.source_ports,
        "destination_ports": asked.destination_ports,
    }
