# SPDX-License-Identifier: Apache-2.0
"""The packets that an observed transfer may consist of: only those that the configuration of its source host allows.

The agent there checks again (agents/internal/observe/rules.go); the broker refuses at once what it would refuse, with the field named. Packets to
the other host of the transfer need `submit`; other addresses, if the host allows them, need `operate`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.capabilities import PEER, ObserveRule, Ports
from broker.core.transfer import Mode
from broker.desk.admission.ask import Ask
from broker.desk.ground.problems import Problem
from broker.store import hosts
from broker.store.hosts import Host

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Flow:
    """What is asked for. `address`: None is the other host, by whatever address it has."""

    address: Address | None
    source: Ports
    destination: Ports


def judge_one(ask: Ask, known: Mapping[str, Host], operator: bool) -> Problem | None:
    """Why the packets of an observed transfer may not be touched; None when they may, or when the request is refused for another reason."""
    spec = ask.spec
    match = None if spec.payload is None else spec.payload.match
    if ask.mode is not Mode.OBSERVED or spec.source not in known or match is None:
        return None
    peer = known.get(spec.destination)
    try:
        asked = None if match.address is None else _plain(match.address)
        flow = Flow(asked, Ports.of(match.source_ports), Ports.of(match.destination_ports))
    except ValueError:
        return None  # desk.modes names the field
    if flow.address is None and peer is None:
        return None
    to_peer = peer is not None and flow.address in (None, _address_of(peer))
    return _check_rules(flow, to_peer, peer, known[spec.source]) or _check_scope(to_peer, operator)


async def judge(connection: AsyncConnection, asks: Sequence[Ask], operator: bool) -> list[Ask]:
    """The asks; those whose packets the host or the token does not allow carry the refusal."""
    names = {end for ask in asks if ask.mode == Mode.OBSERVED for end in (ask.spec.source, ask.spec.destination)}
    if not names:
        return list(asks)
    known = await hosts.get_many(connection, names)
    return [replace(ask, unfit=ask.unfit or judge_one(ask, known, operator)) for ask in asks]


def _check_rules(flow: Flow, to_peer: bool, peer: Host | None, host: Host) -> Problem | None:
    data_port = None if peer is None else _data_port(peer)
    if to_peer and data_port is not None and Ports(data_port, data_port) in flow.destination:
        detail = f"must not take in {data_port}, by which the agent there receives what others have booked"
        return _refuse("destination_ports", detail, host)
    allowed = [rule for rule in host.capabilities.observe if _is_to(rule, flow.address, to_peer)]
    if not allowed:
        return _refuse("address", f"host {host.name!r} lets no packets to {flow.address or 'the other host'} be observed", host)
    fitting = [rule for rule in allowed if flow.destination in Ports.of(rule.destination_ports)]
    if not fitting:
        ports = ", ".join(rule.destination_ports for rule in allowed if rule.destination_ports)
        return _refuse(
            "destination_ports", f"host {host.name!r} lets packets there be observed by destination ports {ports} only", host
        )
    if not any(flow.source in Ports.of(rule.source_ports) for rule in fitting):
        ports = ", ".join(rule.source_ports for rule in fitting if rule.source_ports)
        return _refuse("source_ports", f"host {host.name!r} lets such packets be observed by source ports {ports} only", host)
    return None


def _check_scope(to_peer: bool, operator: bool) -> Problem | None:
    if to_peer or operator:
        return None
    detail = "packets to another address than that of the transfer's other host need the scope operate"
    problem = Problem.of_field("payload.match.address", detail, "forbidden")
    problem.more |= {"scope": "operate"}
    return problem


def _refuse(name: str, detail: str, host: Host) -> Problem:
    problem = Problem.of_field(f"payload.match.{name}", f"{detail} (bwb-agent run --observe)", "unsupported")
    problem.more |= {"host": host.name, "allowed": [rule.document() for rule in host.capabilities.observe]}
    return problem


def _is_to(rule: ObserveRule, address: Address | None, to_peer: bool) -> bool:
    if rule.address == PEER:
        return to_peer
    return address is not None and address in ip_network(rule.address, strict=False)


def _plain(text: str) -> Address:
    address = ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


def _address_of(host: Host) -> Address | None:
    """None where it advertises a name: then only who leaves the address out means it for certain."""
    try:
        return _plain(host.data_address.rpartition(":")[0].strip("[]"))
    except ValueError:
        return None


def _data_port(host: Host) -> int | None:
    port = host.data_address.rpartition(":")[2]
    return int(port) if port.isdecimal() else None
