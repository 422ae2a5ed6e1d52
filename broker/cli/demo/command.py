# SPDX-License-Identifier: Apache-2.0
"""`bwb demo`: start the processes, run the scenario, judge the result."""

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from broker.cli import context
from broker.cli.context import out
from broker.cli.demo import scenario, verdict
from broker.cli.demo.scenario import Cast
from broker.cli.demo.stage import Stage, StageError
from broker.cli.link import plot
from broker.cli.progress import Board, size_of
from broker.cli.quantities import now_us, show_rate, show_size
from broker.client import ENDED, BrokerClient, ClientError
from broker.client.documents import Transfer
from broker.core.units import US_PER_S, format_time, parse_time

_POLL_S = 0.4
_LATE_S = 30  # the demo stops waiting this long after the last promise


def demo_command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(exists=True, dir_okay=False, readable=True, help="Files to move. Default: random ones of 20 to 200 MB."),
    ] = None,
    state_dir: Annotated[
        Path | None, typer.Option(help="Run the broker on it, or use the one that runs on it. Default: a temporary one.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave broker, agents and files as they are at the end.")] = False,
) -> None:
    """Start a broker and two agents on this machine, move real files over a link whose capacity dips, and compare with the promises.

    No root is needed, and all processes and files are removed at the end. Exit status 0 only if every transfer ended as promised.

    \b
    Examples
      bwb demo
      bwb demo ~/data/run7/*.h5
      bwb demo --keep
    """
    try:
        with Stage(state_dir, keep) as stage:
            try:
                good = _play(stage, files or [])
            except (StageError, ClientError, OSError) as error:
                context.remark(f"the demo failed: {error}", "bold red")
                good = False
            if not good:
                context.remark(stage.log_tails())
                context.remark(
                    f"--- load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; pacing needs some to spare"
                )
            if keep:
                _how_to_go_on(stage)
    except KeyboardInterrupt:
        context.remark("interrupted; everything is stopped and removed")
        raise typer.Exit(context.INTERRUPTED) from None
    raise typer.Exit(0 if good else context.FAILED)


def _play(stage: Stage, files: list[Path]) -> bool:
    cast = Cast(stage.folder / scenario.SENDER / "out")
    began = time.monotonic()
    context.say("starting a broker (its own PostgreSQL, Redis, API, worker) and preparing files ...")
    settings = {"BWB_MANAGED_MARGIN_PPM": str(scenario.MARGIN_PPM)}
    with stage.start_broker(settings, meanwhile=lambda: cast.provide(files)) as broker:
        context.say(f"broker at {broker.url} after {time.monotonic() - began:.1f} s; enrolling {_hosts()}")
        scenario.declare_network(broker)
        _enrol(stage, broker)
        scenario.warm_up(broker)
        begin_us = now_us()
        scenario.ask(broker, cast)
        _show_answers(broker, cast, begin_us)
        _watch(broker, cast)
        context.say("comparing what arrived with what was sent and promised ...\n")
        judged, faults = verdict.judge(broker, cast, stage.folder / scenario.RECEIVER / "in")
    context.show_table(verdict.table(judged, begin_us))
    context.say(verdict.refusal(cast.refused))
    for fault in faults:
        context.remark(f"NOT AS PROMISED: {fault}", "bold red")
    if not faults:
        context.say("audit clean, all capacity returned: everything as promised", "bold green")
    return not faults


def _hosts() -> str:
    return f"{scenario.SENDER} at node A and {scenario.RECEIVER} at node B, {show_rate(scenario.NIC_BPS)} each"


def _enrol(stage: Stage, broker: BrokerClient) -> None:
    since = format_time(now_us())
    places = {scenario.SENDER: "A", scenario.RECEIVER: "B"}
    for host, node in places.items():
        token = broker.enrolment_token(host, node, scenario.NIC_BPS)["token"]
        stage.start_agent(host, broker.url, token)

    def ready() -> bool:
        """True if both agents have reported their clocks, and not only in an earlier demo on this broker."""
        heard = {
            host["name"]: host for host in broker.hosts() if host["clock"] and parse_time(host["enrolled"]) >= parse_time(since)
        }
        return heard.keys() >= places.keys()

    stage.until("the agents", ready, *places)


def _show_answers(broker: BrokerClient, cast: Cast, begin_us: int) -> None:
    last = max(_promise(transfer) for transfer in cast.booked)
    calendar = broker.calendar(scenario.LINK, format_time(begin_us), format_time(last + US_PER_S))
    context.say(plot.calendar(calendar, out.width))
    total = sum(size_of(transfer) for transfer in cast.booked)
    context.say(f"{len(cast.booked)} transfers, {show_size(total)}, booked until {format_time(last)}; refused:")
    if cast.refused:
        context.show_problem(cast.refused, context.say)


def _watch(broker: BrokerClient, cast: Cast) -> None:
    """Show progress until all transfers have ended, or should have ended long ago."""
    give_up = max(_promise(transfer) for transfer in cast.booked) + _LATE_S * US_PER_S
    with Board(out) as board:
        while True:
            seen = [broker.transfer(booked["id"]) for booked in cast.booked]
            board.show(seen)
            if all(transfer["state"] in ENDED for transfer in seen) or now_us() > give_up:
                return
            time.sleep(_POLL_S)


def _promise(transfer: Transfer) -> int:
    return parse_time(transfer["promised_finish"] or "")


def _how_to_go_on(stage: Stage) -> None:
    pids = " ".join(map(str, stage.pids()))
    own = "" if stage.state_dir.is_relative_to(stage.folder) else f" (the broker's state is in {stage.state_dir})"
    context.say(
        f"\nstill running: export BWB_STATE_DIR={stage.state_dir}, then `bwb link calendar {scenario.LINK}`, `bwb transfer list`, ...\n"
        f"files are sent from {stage.folder / scenario.SENDER / 'out'}\n"
        f"to end it: kill {pids}; rm -r {stage.folder}{own}"
    )
