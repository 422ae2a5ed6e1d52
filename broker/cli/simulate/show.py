# SPDX-License-Identifier: Apache-2.0
"""Output of simulations: a bar while they run, tables at the end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from broker.cli.quantities import show_duration, show_rate, show_size
from broker.core.units import US_PER_S


@contextmanager
def progress() -> Iterator[Callable[[float, str], None]]:
    """A bar on standard error if that is a terminal; it is removed at the end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _share, _text: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda share, text: bar.update(task, completed=share, description=text)


def show_table(table: Table) -> None:
    """Print a table at full width, because cut figures are useless."""
    console = Console(highlight=False)
    natural = Measurement.get(console, console.options.update(max_width=1000), table).maximum
    Console(width=natural, highlight=False).print(table)


def show(result: Mapping[str, Any]) -> None:
    """Print the workload, and a row for each planner."""
    console = Console(highlight=False)
    about = result["workload"]
    load = "" if about["offered_load"] is None else f", load {about['offered_load']:.3g} on the busiest link"
    last = show_duration(round(about["last_arrival_s"] * US_PER_S))
    console.print(f"{about['requests']} requests, {show_size(about['bytes'])}, the last after {last}{load}")
    show_table(_planners(result["planners"]))
    by_class = _classes(result["planners"])
    if by_class is not None:
        show_table(by_class)
    for each in result["planners"]:
        if each["refusals"]:
            refused = ", ".join(f"{count} {code}" for code, count in each["refusals"].items())
            console.print(f"{each['planner']} refused: {refused}")


def _planners(measures: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Planner", no_wrap=True)
    for title in ("Admitted", "Volume", "Delay s", "Missed", "Busiest", "Used", "Done after", "Rows", "Plan us"):
        table.add_column(title, justify="right", no_wrap=True)
    for each in measures:
        deadlines, planning = each["deadlines"], each["planning"]
        table.add_row(
            each["planner"],
            f"{each['acceptance_ratio']:.1%}",
            f"{each['admitted_bytes'] / each['asked_bytes']:.1%}",
            _number(each["normalized_delay_s"], ".3f"),
            f"{deadlines['missed'] / deadlines['requests']:.1%}" if deadlines["requests"] else "-",
            f"{each['congestion_factor']:.1%}",
            f"{each['utilisation']:.1%}",
            show_duration(round(each["makespan_s"] * US_PER_S)),
            _number(each["mean_rows"], ".2f"),
            f"{planning['mean_us_per_request']:.0f}",
        )
    return table


def _classes(measures: Sequence[Mapping[str, Any]]) -> Table | None:
    """Delay by Rmax, if there are several."""
    if len(measures[0]["classes"]) < 2:
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Normalized delay in s by Rmax", no_wrap=True)
    for each in measures:
        table.add_column(each["planner"], justify="right")
    for i, first in enumerate(measures[0]["classes"]):
        cells = [_number(each["classes"][i]["normalized_delay_s"], ".3f") for each in measures]
        table.add_row("none" if first["rate_max_bps"] is None else show_rate(first["rate_max_bps"]), *cells)
    return table


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
