# SPDX-License-Identifier: Apache-2.0
"""`bwb plan`: plan requests on a network offline. No server, no database, no clock: files in, a plan out."""

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:  # numba and rich load only when there is something to plan
    from rich.console import RenderableType

    from broker.core.plan import Plan
    from broker.planners.sequence import Decision, Schedule

_PICTURE_COLUMNS = 18
_BARS = " ▁▂▃▄▅▆▇█"
_ASCII_BARS = " .:-=+*%#"


def plan_command(
    network: Annotated[Path, typer.Option(metavar="NET.json", help="The links: ends, capacity, and what is free of it when.")],
    requests: Annotated[
        Path, typer.Option(metavar="REQ.json", help="The transfers to plan, in the order in which they are served.")
    ],
    planner: Annotated[
        str, typer.Option(metavar="NAME", help="vbls: whatever is free, the earliest finish. fbls: one fixed rate.")
    ] = "vbls",
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON instead of a table.")] = False,
) -> None:
    """Plan transfers on a network described in files, without a server.

    Requests are taken in file order: each is planned on what those before it
    left free, checked, and booked. The answer depends on the two files alone.
    Refused requests are part of the answer (exit status 0); a file that cannot
    be used is not (exit status 2).

    \b
    NET.json
      {"links": [{"id": "L1", "source": "A", "target": "B",
                  "capacity_bps": 10000000000}]}
    A link may also have
      available    [{"from": "2026-01-01T08:00:00Z", "bps": 4000000000}, ...]
                   what is free from then on; before, capacity_bps is
      mtu_bytes    rates are then payload, after all headers
      channel_bps  booked rates are multiples of it
      slot_us      booked times are multiples of it
      metric       of several paths, the one with the least sum is taken

    \b
    REQ.json
      {"requests": [{"id": "r1", "source": "A", "destination": "B",
                     "volume_bytes": 5000000000,
                     "not_before": "2026-01-01T00:00:00Z"}]}
    A request may also have deadline, rate_max_bps, rate_min_bps, priority.

    \b
    Example
      bwb plan --network NET.json --requests REQ.json --planner fbls --json
    """
    from broker.cli.network_file import BadFile, read_network, read_requests
    from broker.core.plan import PlanRejected
    from broker.planners import PLANNERS
    from broker.planners.sequence import plan_all

    if planner not in PLANNERS:
        _fail(f"--planner: {planner!r} is unknown; there are: {', '.join(sorted(PLANNERS))}", 2)
    try:
        net, asked = read_network(network), read_requests(requests)
    except BadFile as error:
        _fail(str(error), 2)
    for path, ignored in ((network, net.ignored), (requests, asked.ignored)):
        if ignored:
            typer.echo(f"{path}: unknown fields are ignored: {', '.join(ignored)}", err=True)
    try:
        schedule = plan_all(PLANNERS[planner], asked.requests, net.network)
    except PlanRejected as error:
        _fail(f"the planner {planner} made a plan that breaks a rule (a bug of ours, please report it): {error}", 1)
    if as_json:
        import orjson

        typer.echo(orjson.dumps(as_document(planner, schedule), option=orjson.OPT_INDENT_2))
    else:
        from rich.console import Console

        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a letter of some id still shows the plan
        console = Console()
        for part in as_table(planner, schedule, unicode=console.encoding.startswith("utf"), paths=console.width >= 100):
            console.print(part)


def _fail(text: str, status: int) -> NoReturn:
    typer.echo(f"error: {text}", err=True)
    raise typer.Exit(status)


def as_document(planner: str, schedule: "Schedule") -> dict[str, Any]:
    """The JSON form (design, section 4)."""
    return {
        "planner": planner,
        "transfers": [_transfer(decision) for decision in schedule.decisions],
        "metrics": {
            "admitted": len(schedule.plans),
            "congestion_factor": float(schedule.congestion_factor),
            "makespan_s": schedule.makespan_us / 1_000_000,
        },
    }


def _transfer(decision: "Decision") -> dict[str, Any]:
    from broker.core.plan import Plan
    from broker.core.units import format_time

    plan, offer = decision.answer, decision.offer
    if isinstance(plan, Plan):
        return {
            "id": decision.request.id,
            "admitted": True,
            "start": format_time(plan.start_us),
            "finish": format_time(plan.finish_us),
            "segments": [
                {"begin": format_time(begin), "end": format_time(end), "rate_bps": rate, "path": list(path)}
                for begin, end, rate, path in plan.segments
            ],
            "reason": None,
            "counter_offer": None,
        }
    finish = offer.earliest_finish_us if offer else None
    return {
        "id": decision.request.id,
        "admitted": False,
        "start": None,
        "finish": None,
        "segments": [],
        "reason": f"{plan.code}: {plan.detail}",
        "counter_offer": {
            "earliest_finish": None if finish is None else format_time(finish),
            "largest_volume_bytes": offer.largest_volume_bytes if offer else None,
        },
    }


def as_table(planner: str, schedule: "Schedule", *, unicode: bool, paths: bool) -> "list[RenderableType]":
    """For people: one row a transfer with its rate over the time of the whole schedule, then what was refused and why.

    `paths` need a column of their own, which 80 characters have no room for.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from broker.cli.quantities import show_duration, show_rate
    from broker.core.plan import Plan
    from broker.core.units import format_time

    plans = schedule.plans
    begin, end = min((plan.start_us for plan in plans), default=0), max((plan.finish_us for plan in plans), default=1)
    top = max((segment.rate_bps for plan in plans for segment in plan.segments), default=1)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("Transfer", "Start", "Finish", "Rate over time", *(("Path",) if paths else ())):
        table.add_column(header, no_wrap=header not in ("Transfer", "Path"), overflow="fold")
    refused = Text()
    for decision in schedule.decisions:
        name, plan = decision.request.id, decision.answer
        if isinstance(plan, Plan):
            along = dict.fromkeys(" ".join(segment.path) for segment in plan.segments)
            table.add_row(
                Text(name),
                format_time(plan.start_us),
                format_time(plan.finish_us),
                Text(picture(plan, begin, end, top, _BARS if unicode else _ASCII_BARS)),
                *([Text(", ".join(along))] if paths else []),
            )
            continue
        table.add_row(Text(name), "refused")
        refused.append(f"{name}: {plan.code}: {plan.detail}\n")
        if decision.offer and decision.offer.earliest_finish_us is not None:
            refused.append(f"    earliest finish without the deadline: {format_time(decision.offer.earliest_finish_us)}\n")
        if decision.offer and decision.offer.largest_volume_bytes is not None:
            refused.append(f"    largest volume by the deadline: {decision.offer.largest_volume_bytes:,} bytes\n")
    summary = (
        f"{planner}: {len(plans)} of {len(schedule.decisions)} admitted, busiest link {float(schedule.congestion_factor):.1%}, "
        f"done after {show_duration(schedule.makespan_us)}; a full block is {show_rate(top)}"
    )
    return [table, *([refused] if refused else []), summary]


def picture(plan: "Plan", begin_us: int, end_us: int, top_bps: int, bars: str) -> str:
    """The plan's mean rate in each of a few columns between two instants, as a bar of eighths of `top_bps`, rounded up."""
    text = ""
    for column in range(_PICTURE_COLUMNS):
        left = begin_us + (end_us - begin_us) * column // _PICTURE_COLUMNS
        right = max(begin_us + (end_us - begin_us) * (column + 1) // _PICTURE_COLUMNS, left + 1)
        moved = sum(max(0, min(s.end_us, right) - max(s.begin_us, left)) * s.rate_bps for s in plan.segments)
        text += bars[-(-moved * (len(bars) - 1) // (top_bps * (right - left)))]
    return text.rstrip()
