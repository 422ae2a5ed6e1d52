# SPDX-License-Identifier: Apache-2.0
"""Enrolment: an operator creates a one-time token for a host at a node, and the agent trades it for a token of its own.

The host's NIC becomes two links, host -> node and back, so that every limit is one kind of thing.
"""

import os
from dataclasses import dataclass
from typing import Any

from broker.core.capabilities import Capabilities
from broker.core.identifiers import identifier
from broker.core.network import Link
from broker.core.units import US_PER_S
from broker.desk.ground.problems import Problem
from broker.fleet.tokens import ENROLMENT_PREFIX, TOKEN_PREFIX, Scope, digest, new_secret
from broker.store import access, bookings, events, hosts
from broker.store.access import EnrolmentToken, Token
from broker.store.events import Event
from broker.store.hosts import Host
from broker.store.session import Database

MAX_TTL_S = 30 * 86_400


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A host that has joined, and its agent's token, which is shown this once."""

    host: Host
    agent_token: str


async def create_token(
    database: Database, now_us: int, *, host: str, node: str, nic_bps: int, ttl_s: int, actor: str
) -> tuple[EnrolmentToken, str]:
    """(row, secret to show once). Raises Problem when the name is a node's already."""
    secret = new_secret(ENROLMENT_PREFIX)
    token = EnrolmentToken(identifier("enr", now_us, os.urandom(10)), host, node, nic_bps, now_us, now_us + ttl_s * US_PER_S)
    async with database.transaction() as connection:
        # A join or a removal at this moment comes before or after this lock: it revokes this token, or need not.
        await bookings.lock_topology(connection)
        records = await bookings.load_links(connection)
        nodes = {end for record in records.values() if record.host is None for end in (record.link.source, record.link.target)}
        if host in nodes:
            raise Problem.of_field("host", f"{host!r} is a node of the network; give the host a name of its own")
        if node not in nodes:
            raise Problem.of_field("node", f"no link of the network touches {node!r}; create its links first", "unknown-node")
        await access.insert_enrolment(connection, token, digest(secret))
        shown = {"id": token.id, "host": host, "node": node, "nic_bps": nic_bps, "expires_us": token.expires_us}
        await events.append(connection, [Event(now_us, actor, "enrolment_token.created", "host", host, None, shown)])
    return token, secret


async def revoke_token(database: Database, now_us: int, token_id: str, actor: str) -> None:
    """Revoke an enrolment token that could still be used. Raises Problem where there is none."""
    async with database.transaction() as connection:
        revoked = await access.revoke_enrolments(connection, now_us, token_id=token_id)
        if not revoked:
            raise Problem("not-found", f"there is no enrolment token {token_id[:64]!r} that could still be used")
        await events.append(connection, [_revocation(revoked[0], now_us, actor)])


def _revocation(token: EnrolmentToken, now_us: int, actor: str) -> Event:
    return Event(now_us, actor, "enrolment_token.revoked", "host", token.host, None, {"id": token.id})


async def check(database: Database, now_us: int, secret: str) -> None:
    """Raises Problem `unauthorized` for a token that cannot be spent: before anything is locked, for anyone may send one."""
    async with database.transaction() as connection:
        if not await access.is_open(connection, digest(secret), now_us):
            raise _not_open()


async def enrol(
    database: Database,
    now_us: int,
    *,
    secret: str,
    data_address: str,
    tls_fingerprint: str | None,
    agent_version: str | None,
    capabilities: Capabilities,
) -> Enrolled:
    """Spend an enrolment token. A host that enrols again gets a new agent token and loses the old one. Raises Problem `unauthorized`."""
    agent_secret = new_secret(TOKEN_PREFIX)
    async with database.transaction() as connection:
        # Of two tokens for one host at once, one comes after the other; and locks are taken in the desk's order.
        await bookings.lock_topology(connection)
        spent = await access.use_enrolment(connection, digest(secret), now_us)
        if spent is None:
            raise _not_open()
        before = await hosts.get(connection, spent.host)
        host = Host(
            name=spent.host,
            node=spent.node,
            nic_bps=spent.nic_bps,
            data_address=data_address,
            tls_fingerprint=tls_fingerprint,
            agent_version=agent_version,
            capabilities=capabilities,
            clock=None,
            drained=before is not None and before.drained,  # that is the operator's to say
            revision=before.revision + 1 if before else 1,
            enrolled_us=now_us,
            last_seen_us=now_us,
        )
        await hosts.put(connection, host)
        await _ensure_nic(connection, host, now_us)
        await access.revoke(connection, now_us, host=host.name)
        # What was made earlier for this host must not take its place: a token that lies about, or the other of two.
        older = await access.revoke_enrolments(connection, now_us, host=host.name)
        await events.append(connection, [_revocation(token, now_us, f"agent {host.name}") for token in older])
        agent_token = Token(
            identifier("tok", now_us, os.urandom(10)), f"agent {host.name}", (str(Scope.AGENT),), host.name, now_us, None, None
        )
        await access.insert_token(connection, agent_token, digest(agent_secret))
        shown = {"node": host.node, "nic_bps": host.nic_bps, "data_address": data_address, "agent_version": agent_version}
        await events.append(connection, [Event(now_us, f"agent {host.name}", "host.enrolled", "host", host.name, None, shown)])
    return Enrolled(host, agent_secret)


def _not_open() -> Problem:
    return Problem("unauthorized", "this enrolment token is unknown, used, revoked or has expired; ask the operator for a new one")


def nic_links(host: str, node: str, nic_bps: int) -> tuple[Link, Link]:
    """The two links that stand for a host's NIC: host to node, node to host."""
    return Link(f"{host}~up", host, node, nic_bps), Link(f"{host}~down", node, host, nic_bps)


async def _ensure_nic(connection: Any, host: Host, now_us: int) -> None:
    """The NIC's links, unless they are there. Another node or rate needs the operator: bookings may hang on them."""
    wanted = nic_links(host.name, host.node, host.nic_bps)
    there = await bookings.load_links(connection, [link.id for link in wanted])
    if not there:
        await bookings.insert_links(connection, wanted, now_us, host.name)
        return
    for link in wanted:
        present = there.get(link.id)
        if present is None or present.host != host.name:
            raise Problem.of_field(
                "host", f"the network has a link {next(iter(there))!r} that is no NIC of {host.name}", "conflict"
            )
        if {present.link.source, present.link.target} != {link.source, link.target}:
            node = next(iter({present.link.source, present.link.target} - {host.name}))
            raise Problem.of_field("node", f"host {host.name} is at {node} already; remove the host before it moves", "conflict")
