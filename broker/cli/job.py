# SPDX-License-Identifier: Apache-2.0
"""`bwb job`: re-optimisations and simulations that the broker runs; `bwb reoptimise`: request a re-optimisation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from broker.cli import context
from broker.cli.context import AsJson, StateDir
from broker.cli.progress import Bar
from broker.cli.quantities import DURATION, show_duration, show_size, show_time
from broker.cli.simulate import show as simulate_show
from broker.client import BrokerClient
from broker.client.documents import Job
from broker.core.request import DEFAULT_PLANNER
from broker.core.units import US_PER_S, parse_time

job = context.command_group("Long work of the broker: re-optimisations and simulations.")

_STYLES = {"QUEUED": "cyan", "RUNNING": "bold blue", "DONE": "green", "FAILED": "bold red", "CANCELED": "dim"}
_CHANGES_SHOWN = 20

JobId = Annotated[str, typer.Argument(metavar="ID")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it has ended, or print its id and go.")]
CsvFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result there as CSV.")]
PlotFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result there as PNG.")]


class Kind(StrEnum):
    """Kinds of jobs."""

    plan = "plan"
    simulation = "simulation"


class State(StrEnum):
    """States of jobs, as in the contract."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


class Objective(StrEnum):
    """The objective of a re-optimisation."""

    congestion = "congestion"
    admitted = "admitted"
    volume = "volume"
    completion = "completion"


def reoptimise_command(
    objective: Annotated[
        Objective,
        typer.Option(
            help="congestion: the least share of any link. completion: the earliest finishes, weighted by priority. "
            "admitted, volume: as many transfers, or as much volume, as possible on time again where promises were broken."
        ),
    ] = Objective.congestion,
    project: Annotated[str | None, typer.Option(help="Only transfers of this project may move.")] = None,
    link: Annotated[list[str] | None, typer.Option(help="Only transfers booked on this link. Repeat for several.")] = None,
    transfer: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this transfer. Repeat for several.")] = None,
    time_limit: Annotated[
        int, typer.Option(parser=DURATION, metavar="DURATION", show_default="30s", help="For the solver: 1s to 10min.")
    ] = 30 * US_PER_S,
    review: Annotated[
        int,
        typer.Option(
            parser=DURATION,
            metavar="DURATION",
            show_default="2min",
            help="Without --apply: how long the result can be applied. What is booked until then stays as it is.",
        ),
    ] = 120 * US_PER_S,
    apply: Annotated[bool, typer.Option("--apply", help="Book the result at once.")] = False,
    wait: Wait = True,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Replan all data that has not been sent yet, all transfers together, keeping every promise.

    Without --apply nothing changes: the answer shows the changes, and `bwb job apply ID` books them.

    \b
    Examples
      bwb reoptimise
      bwb reoptimise --objective completion --project cms --apply
      bwb reoptimise --link berlin-geneva --time-limit 2min --review 10min
    """
    wishes = {
        "objective": str(objective),
        "project": project,
        "links": link or None,
        "transfers": transfer or None,
        "time_limit_s": -(-time_limit // US_PER_S),
        "review_s": -(-review // US_PER_S),
        "apply": apply,
    }
    with context.broker(state_dir, as_json) as broker:
        _follow(broker, broker.plan(wishes), wait, as_json)


@job.command("list")
def list_command(
    kind: Annotated[Kind | None, typer.Option(help="Only this kind. Default: both.")] = None,
    state: Annotated[list[State] | None, typer.Option(help="Only in this state. Repeat for several.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Of each kind, the newest.")] = 20,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Jobs, newest first."""
    with context.broker(state_dir, as_json) as broker:
        kinds = [kind] if kind is not None else list(Kind)
        states = [str(s) for s in state or ()]
        found = [item for k in kinds for item in islice(broker.jobs(k.value, state=states, page_size=min(limit, 1000)), limit)]
    found.sort(key=lambda item: parse_time(item["created"]), reverse=True)
    if as_json:
        context.show_json(found)
        return
    rows = context.table("Job", "Kind", "State", "Progress", "What", "Created", "Finished", right=("Progress",))
    for item in found:
        rows.add_row(
            item["id"], item["kind"], _state(item), f"{item['progress']:.0%}", _what(item), show_time(item["created"]),
            show_time(item["finished"]),
        )  # fmt: skip
    context.show_table(rows)


@job.command()
def show(job_id: JobId, csv: CsvFile = None, plot: PlotFile = None, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """A job and its result."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.job(job_id)
        _save(broker, found, csv, plot)
    _show(found, as_json)


@job.command()
def wait(job_id: JobId, csv: CsvFile = None, plot: PlotFile = None, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """Wait until it has ended. Exit status 1 if it failed or was cancelled."""
    with context.broker(state_dir, as_json) as broker:
        _follow(broker, broker.job(job_id), True, as_json, csv, plot)


@job.command()
def cancel(job_id: JobId, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """Stop it. Results that it has not booked by then are not booked."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.cancel_job(job_id)
    if as_json:
        context.show_json(found)
    else:
        stopping = found["cancel_requested"] and found["state"] == "RUNNING"
        context.say(f"{found['id']} {'is being stopped' if stopping else 'is ' + found['state']}")


@job.command()
def apply(job_id: JobId, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """Book the result of a re-optimisation: all of it, or nothing if something has changed since (exit status 1)."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.apply_plan(job_id)
    if as_json:
        context.show_json(found)
    else:
        context.say(f"{found['id']}: {(found['result'] or {})['changes_total']} transfers have new plans, every promise is kept")


@job.command()
def simulate(
    specification: Annotated[Path, typer.Argument(metavar="SPEC.json", help="As `bwb simulate` takes it; - for standard input.")],
    network: Annotated[Path | None, typer.Option(metavar="NET.json", help="On this network. Default: that of the broker.")] = None,
    csv: CsvFile = None,
    plot: PlotFile = None,
    wait: Wait = True,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Run a what-if simulation on the broker, on its own network or on another."""
    wanted = context.stdin_or_file(specification)
    if not isinstance(wanted, dict):
        context.fail(f"{specification}: must hold one object", context.MISUSED)
    if network is not None:
        wanted["network"] = context.stdin_or_file(network)
    with context.broker(state_dir, as_json) as broker:
        _follow(broker, broker.simulate(wanted), wait, as_json, csv, plot)


# -- following a job ---------------------------------------------------------------------------------------------------------------


def _follow(broker: BrokerClient, found: Job, wait: bool, as_json: bool, csv: Path | None = None, plot: Path | None = None) -> None:
    if not wait:
        context.show_json(found) if as_json else context.say(found["id"])
        return
    with _told_how_to_go_on(found["id"]), Bar(context.err) as bar:
        found = broker.wait_for_job(
            found["id"], seen=lambda seen: bar.show(seen["progress"], f"{seen['state']} {seen['stage'] or ''}")
        )
    _save(broker, found, csv, plot)
    _show(found, as_json)
    if found["state"] != "DONE":
        raise typer.Exit(context.FAILED)


@contextmanager
def _told_how_to_go_on(job_id: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        context.remark(f"it goes on: `bwb job wait {job_id}` comes back to it, `bwb job cancel {job_id}` stops it")
        raise typer.Exit(context.INTERRUPTED) from None


def _save(broker: BrokerClient, found: Job, csv: Path | None, plot: Path | None) -> None:
    if found["state"] != "DONE":
        return
    if csv is not None:
        csv.write_text(broker.simulation_table(found["id"]))
    if plot is not None:
        plot.write_bytes(broker.simulation_plot(found["id"]))


def _show(found: Job, as_json: bool) -> None:
    if as_json:
        context.show_json(found)
        return
    context.show_fields(
        {
            "Job": f"{found['id']} ({found['kind']})",
            "State": _state(found),
            "Doing": found["stage"] and f"{found['stage']} ({found['progress']:.0%})",
            "Asked": _what(found),
            "Created": show_time(found["created"]),
            "Finished": found["finished"] and show_time(found["finished"]),
            "Attempts": found["attempts"] if found["attempts"] > 1 else None,
        }
    )
    if found["error"] is not None:
        context.show_problem(found["error"], context.say)
    elif found["result"] is not None and found["kind"] == "plan":
        _show_plan(found["id"], found["result"])
    elif found["result"] is not None:
        simulate_show.show(found["result"])


def _state(found: Job) -> Text:
    text = Text(found["state"], style=_STYLES.get(found["state"], ""))
    return text.append(" stopping", style="yellow") if found["cancel_requested"] and found["state"] == "RUNNING" else text


def _what(found: Job) -> str:
    request = found["request"]
    if found["kind"] == "plan":
        chosen = [
            *([f"project {request['project']}"] if request.get("project") else []),
            *(f"{len(request[name])} {name}" for name in ("links", "transfers") if request.get(name)),
        ]
        return ", ".join([str(request.get("objective")), *chosen, *(["apply"] if request.get("apply") else [])])
    return ", ".join(map(str, request.get("planners") or [DEFAULT_PLANNER]))


def _show_plan(job_id: str, result: Mapping[str, Any]) -> None:
    before, after = result["before"], result["after"]
    rows = context.table("", "before", "after", right=("before", "after"))
    for name, show in _METRICS.items():
        rows.add_row(name, show(before), show(after))
    context.say("")
    context.show_table(rows)
    kept = ", ".join(f"{number} {reason}" for reason, number in sorted(result["kept"].items()))
    context.say("")
    context.say(
        f"{result['changes_total']} of {result['considered']} transfers move" + (f"; not looked at: {kept}" if kept else "")
    )
    if result["note"]:
        context.say(result["note"])
    if result["changes"]:
        _show_changes(result["changes"], result["changes_total"])
        if result["applied"]:
            context.say("applied: every promise is kept")
        else:
            context.say(f"nothing is changed yet; until {show_time(result['apply_by'])}: bwb job apply {job_id}")


_METRICS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "congestion factor": lambda m: f"{m['congestion_factor']:.3f}",
    "mean finish": lambda m: "+" + show_duration(round(m["mean_finish_s"] * US_PER_S)),
    "last finish": lambda m: "+" + show_duration(round(m["makespan_s"] * US_PER_S)),
    "weighted completion": lambda m: show_duration(round(m["weighted_completion_s"] * US_PER_S)),
    "rate changes": lambda m: str(m["change_points"]),
    "on time": lambda m: f"{m['on_time']} ({show_size(m['volume_on_time_bytes'])})",
}


def _show_changes(changes: Sequence[Mapping[str, Any]], total: int) -> None:
    rows = context.table("Transfer", "Start", "", "Finish", "", "Promised", "Path")
    for change in changes[:_CHANGES_SHOWN]:
        old, new = change["before"], change["after"]
        same = old["paths"] == new["paths"]
        path = _paths(new["paths"]) if same else f"{_paths(old['paths'])} -> {_paths(new['paths'])}"
        rows.add_row(
            change["label"] or change["transfer_id"], show_time(old["start"]), "-> " + show_time(new["start"]), show_time(old["finish"]),
            "-> " + show_time(new["finish"]), show_time(change["promised"]), path,
        )  # fmt: skip
    context.show_table(rows)
    if total > _CHANGES_SHOWN:
        context.say(f"and {total - _CHANGES_SHOWN} more (--json shows all)")


def _paths(paths: Sequence[Sequence[str]]) -> str:
    return " | ".join("/".join(path) for path in paths)
