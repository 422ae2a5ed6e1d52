# SPDX-License-Identifier: Apache-2.0
"""`bwb plan`: plan requests on a network offline, from files, without server, database or clock."""

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from broker.core.request import DEFAULT_PATHS, DEFAULT_PLANNER, MAX_PATHS

if TYPE_CHECKING:  # numba and rich are loaded only for planning
    from broker.cli.plan.outcome import Outcome
    from broker.core.network import Network
    from broker.core.request import Request


def plan_command(
    network: Annotated[Path, typer.Option(metavar="NET.json", help="The links: ends, capacity, and what is free of it when.")],
    requests: Annotated[
        Path, typer.Option(metavar="REQ.json", help="The transfers to plan, in the order in which they are served.")
    ],
    planner: Annotated[
        str | None, typer.Option(metavar="NAME", help="One of the planners above, or several, with commas: they are compared.")
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Compare all planners (or those that --planner names).")] = False,
    objective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What optimal minds: congestion (default), admitted, volume or completion."),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How long optimal's solvers may take in all (default: 30).")
    ] = None,
    paths: Annotated[
        int,
        typer.Option(
            metavar="K", min=1, max=MAX_PATHS, help="From how many shortest paths to choose, where a request does not say."
        ),
    ] = DEFAULT_PATHS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Plan transfers on a network described in files, without a server.

    The answer depends on the two files alone. Refused requests are part of it
    (exit status 0); a file that cannot be used is not (exit status 2).

    \b
    Planners (docs/planning.md says more)
      vbls       whatever is free at every instant: the earliest finish
      fbls       one fixed rate, as early as it is free throughout
      spaghetti  the one smallest rate from not_before to the deadline
      alap       as late as the deadline allows: the near future stays free
      vifi       all together, one after the other at full rate; each no
                 later than under ifs
      ifs        fair sharing, as without any planning: it only predicts
      optimal    all together, by linear programming, for an --objective
    The first four take requests in file order, each on the capacity that the
    earlier ones left.

    \b
    NET.json
      {"links": [{"id": "L1", "source": "A", "target": "B",
                  "capacity_bps": 10000000000}]}
    A link may also have
      available    [{"from": "2026-01-01T08:00:00Z", "bps": 4000000000}, ...]
                   the capacity from then on; before, capacity_bps
      mtu_bytes    rates are then payload, after all headers
      channel_bps  booked rates are multiples of it
      slot_us      booked times are multiples of it
      metric       paths with the least sum of it come first

    \b
    REQ.json
      {"requests": [{"id": "r1", "source": "A", "destination": "B",
                     "volume_bytes": 5000000000,
                     "not_before": "2026-01-01T00:00:00Z"}]}
    A request may also have
      deadline, rate_max_bps, rate_min_bps, priority
      duration_s   instead of volume_bytes: hold a path for this time, at a rate
                   from rate_min_bps to rate_max_bps
      paths        from how many shortest paths to choose (4)
      path         the ids of the links to take instead
      split        true: several paths may carry it at once
      shortest_segment_s, most_segments
                   how often its rate may change

    \b
    Examples
      bwb plan --network NET.json --requests REQ.json --planner fbls --json
      bwb plan --network NET.json --requests REQ.json --planner vbls,vifi
    """
    from broker.cli.network_file import BadFile, read_network, read_requests
    from broker.cli.plan.outcome import as_comparison, as_document

    names = _names(planner, compare)
    _check_optimal(names, objective, time_limit)
    try:
        net, asked = read_network(network), read_requests(requests, paths)
    except BadFile as error:
        _fail(str(error), 2)
    for path, ignored in ((network, net.ignored), (requests, asked.ignored)):
        if ignored:
            typer.echo(f"{path}: unknown fields are ignored: {', '.join(ignored)}", err=True)
    outcomes = [_planned(name, objective, time_limit, asked.requests, net.network) for name in names]
    for outcome in outcomes:
        if outcome.trouble:
            typer.echo(f"{outcome.planner}: {outcome.trouble}", err=True)
    comparing = compare or len(outcomes) > 1
    if as_json:
        import orjson

        document = as_comparison(outcomes) if comparing else as_document(outcomes[0])
        typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))
        return
    from rich.console import Console

    from broker.cli.plan.show import comparison, tables

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character of some id still shows the plan
    console = Console()
    unicode = console.encoding.startswith("utf")
    shown = comparison(outcomes, unicode, console.width) if comparing else tables(outcomes[0], unicode, console.width)
    for part in shown:
        console.print(part)


def _names(planner: str | None, compare: bool) -> Sequence[str]:
    from broker.planners import PLANNERS

    if planner is None:
        return list(PLANNERS) if compare else [DEFAULT_PLANNER]
    names = list(dict.fromkeys(name.strip() for name in planner.split(",")))
    for name in names:
        if name not in PLANNERS:
            _fail(f"--planner: {name!r} is unknown; there are: {', '.join(PLANNERS)}", 2)
    return names


def _check_optimal(names: Sequence[str], objective: str | None, time_limit: float | None) -> None:
    from broker.planners.optimal import OBJECTIVES, Optimal

    for option, value in (("--objective", objective), ("--time-limit", time_limit)):
        if value is not None and Optimal.name not in names:
            _fail(f"{option} is for the planner optimal; with {', '.join(names)} leave it out, or add --planner optimal", 2)
    if objective is not None and objective not in OBJECTIVES:
        _fail(f"--objective: {objective!r} is unknown; there are: {', '.join(OBJECTIVES)}", 2)
    if time_limit is not None and not (isfinite(time_limit) and time_limit > 0):
        _fail(f"--time-limit: {time_limit:g} is not a number of seconds above 0", 2)


def _planned(
    name: str, objective: str | None, time_limit: float | None, requests: "Sequence[Request]", network: "Network"
) -> "Outcome":
    from broker.cli.patience import Work
    from broker.cli.plan.outcome import outcome_of
    from broker.core.plan import PlanRejected

    try:
        return Work(lambda work: outcome_of(name, objective, time_limit, requests, network, work), f"{name} plans").done()
    except PlanRejected as error:
        _fail(f"the planner {name} made a plan that breaks a rule (a bug of ours, please report it): {error}", 1)


def _fail(text: str, status: int) -> NoReturn:
    typer.echo(f"error: {text}", err=True)
    raise typer.Exit(status)
