# SPDX-License-Identifier: Apache-2.0
"""`bwb host`: the transfer hosts and their agents."""

import shlex
from typing import Annotated

import typer
from rich.text import Text

from broker.cli import context
from broker.cli.context import AsJson, StateDir
from broker.cli.quantities import DURATION, RATE, show_duration, show_rate, show_time
from broker.client.documents import Host
from broker.core.units import US_PER_S

host = context.command_group("Transfer hosts and their agents.")


@host.command("list")
def list_hosts(state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """All enrolled hosts, and whether their agents have been heard of recently."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.hosts()
    if as_json:
        context.show_json(found)
        return
    rows = context.table("Host", "Node", "NIC", "Agent", "Clock", "Last seen", right=("NIC", "Clock"))
    for item in found:
        rows.add_row(
            item["name"], item["node"], show_rate(item["nic_bps"]), _agent(item), _clock(item) or "-", show_time(item["last_seen"])
        )
    context.show_table(rows)


@host.command()
def show(name: str, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """One host in full."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.host(name)
    if as_json:
        context.show_json(found)
        return
    capabilities = ", ".join(f"{key} {value}" for key, value in (found["capabilities"] or {}).items())
    context.show_fields(
        {
            "host": found["name"],
            "node": found["node"],
            "nic": show_rate(found["nic_bps"]),
            "agent": _agent(found),
            "version": found["agent_version"],
            "data address": found["data_address"] + (" (TLS)" if found["tls"] else ""),
            "clock": _clock(found),
            "clock trouble": found["clock"] and found["clock"]["reason"],
            "broker's clock stepped": _steps(found),
            "capabilities": capabilities or None,
            "enrolled": found["enrolled"],
            "last seen": found["last_seen"],
        }
    )


@host.command()
def enrol(
    name: Annotated[str, typer.Argument(help="The host's name, as transfers will name it.")],
    node: Annotated[str, typer.Option(help="The node of the network that it is attached to.")],
    nic: Annotated[int, typer.Option(parser=RATE, metavar="RATE", help="What its NIC carries: 25G, 100G (bit/s).")],
    ttl: Annotated[
        int, typer.Option(parser=DURATION, metavar="TIME", show_default="1h", help="How long the one-time token is good for: 2d.")
    ] = 3600 * US_PER_S,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Print the command with which the host's administrator installs the agent and enrols the host.

    It carries a one-time token in its environment, where other users of the host cannot see it. A host that enrols again gets a new
    identity; the old one becomes invalid.

    \b
    Example
      bwb host enrol dtn-a --node A --nic 100G --ttl 2d
    """
    with context.broker(state_dir, as_json) as broker:
        made = broker.enrolment_token(name, node, nic, -(-ttl // US_PER_S))
        url = broker.url
    # `sudo NAME=VALUE` would show the token in process lists, and write it to sudo's log.
    carrying = f"BWB_ENROLMENT_TOKEN={made['token']} sudo --preserve-env=BWB_ENROLMENT_TOKEN"
    options = f"--advertise {shlex.quote(name)}:7411 --tls"
    install = f"curl -fsS {shlex.quote(f'{url}/v1/agents/install.sh')} | {carrying} sh -s -- {options}"
    command = f"{carrying} -u bwb bwb-agent enrol --broker {shlex.quote(url)} --state-dir /var/lib/bwb {options}"
    if as_json:
        context.show_json({**made, "install": install, "command": command})
        return
    context.remark(f"on {name}, before {made['expires']} (good for one use):")
    typer.echo(f" {install}")  # the leading space keeps the line out of the history of shells configured that way
    context.remark("or, where the package bwb-agent is installed:")
    typer.echo(f" {command}")
    if "//127." in url or "//localhost" in url or "//[::1]" in url:
        context.remark("this broker listens on this machine only: for other hosts, run it with --host", "yellow")


@host.command()
def tokens(
    every: Annotated[bool, typer.Option("--all", help="Also those that were used or revoked, or have expired.")] = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """The one-time tokens that are not used yet: with one, anybody can enrol as its host. Their secrets are not shown again.

    \b
    Examples
      bwb host tokens
      bwb host revoke enr_01jd...
    """
    with context.broker(state_dir, as_json) as broker:
        found = [item for item in broker.enrolment_tokens() if every or item["state"] == "open"]
    if as_json:
        context.show_json(found)
        return
    rows = context.table("Id", "Host", "Node", "NIC", "State", "Made", "Good until", right=("NIC",))
    for item in found:
        made, until = show_time(item["created"]), show_time(item["expires"])
        rows.add_row(item["id"], item["host"], item["node"], show_rate(item["nic_bps"]), item["state"], made, until)
    context.show_table(rows)


@host.command()
def revoke(
    token_id: Annotated[str, typer.Argument(help="As `bwb host tokens` shows it.")],
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a one-time token that has not been used yet. For a host that has already enrolled, use `bwb host remove`."""
    with context.broker(state_dir, as_json) as broker:
        broker.revoke_enrolment_token(token_id)
    if as_json:
        context.show_json({"id": token_id, "revoked": True})
    else:
        context.say(f"{token_id} is revoked")


@host.command()
def drain(
    name: str,
    undo: Annotated[bool, typer.Option("--undo", help="Take new transfers again.")] = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Let a host finish its transfers, and give it no new ones. --undo reverses this."""
    with context.broker(state_dir, as_json) as broker:
        changed = broker.drain(name, not undo)
    if as_json:
        context.show_json(changed)
    else:
        context.say(f"{name} takes new transfers" if undo else f"{name} finishes what it has and takes nothing new")


@host.command()
def remove(name: str, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """Remove a host without live transfers: its token stops working, its NIC leaves the network."""
    with context.broker(state_dir, as_json) as broker:
        broker.remove_host(name)
    if as_json:
        context.show_json({"name": name, "removed": True})
    else:
        context.say(f"{name} is removed")


def _agent(found: Host) -> Text:
    word = Text("up", style="green") if found["up"] else Text(found["state"], style="bold red")
    return word.append(", drained", style="yellow") if found["drained"] else word


def _clock(found: Host) -> Text | None:
    """The host's clock offset and its uncertainty, in red where starts by the clock are refused."""
    clock = found["clock"]
    if clock is None:
        return None
    shown = f"{show_duration(clock['offset_us'])} ± {show_duration(clock['error_us'])}"
    return Text(shown, style="" if clock["good"] else "bold red")


def _steps(found: Host) -> str | None:
    clock = found["clock"]
    if clock is None or not clock["steps"]:
        return None
    times = f"{clock['steps']} times" if clock["steps"] > 1 else "once"
    return f"{times}, last by {show_duration(clock['last_step_us'] or 0)}"
