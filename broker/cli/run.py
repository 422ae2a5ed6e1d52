# SPDX-License-Identifier: Apache-2.0
"""`bwb run`: book, wait for the start, and run any command with its connections limited to the booked rate."""

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from broker.cli import context
from broker.cli.agent_socket import AgentAway, agent_program, ask_agent
from broker.cli.context import StateDir
from broker.cli.quantities import DURATION, RATE, SIZE, WHEN, now_us, show_duration, show_rate, show_size, show_time
from broker.cli.recipient import named_in
from broker.cli.transfer.options import After, OnOverrun, OnTimeout, SignalKind, SignalTimeout, start_signal
from broker.client import BrokerClient, ClientError
from broker.client.documents import Transfer
from broker.core.request import DEFAULT_PLANNER
from broker.core.units import parse_time

_AT_ONCE_US = 5_000_000  # --no-wait still waits this long: agents need a moment to receive a booking


class Mechanism(StrEnum):
    """Mechanisms that limit the connections of other programs to a rate."""

    pacing = "pacing"
    htb = "htb"
    fq = "fq"
    window = "window"


def run_command(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="What moves the data, and its arguments.")],
    size: Annotated[
        int,
        typer.Option(
            "--bytes", parser=SIZE, metavar="SIZE", help="So much will be sent: 500M, 10G, 1.5TB, 64GiB.", show_default=False
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="HOST", help="Enrolled host or node it goes to. Default: the host that the command names."),
    ] = None,
    from_host: Annotated[
        str | None, typer.Option("--from-host", metavar="HOST", help="The host that this is. Default: what its agent says.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(parser=WHEN, metavar="WHEN", help="Done by then: RFC 3339, or from now: +2h, +1h30m.")
    ] = None,
    not_before: Annotated[
        str | None, typer.Option(parser=WHEN, metavar="WHEN", help="Not earlier than that. Default: now.")
    ] = None,
    rate_max: Annotated[
        int | None, typer.Option(parser=RATE, metavar="RATE", help="Never faster: 800M, 1.5G (bit/s), 100MB/s (bytes per second).")
    ] = None,
    after: After = None,
    signal: SignalKind = None,
    signal_timeout: SignalTimeout = None,
    on_timeout: OnTimeout = None,
    on_overrun: OnOverrun = None,
    mechanism: Annotated[
        Mechanism | None, typer.Option(help="How the connections are held to the rate. Default: what this host prefers.")
    ] = None,
    planner: Annotated[
        str, typer.Option(help="vbls: whatever is free, the earliest finish. fbls: one fixed rate.")
    ] = DEFAULT_PLANNER,
    label: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    project: Annotated[str | None, typer.Option(help="What it belongs to.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="If it cannot start at once, wait for the booked start.")] = True,
    max_wait: Annotated[
        int | None,
        typer.Option(parser=DURATION, metavar="TIME", help="Give the booking back if it starts later than in so long: 10min."),
    ] = None,
    port: Annotated[
        str | None, typer.Option(metavar="PORT,...", help="Pace only connections to these ports: 873 or 8000-8010,9000.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say only what goes wrong.")] = False,
    agent_state_dir: Annotated[
        Path | None,
        typer.Option(help="State folder of the agent on this host. Default: BWB_AGENT_STATE_DIR, else /var/lib/bwb."),
    ] = None,
    state_dir: StateDir = None,
) -> None:
    """Book a volume, wait for the start, and run the command with its TCP connections limited to the booked rate.

    The data must leave this host. Exit code: that of the command; 1 if the booking is refused (the answer gives the reason and
    counter-offers). `bwb-agent exec --help` explains the mechanisms and their limits.

    \b
    Examples
      bwb run --bytes 80G -- rsync -a run7/ rsync://dtn-b/incoming/
      bwb run --bytes 10G --deadline +1h -- curl -T x.h5 http://dtn-b.example.org:8080/x.h5
      bwb run --bytes 1TB --to dtn-b --rate-max 5G -- rclone copy run7 remote:run7 --transfers 8
      bwb run --bytes 10G --max-wait 10min -- iperf3 -c dtn-b -n 10G -P 8
      bwb run --bytes 80G --after tr_... -- rsync -a run8/ rsync://dtn-b/incoming/
    """
    folder = agent_state_dir or Path(os.environ.get("BWB_AGENT_STATE_DIR") or "/var/lib/bwb")
    program = agent_program()
    if program is None:
        context.fail(
            "there is no bwb-agent on PATH: `make build` builds it, and docs/host.md says how a host gets it", context.MISUSED
        )
    if size <= 0:
        context.fail("--bytes must be more than 0", context.MISUSED)
    try:
        here = from_host or ask_agent(folder)
    except AgentAway as away:
        context.fail(f"{away}. Give --agent-state-dir FOLDER, that of `bwb-agent run` on this host", context.MISUSED)
    with context.broker(state_dir) as broker:
        request = {
            "source": here,
            "destination": to or _recipient(broker, here, command),
            "volume_bytes": size,
            "mode": "wrapped",
            "planner": planner,
            "deadline": deadline,
            "not_before": not_before,
            "rate_max_bps": rate_max,
            "after": after,
            "signal": start_signal(signal, signal_timeout, on_timeout, on_overrun),
            "mechanism": mechanism and str(mechanism),
            "label": label or Path(command[0]).name,
            "project": project,
        }
        booked = broker.submit({name: value for name, value in request.items() if value is not None})
        patience = max_wait if max_wait is not None else None if wait else _AT_ONCE_US
        _check_patience(broker, booked, patience)
        if not quiet:
            context.remark(f"{booked['id']} {_promise(booked)}")
        arguments = [str(program), "exec", "--transfer", booked["id"], "--state-dir", str(folder)]
        arguments += (["--port", port] if port else []) + (["--quiet"] if quiet else [])
        _become(broker, booked, [*arguments, "--", *command])


def _recipient(broker: BrokerClient, here: str, command: Sequence[str]) -> str:
    hosts = {host["name"]: host["data_address"] for host in broker.hosts() if host["name"] != here}
    found = named_in(command[1:], hosts)
    if len(found) > 1:
        context.fail(
            f"the command names several hosts ({', '.join(found)}): say with --to which one gets the data", context.MISUSED
        )
    if not found:
        known = f" (enrolled: {', '.join(sorted(hosts))})" if hosts else ""
        context.fail(f"the command names no enrolled host{known}: say with --to HOST where the data goes", context.MISUSED)
    return found[0]


def _check_patience(broker: BrokerClient, booked: Transfer, patience_us: int | None) -> None:
    start = booked["plan"]["start"]
    if patience_us is None or start is None or parse_time(start) - now_us() <= patience_us:
        return
    _give_back(broker, booked)
    wait = show_duration(parse_time(start) - now_us())
    context.fail(
        f"it could start at {show_time(start)} only, in {wait}: the booking was given back. Leave out --max-wait, or give more"
    )


def _promise(booked: Mapping[str, Any]) -> str:
    """ "starts 12:00:05Z, ends 12:03:10Z, 400 Mb/s" """
    plan = booked["plan"]
    rates = [segment["rate_bps"] for segment in plan["segments"]]
    rate = (
        show_rate(max(rates))
        if len(set(rates)) == 1
        else f"{show_rate(min(rates))} to {show_rate(max(rates))} in {len(rates)} steps"
    )
    ends = f"starts {show_time(plan['start'])}, ends {show_time(plan['finish'])}"
    return f"{show_size(booked['volume_bytes'])} to {booked['destination']}: {ends}, {rate}"


def _become(broker: BrokerClient, booked: Transfer, arguments: list[str]) -> NoReturn:
    """Replace this process by the supervisor, which then handles job control, signals and the exit code."""
    try:
        os.execv(arguments[0], arguments)  # noqa: S606 - a list of arguments, and nothing of a shell
    except OSError as error:
        _give_back(broker, booked)
        context.fail(f"{arguments[0]} cannot be run: {error.strerror}; the booking was given back")


def _give_back(broker: BrokerClient, booked: Transfer) -> None:
    try:
        broker.act(booked["id"], "cancel")
    except ClientError as error:
        context.remark(f"the booking could not be given back ({error}); it expires by itself")
