# SPDX-License-Identifier: Apache-2.0
"""The mode of a transfer (which process moves its data), and whether its hosts support it."""

from ipaddress import ip_address

from broker.core.capabilities import UNKNOWN
from broker.core.request import Options
from broker.core.transfer import Mode
from broker.core.transfer_spec import TransferSpec
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica

# A mechanism of the sender's own writes does not work for another process.
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


def mode_of(spec: TransferSpec, asked: Mode | None, unfit: Problem | None, replica: Replica) -> Mode:
    """The mode asked for, else `managed` when two agents can move a named file, else `reserve`. Raises Problem naming the field.

    `unfit`: why its hosts cannot do it, if that is known already.
    """
    for name, node in (("source", spec.source), ("destination", spec.destination)):
        if node in replica.drained:
            raise Problem.of_field(name, f"host {node!r} is drained: it finishes what it has and takes nothing new", "conflict")
    both_hosts = spec.source in replica.hosts and spec.destination in replica.hosts
    has_file = spec.payload is not None and spec.payload.path is not None
    mode = asked if asked is not None else Mode.MANAGED if both_hosts and has_file else Mode.RESERVE
    if mode is Mode.RESERVE:
        return mode
    _refuse_strangers(spec, mode, replica)
    if mode is Mode.MANAGED and not has_file:
        raise Problem.of_field("payload.path", "a managed transfer needs the file to send, relative to the sender's served folder")
    if mode is Mode.OBSERVED:
        _check_match(spec, replica)
    refuse_unmanageable(mode, spec.duration_us, spec.options)
    _check_capabilities(spec, mode, replica)
    if unfit is not None:
        raise unfit
    return mode


def refuse_unmanageable(mode: Mode, duration_us: int | None, options: Options) -> None:
    """What no agent can do. Raises Problem."""
    if mode is Mode.RESERVE:
        return
    if duration_us is not None:
        raise Problem.of_field("duration_s", _COUNTED[mode], "unsupported")
    if options.split:
        raise Problem.of_field("split", _ONE_PATH[mode], "unsupported")


def _refuse_strangers(spec: TransferSpec, mode: Mode, replica: Replica) -> None:
    """An agent is needed where the data leaves; at the other end only where the agents move it themselves."""
    ends = [("source", spec.source)] + ([("destination", spec.destination)] if mode is Mode.MANAGED else [])
    for name, node in ends:
        if node not in replica.hosts:
            article = "an" if mode is Mode.OBSERVED else "a"
            raise Problem.of_field(name, f"{article} {mode} transfer needs an enrolled host, {node!r} is none")


def _check_match(spec: TransferSpec, replica: Replica) -> None:
    match = None if spec.payload is None else spec.payload.match
    if match is None:
        detail = "an observed transfer needs to know its packets: protocol, address, source_ports, destination_ports"
        raise Problem.of_field("payload.match", detail)
    address = match.address
    if address is None and spec.destination not in replica.hosts:
        detail = f"{spec.destination!r} is no enrolled host whose address is known; give the IP address that the packets go to"
        raise Problem.of_field("payload.match.address", detail)
    if address is not None:
        try:
            ip_address(address)
        except ValueError:
            raise Problem.of_field("payload.match.address", f"{address!r} is no IP address") from None
    _check_ports("payload.match.source_ports", match.source_ports)
    _check_ports("payload.match.destination_ports", match.destination_ports)


def _check_ports(name: str, ports: str | None) -> None:
    if ports is None:
        return
    first, _, last = ports.partition("-")
    if not 1 <= int(first) <= int(last or first) <= 65_535:
        raise Problem.of_field(name, f"{ports!r}: want a port from 1 to 65535, or FIRST-LAST in that order")


def _check_capabilities(spec: TransferSpec, mode: Mode, replica: Replica) -> None:
    """The host that sends holds the rate: its agent has said what it can."""
    can = replica.capabilities.get(spec.source, UNKNOWN)
    if not can.carries_out(mode):
        detail = (
            f"the agent on {spec.source!r} carries out {', '.join(sorted(can.modes or ()))} only; a newer bwb-agent may do more"
        )
        raise Problem.of_field("mode", detail, "unsupported")
    if mode is not Mode.MANAGED and spec.mechanism == _OWN_SENDER_ONLY:
        detail = f"{_OWN_SENDER_ONLY} slows the agent's own writes, and in a {mode} transfer the agent writes nothing"
        raise Problem.of_field("mechanism", detail, "unsupported")
    if mode is Mode.OBSERVED and spec.mechanism not in (None, _CLASSED_BY):
        detail = f"observed packets are classed by {_CLASSED_BY}; {spec.mechanism} works on connections that the agent holds"
        raise Problem.of_field("mechanism", detail, "unsupported")
    wanted = _CLASSED_BY if mode is Mode.OBSERVED else spec.mechanism
    reason = can.why_not(wanted) if wanted is not None else None
    if reason is not None:
        others = [name for name in can.available() if mode is Mode.MANAGED or name != _OWN_SENDER_ONLY]
        instead = f"; available there: {', '.join(others)}" if others and mode is not Mode.OBSERVED else ""
        problem = Problem.of_field("mechanism", f"host {spec.source!r} cannot use {wanted}: {reason}{instead}", "unsupported")
        problem.more |= {"host": spec.source, "reason": reason, "available": others}
        raise problem
