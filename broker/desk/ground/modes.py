# SPDX-License-Identifier: Apache-2.0
"""Who moves the data of a transfer (its mode), and whether the hosts can do what that asks of them."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Protocol

from broker.core.request import Options
from broker.core.transfer import Mode
from broker.desk.ground.capabilities import UNKNOWN
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica

# What the sender's own process does to its own writes cannot be done to somebody else's.
_OWN_SENDER_ONLY = "userland"
_CLASSED_BY = "htb"

_COUNTED = {
    Mode.MANAGED: "a managed transfer moves a file, which has a size; give volume_bytes, or mode reserve to hold capacity for a time",
    Mode.WRAPPED: "a wrapped command moves so many bytes; give volume_bytes, or mode reserve to hold capacity for a time",
    Mode.OBSERVED: "an observed transfer ends after so many bytes; give volume_bytes, or mode reserve to hold capacity for a time",
}
_ONE_PATH = {
    Mode.MANAGED: "the agents send over one TCP connection, which takes one path; leave it out, or use mode reserve",
    Mode.WRAPPED: "a connection takes one path, and nobody can say which of a command's takes which; leave it out, or use mode reserve",
    Mode.OBSERVED: "a flow takes one path; leave it out, or use mode reserve",
}


class Asked(Protocol):
    """The part of a request that decides on its mode."""

    @property
    def source(self) -> str: ...
    @property
    def destination(self) -> str: ...
    @property
    def duration_us(self) -> int | None: ...
    @property
    def mode(self) -> str | None: ...
    @property
    def payload(self) -> dict[str, Any] | None: ...
    @property
    def mechanism(self) -> str | None: ...
    @property
    def options(self) -> Options: ...
    @property
    def unfit(self) -> Problem | None: ...


def mode_of(ask: Asked, replica: Replica) -> Mode:
    """The mode asked for, else `managed` when two agents can move a named file, else `reserve`. Raises Problem naming the field."""
    for name, node in (("source", ask.source), ("destination", ask.destination)):
        if node in replica.drained:
            raise Problem.of_field(name, f"host {node!r} is drained: it finishes what it has and takes nothing new", "conflict")
    both_hosts = ask.source in replica.hosts and ask.destination in replica.hosts
    has_file = bool(ask.payload and ask.payload.get("path"))
    mode = Mode(ask.mode) if ask.mode is not None else Mode.MANAGED if both_hosts and has_file else Mode.RESERVE
    if mode is Mode.RESERVE:
        return mode
    _refuse_strangers(ask, mode, replica)
    if mode is Mode.MANAGED and not has_file:
        raise Problem.of_field("payload.path", "a managed transfer needs the file to send, relative to the sender's served folder")
    if mode is Mode.OBSERVED:
        _check_match(ask, replica)
    refuse_unmanageable(mode, ask.duration_us, ask.options)
    _check_capabilities(ask, mode, replica)
    if ask.unfit is not None:
        raise ask.unfit
    return mode


def refuse_unmanageable(mode: Mode, duration_us: int | None, options: Options) -> None:
    """What no agent can do. Raises Problem."""
    if mode is Mode.RESERVE:
        return
    if duration_us is not None:
        raise Problem.of_field("duration_s", _COUNTED[mode], "unsupported")
    if options.split:
        raise Problem.of_field("split", _ONE_PATH[mode], "unsupported")


def _refuse_strangers(ask: Asked, mode: Mode, replica: Replica) -> None:
    """An agent is needed where the data leaves; at the other end only where the agents move it themselves."""
    ends = [("source", ask.source)] + ([("destination", ask.destination)] if mode is Mode.MANAGED else [])
    for name, node in ends:
        if node not in replica.hosts:
            article = "an" if mode is Mode.OBSERVED else "a"
            raise Problem.of_field(name, f"{article} {mode} transfer needs an enrolled host, {node!r} is none")


def _check_match(ask: Asked, replica: Replica) -> None:
    match: Mapping[str, Any] | None = (ask.payload or {}).get("match")
    if not match:
        detail = "an observed transfer needs to know its packets: protocol, address, source_ports, destination_ports"
        raise Problem.of_field("payload.match", detail)
    address = match.get("address")
    if address is None and ask.destination not in replica.hosts:
        detail = f"{ask.destination!r} is no enrolled host whose address is known; give the IP address that the packets go to"
        raise Problem.of_field("payload.match.address", detail)
    if address is not None:
        try:
            ip_address(address)
        except ValueError:
            raise Problem.of_field("payload.match.address", f"{address!r} is no IP address") from None
    for name in ("source_ports", "destination_ports"):
        _check_ports(f"payload.match.{name}", match.get(name))


def _check_ports(name: str, ports: str | None) -> None:
    if ports is None:
        return
    first, _, last = ports.partition("-")
    if not 1 <= int(first) <= int(last or first) <= 65_535:
        raise Problem.of_field(name, f"{ports!r}: want a port from 1 to 65535, or FIRST-LAST in that order")


def _check_capabilities(ask: Asked, mode: Mode, replica: Replica) -> None:
    """The host that sends holds the rate: its agent has said what it can."""
    can = replica.capabilities.get(ask.source, UNKNOWN)
    if not can.carries_out(mode):
        detail = f"the agent on {ask.source!r} carries out {', '.join(sorted(can.modes or ()))} only; a newer bwb-agent may do more"
        raise Problem.of_field("mode", detail, "unsupported")
    if mode is not Mode.MANAGED and ask.mechanism == _OWN_SENDER_ONLY:
        detail = f"{_OWN_SENDER_ONLY} slows the agent's own writes, and in a {mode} transfer the agent writes nothing"
        raise Problem.of_field("mechanism", detail, "unsupported")
    if mode is Mode.OBSERVED and ask.mechanism not in (None, _CLASSED_BY):
        detail = f"observed packets are classed by {_CLASSED_BY}; {ask.mechanism} works on connections that the agent holds"
        raise Problem.of_field("mechanism", detail, "unsupported")
    wanted = _CLASSED_BY if mode is Mode.OBSERVED else ask.mechanism
    reason = can.why_not(wanted) if wanted is not None else None
    if reason is not None:
        others = [name for name in can.available() if mode is Mode.MANAGED or name != _OWN_SENDER_ONLY]
        instead = f"; available there: {', '.join(others)}" if others and mode is not Mode.OBSERVED else ""
        problem = Problem.of_field("mechanism", f"host {ask.source!r} cannot use {wanted}: {reason}{instead}", "unsupported")
        problem.more |= {"host": ask.source, "reason": reason, "available": others}
        raise problem
