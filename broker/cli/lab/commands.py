# SPDX-License-Identifier: Apache-2.0
"""`bwb lab`: the broker on one machine: hosts in network namespaces, and an adjustable bottleneck between them."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from broker.cli import context
from broker.cli.lab.show import Meter, how_to_go_on, status_row
from broker.cli.quantities import DURATION, RATE, SIZE
from broker.lab import Bottleneck, Lab, LabError, sweep, why_not
from broker.lab.gateway import order
from broker.lab.registry import alive, records

lab = context.command_group(
    "Try the broker on this machine: hosts in network namespaces, and a bottleneck that you set as you like (as root)."
)

_BEAT_S = 1.0


def _hosts(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _share(text: Any) -> float:
    try:
        value = float(text[:-1]) / 100 if str(text).endswith("%") else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no share: write 0.001 or 0.1%") from None
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"{text!r} is no share: from 0 to 1, or 0% to 100%")
    return value


Which = Annotated[str | None, typer.Option("--lab", metavar="NAME", help="Which one, if several run: a name of `bwb lab status`.")]
Direction = Annotated[str, typer.Option(help="left-right, right-left or both.", metavar="WAY")]


@lab.command()
def up(
    left: Annotated[str, typer.Option(metavar="NAMES", help="Hosts on the left side, with commas.")] = "a,b",
    right: Annotated[str, typer.Option(metavar="NAMES", help="Hosts on the right side.")] = "c,d",
    capacity: Annotated[
        int, typer.Option(parser=RATE, metavar="RATE", show_default="500M", help="Of the link: 500M.")
    ] = 500_000_000,
    rtt: Annotated[int, typer.Option(parser=DURATION, metavar="TIME", show_default="10ms", help="There and back: 0.1ms.")] = 10_000,
    buffer: Annotated[
        int, typer.Option(parser=SIZE, metavar="SIZE", show_default="1MB", help="What may wait before the link: 100k.")
    ] = 1_000_000,
    loss: Annotated[float, typer.Option(parser=_share, metavar="SHARE", help="Of the packets, at random: 0.001, 0.1%.")] = 0.0,
    with_broker: Annotated[
        bool, typer.Option("--broker/--no-broker", help="With a broker and agents, or the network alone.")
    ] = True,
    state_dir: Annotated[Path | None, typer.Option(help="Keep the broker's state there. Default: a temporary one.")] = None,
) -> None:
    """Build the laboratory, run it until ctrl-C, and take it down again.

    The root namespace gets one device and one address (198.18.N.1, the broker's); nothing else is changed. Everything is removed at
    the end, and the remains of a killed laboratory at the start of the next.

    \b
    Examples
      sudo bwb lab up
      sudo bwb lab up --left a --right c,d --capacity 1G --rtt 100ms --buffer 12MB
    """
    if reasons := why_not():
        context.fail("no laboratory can run here: " + "; ".join(reasons))
    bottleneck = Bottleneck(capacity_bps=capacity, delay_us=rtt // 2, buffer_bytes=buffer, loss=loss)
    try:
        with Lab(_hosts(left), _hosts(right), bottleneck) as running:
            if with_broker:
                context.remark("the network is up; starting a broker and the agents ...")
                _start_services(running, state_dir)
            context.say(how_to_go_on(running))
            _watch(running)
    except LabError as error:
        context.fail(str(error))
    except KeyboardInterrupt:
        context.remark("the laboratory is taken down")


def _start_services(running: Lab, state_dir: Path | None) -> None:
    broker = running.start_broker(state_dir)
    # A sender may be 1 % too fast for a moment; the link should not drop packets because of that.
    broker.declare_links(running.bottleneck.payload_bps * 99 // 100)
    for name in running.hosts:
        running.start_agent(name)


def _watch(running: Lab) -> None:
    """Show a changing line on a terminal, and nothing on a pipe, until ctrl-C, or until the emulator fails."""
    meter = Meter()
    with context.err.status("") as line:
        while running.gateway.process.poll() is None:
            line.update(meter.line(running.gateway.statistics()))
            time.sleep(_BEAT_S)
    raise LabError(f"the emulator has ended: {running.gateway.last_words()}")


@lab.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def execute(host: str, command: Annotated[list[str], typer.Argument(metavar="-- COMMAND")], which: Which = None) -> None:
    """Run a command in a host of the running laboratory.

    \b
    Example
      sudo bwb lab exec a -- iperf3 -c 10.71.2.10
    """
    _, record = _find(which)
    if host not in record["hosts"]:
        context.fail(f"there is no host {host!r}; there are {', '.join(record['hosts'])}", context.MISUSED)
    words = command[1:] if command[0] == "--" else command
    arguments = ["ip", "netns", "exec", record["hosts"][host]["namespace"], *words]
    os.execvp(arguments[0], arguments)  # noqa: S606  (no shell: that is the point)


@lab.command("set")
def change(
    capacity: Annotated[int | None, typer.Option(parser=RATE, metavar="RATE", help="Of the link: 100M.")] = None,
    rtt: Annotated[int | None, typer.Option(parser=DURATION, metavar="TIME", help="There and back; half of it each way.")] = None,
    buffer: Annotated[int | None, typer.Option(parser=SIZE, metavar="SIZE", help="What may wait before the link.")] = None,
    loss: Annotated[float | None, typer.Option(parser=_share, metavar="SHARE", help="Of the packets: 0.001, 0.1%.")] = None,
    direction: Direction = "both",
    which: Which = None,
) -> None:
    """Change the bottleneck while traffic runs. The broker's link keeps its capacity: see `bwb link change`.

    \b
    Example
      sudo bwb lab set --capacity 100M --rtt 50ms
    """
    given = {
        "capacity_bps": capacity,
        "delay_us": None if rtt is None else rtt // 2,
        "buffer_bytes": buffer,
        "loss": loss,
    }
    wanted = {name: value for name, value in given.items() if value is not None}
    if not wanted:
        context.fail("nothing to change: give --capacity, --rtt, --buffer or --loss", context.MISUSED)
    _order(which, {"op": "set", "direction": direction, **wanted})


@lab.command()
def cut(direction: Direction = "both", which: Which = None) -> None:
    """Cut the link: packets on it, and all that arrive, are lost until `bwb lab restore`."""
    _order(which, {"op": "cut", "direction": direction})


@lab.command()
def restore(direction: Direction = "both", which: Which = None) -> None:
    """Restore a link that was cut."""
    _order(which, {"op": "restore", "direction": direction})


@lab.command()
def status(as_json: context.AsJson = False) -> None:
    """The laboratories on this machine, and the traffic on their links."""
    found = _running()
    shown = [{"name": name, **record, "link": _statistics(record)} for name, record in found]
    if as_json:
        context.show_json(shown)
        return
    if not shown:
        context.say("no laboratory runs; `bwb lab up` starts one")
        return
    rows = context.table("Laboratory", "Hosts", "Way", "Capacity", "Delay", "Carried", "Dropped", "Lateness p99")
    for item in shown:
        for cells in status_row(item):
            rows.add_row(*cells)
    context.show_table(rows)


@lab.command("sweep")
def sweep_command() -> None:
    """Remove the remains of killed laboratories. Running ones are not touched."""
    _need_root()
    try:
        swept = sweep()
    except LabError as error:
        context.fail(str(error))
    context.say(f"removed: {', '.join(swept)}" if swept else "nothing was left")


def _running() -> list[tuple[str, dict[str, Any]]]:
    _need_root()
    return [(name, record) for name, record in records() if alive(record["owner"]) and "gateway" in record]


def _need_root() -> None:
    if os.geteuid() != 0:
        context.fail("a laboratory belongs to root: run it with sudo")


def _find(which: str | None) -> tuple[str, dict[str, Any]]:
    found = [item for item in _running() if which in (None, item[0])]
    if not found:
        context.fail("no laboratory runs; `bwb lab up` starts one" if which is None else f"no laboratory {which} runs")
    if len(found) > 1:
        context.fail(f"several run, say which: {_choices(found)}", context.MISUSED)
    return found[0]


def _choices(found: Sequence[tuple[str, Any]]) -> str:
    return ", ".join(f"--lab {name}" for name, _ in found)


def _order(which: str | None, document: dict[str, Any]) -> None:
    _, record = _find(which)
    try:
        order(Path(record["gateway"]), document)
    except LabError as error:
        context.fail(str(error))


def _statistics(record: dict[str, Any]) -> Any:
    try:
        return order(Path(record["gateway"]), {"op": "statistics"})["statistics"]
    except LabError:
        return None
