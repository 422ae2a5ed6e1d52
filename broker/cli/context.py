# SPDX-License-Identifier: Apache-2.0
"""The common parts of the client commands: options, the connection, exit codes, and the output of answers and refusals.

Exit codes: 0 done; 1 refused or failed; 2 not understood (nothing was sent); 3 the broker cannot be found or reached; 130 ctrl-C.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import orjson
import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from broker.cli.quantities import show_rate, show_size, show_time
from broker.client import BrokerClient, ClientError, ProblemError
from broker.core.units import parse_time

FAILED, MISUSED, UNREACHABLE, INTERRUPTED = 1, 2, 3, 130
PATIENCE_S = 5.0  # short, because a person waits at a terminal; BWB_PATIENCE_S overrides it

StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        help="State directory of `bwb up`. Default: BWB_URL and BWB_TOKEN, else BWB_STATE_DIR, else the user's state directory.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the broker's answer as JSON.")]

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)
STATE_STYLES = {
    "HELD": "yellow", "RESERVED": "cyan", "ACTIVE": "bold blue", "FINISHED": "green", "FAILED": "bold red",
    "CANCELED": "dim", "EXPIRED": "red",
}  # fmt: skip


def command_group(about: str) -> typer.Typer:
    """A group of sub-commands that shows its help when called without one."""
    return typer.Typer(help=about, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})


@contextmanager
def broker(state_dir: Path | None, as_json: bool = False) -> Iterator[BrokerClient]:
    """A client whose errors become a message on standard error (with --json: the problem on standard output) and an exit code."""
    patience = None if "BWB_PATIENCE_S" in os.environ else PATIENCE_S
    try:
        with BrokerClient.find(state_dir, patience) as client:
            yield client
    except ProblemError as problem:
        if as_json:
            show_json(problem.document)
        else:
            show_problem(problem.document)
        raise typer.Exit(FAILED) from None
    except ClientError as error:
        fail(str(error), UNREACHABLE)


def fail(message: str, code: int = FAILED) -> NoReturn:
    """Print a message to standard error, and exit with `code`."""
    remark(f"error: {message}", "red")
    raise typer.Exit(code)


def show_json(document: Any) -> None:
    """Print a document for programs, indented."""
    typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table in the style of all commands; columns in `right` are aligned to the right."""
    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", no_wrap=True)
    return made


def say(text: str | Text, style: str = "") -> None:
    """Print one line to standard output, without markup or wrapping."""
    out.print(Text(text, style=style) if isinstance(text, str) else text, soft_wrap=True)


def remark(text: str | Text, style: str = "") -> None:
    """Print one line to standard error, for messages that are not part of the answer."""
    err.print(Text(text, style=style) if isinstance(text, str) else text, soft_wrap=True)


def show_table(rows: Table) -> None:
    """Print a table at full width: cut cells are useless, and a pipe has no width."""
    natural = Measurement.get(out, out.options.update(max_width=1000), rows).maximum
    Console(width=natural, highlight=False).print(rows)


def show_fields(fields: Mapping[str, Any]) -> None:
    """Print NAME  value, one per line; values that are None are left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in fields.items():
        if value is not None:
            grid.add_row(name, value if isinstance(value, Text) else Text(str(value)))
    show_table(grid)


def state_text(transfer: Mapping[str, Any]) -> Text:
    """A transfer's state in its colour, with `unheard` or `paused` if that applies."""
    text = Text(transfer["state"], style=STATE_STYLES.get(transfer["state"], ""))
    if transfer["unheard_since"] and transfer["state"] in ("RESERVED", "ACTIVE"):
        text.append(" unheard", style="yellow")
    return text.append(" paused", style="yellow") if transfer["paused"] and transfer["state"] in ("RESERVED", "ACTIVE") else text


def show_problem(problem: Mapping[str, Any], tell: Callable[[str | Text], None] = remark) -> None:
    """Print a refusal for people: the problem, its reason, the binding link and the counter-offers."""
    code = str(problem.get("type", "")).rsplit("/", 1)[-1]
    title = Text(f"{problem.get('title') or code} ({problem.get('status')})", style="bold red")
    tell(title.append(f": {problem.get('detail', '')}", style="not bold red"))
    if binding := problem.get("binding"):
        interval = binding["interval"]
        line = f"  limited by link {binding['link']} between {show_time(interval['from'])} and {show_time(interval['to'])}"
        holders = binding.get("reservations") or []
        tell(line + (f", booked there: {', '.join(holders)}" if holders else ""))
    if offers := problem.get("counter_offers"):
        tell("  what could be had instead:")
        for offer in offers:
            tell("    " + _offer(offer))
    for promise in problem.get("broken") or []:
        label = f" ({promise['label']})" if promise.get("label") else ""
        tell(f"  promised to {promise['id']}{label}: done by {promise['finish']}")
    if code == "unauthorized":
        tell("  is the token revoked or expired? `bwb token create` makes a new one")


def _offer(offer: Mapping[str, Any]) -> str:
    match offer.get("kind"):
        case "earliest_finish":
            return f"without a deadline: done at {offer['finish']}"
        case "smallest_deadline":
            return f"with a later deadline: --deadline {offer['deadline']}"
        case "largest_volume":
            return f"less by that deadline: --size {offer['volume_bytes']} ({show_size(offer['volume_bytes'])})"
        case "smallest_rate":
            return f"at up to {show_rate(offer['rate_max_bps'])}: --rate-max {offer['rate_max_bps']}"
        case "largest_rate_min":
            return f"at no less than {show_rate(offer['rate_min_bps'])}: --rate-min {offer['rate_min_bps']}"
        case "longest_duration":
            return f"for a shorter time: --duration {offer['duration_s']}s"
        case _:
            return str(offer.get("detail") or offer)


def rate_at(transfer: Mapping[str, Any], now_us: int) -> int:
    """The total booked rate of the transfer at an instant, in bit/s."""
    segments = transfer["plan"]["segments"]
    return sum(int(s["rate_bps"]) for s in segments if parse_time(s["begin"]) <= now_us < parse_time(s["end"]))


def stdin_or_file(path: Path) -> Any:
    """The JSON of a file, `-` for standard input."""
    try:
        return orjson.loads(sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes())
    except OSError as error:
        fail(f"{path}: cannot be read: {error.strerror}", MISUSED)
    except ValueError as error:
        fail(f"{path}: is not JSON: {error}", MISUSED)
