# SPDX-License-Identifier: Apache-2.0
"""`bwb transfer`: ask for transfers, look at them, steer them."""

import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import orjson
import typer
from rich.text import Text

from broker.cli import context
from broker.cli.context import AsJson, StateDir
from broker.cli.progress import Board, against, name_of, size_of
from broker.cli.quantities import DURATION, RATE, SIZE, WHEN, show_duration, show_rate, show_size, show_time
from broker.client import ENDED, BrokerClient, BrokerUnreachable
from broker.client.client import Action
from broker.client.documents import BatchItem, Plan, Quote, Transfer, TransferPreview
from broker.core.units import US_PER_S

transfer = context.command_group("Bulk transfers: each has a booked rate and a promised finish.")

_POLL_S = 0.5

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...")]


class Mode(StrEnum):
    reserve = "reserve"
    managed = "managed"


class Limit(StrEnum):
    deadline = "deadline"
    not_before = "not-before"
    rate_max = "rate-max"
    rate_min = "rate-min"
    via = "via"
    most_segments = "most-segments"
    shortest_segment = "shortest-segment"


_LIMITS = {
    Limit.deadline: "deadline",
    Limit.not_before: "not_before",
    Limit.rate_max: "rate_max_bps",
    Limit.rate_min: "rate_min_bps",
    Limit.via: "path",
    Limit.most_segments: "most_segments",
    Limit.shortest_segment: "shortest_segment_s",
}


class State(StrEnum):
    HELD = "HELD"
    RESERVED = "RESERVED"
    ACTIVE = "ACTIVE"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    EXPIRED = "EXPIRED"


# -- what is asked: `submit` and `quote` share the options -----------------------------------------------------------------------------

From = Annotated[str | None, typer.Argument(help="Node or enrolled host that has the data.")]
To = Annotated[str | None, typer.Argument(help="Node or enrolled host that shall get it.")]
Size = Annotated[int | None, typer.Option(parser=SIZE, metavar="SIZE", help="In bytes: 500M, 10G, 1.5TB, 64GiB.")]
SizeOf = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="Take the size of this local file instead.")]
HoldFor = Annotated[
    int | None,
    typer.Option(
        "--duration", parser=DURATION, metavar="TIME", help="Instead of a size: hold capacity so long, without a gap: 90s, 1h30m."
    ),
]
Deadline = Annotated[
    str | None, typer.Option(parser=WHEN, metavar="WHEN", help="Done by then: RFC 3339, or from now: +2h, +1h30m.")
]
NotBefore = Annotated[str | None, typer.Option(parser=WHEN, metavar="WHEN", help="Not earlier than that. Default: now.")]
RateMax = Annotated[
    int | None, typer.Option(parser=RATE, metavar="RATE", help="Never faster: 800M, 1.5G (bit/s), 100MB/s (bytes per second).")
]
RateMin = Annotated[int | None, typer.Option(parser=RATE, metavar="RATE", help="Never slower while it moves.")]
Priority = Annotated[int, typer.Option(help="Higher is more important, when capacity is lost.")]
Paths = Annotated[int | None, typer.Option(min=1, max=16, help="Choose from so many of the shortest paths. Default: 4.")]
Via = Annotated[str | None, typer.Option(metavar="LINK,...", help="Over these links and no others, from the first to the last.")]
Split = Annotated[bool | None, typer.Option("--split/--no-split", help="Several paths may carry it at once.")]
MostSegments = Annotated[int | None, typer.Option(min=1, help="The rate changes no more often.")]
ShortestSegment = Annotated[
    int | None, typer.Option(parser=DURATION, metavar="TIME", help="No segment but the last is shorter: 500ms, 10s.")
]
BestEffort = Annotated[
    bool | None, typer.Option("--best-effort/--guaranteed", help="It gives way to requests of higher priority that preempt.")
]
Preview = Annotated[bool, typer.Option("--preview", help="Change nothing; show what would be.")]


def _question(
    source: str | None,
    destination: str | None,
    size: int | None,
    size_of: Path | None,
    duration: int | None,
    fields: dict[str, Any],
) -> dict[str, Any]:
    """The request as the API takes it: what was not given is left out."""
    if source is None or destination is None:
        context.fail("give SOURCE DESTINATION, or --file", context.MISUSED)
    volume = size_of.stat().st_size if size_of is not None else size
    if [size, size_of, duration].count(None) != 2 or (duration is None and not volume):
        context.fail("give --size (more than 0), --size-of FILE or --duration TIME", context.MISUSED)
    fields = {"source": source, "destination": destination, "volume_bytes": volume, "duration_s": _seconds(duration), **fields}
    return {name: value for name, value in fields.items() if value is not None}


def _shape(
    paths: int | None,
    via: str | None,
    split: bool | None,
    most_segments: int | None,
    shortest_segment: int | None,
    best_effort: bool | None,
) -> dict[str, Any]:
    return {
        "paths": paths,
        "path": via.split(",") if via else None,
        "split": split,
        "most_segments": most_segments,
        "shortest_segment_s": _seconds(shortest_segment),
        "best_effort": best_effort,
    }


def _seconds(duration_us: int | None) -> float | None:
    return None if duration_us is None else duration_us / US_PER_S


@transfer.command()
def submit(
    source: From = None,
    destination: To = None,
    size: Size = None,
    size_of: SizeOf = None,
    duration: HoldFor = None,
    deadline: Deadline = None,
    not_before: NotBefore = None,
    rate_max: RateMax = None,
    rate_min: RateMin = None,
    planner: Annotated[
        str,
        typer.Option(
            help="vbls: whatever is free, the earliest finish. fbls: one fixed rate. `bwb transfer quote` compares them all."
        ),
    ] = "vbls",
    priority: Priority = 0,
    paths: Paths = None,
    via: Via = None,
    split: Split = None,
    most_segments: MostSegments = None,
    shortest_segment: ShortestSegment = None,
    best_effort: BestEffort = None,
    preempt: Annotated[
        bool, typer.Option("--preempt", help="If it does not fit, displace best-effort transfers of lower priority.")
    ] = False,
    path: Annotated[str | None, typer.Option(help="File that the agents move, relative to the sender's served folder.")] = None,
    to_path: Annotated[
        str | None, typer.Option(help="Where to put it, relative to the receiver's folder. Default: --path.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    mode: Annotated[
        Mode | None, typer.Option(help="managed: agents move the file. reserve: booked only. Default: managed with --path.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    project: Annotated[str | None, typer.Option(help="What it belongs to.")] = None,
    metadata: Annotated[str | None, typer.Option(metavar="JSON", help="An object that is kept with it.")] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Book, but wait for `bwb transfer commit`.")] = False,
    file: Annotated[
        Path | None, typer.Option(help="Requests as JSON, one object or a list, as the API takes them; - for standard input.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="The same key gives the same transfer, however often it is submitted.")
    ] = None,
    quote: Annotated[bool, typer.Option("--quote", help="Only ask what would be booked, as `bwb transfer quote` does.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Watch it until it has ended.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only its id.")] = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Book a transfer. Exit status 1 when it is refused: the answer says what is in the way, and what could be had instead.

    \b
    Examples
      bwb transfer submit A B --size 10G
      bwb transfer submit A B --size 1.5TB --deadline +6h --rate-max 5G
      bwb transfer submit A B --duration 2h --rate-min 1G
      bwb transfer submit A B --size 10TB --split --paths 8
      bwb transfer submit dtn-a dtn-b --path run7/x.h5 --size 64GiB --watch
      bwb transfer submit A B --size 10G --idempotency-key run7-step3 --json
      bwb transfer submit --file requests.json
    """
    if file is not None:
        if source is not None or size is not None or duration is not None or quote:
            context.fail("--file goes with --idempotency-key, --watch and --json only", context.MISUSED)
        _submit_file(file, idempotency_key, watch, state_dir, as_json, quiet)
        return
    fields = {
        "deadline": deadline,
        "not_before": not_before,
        "rate_max_bps": rate_max,
        "rate_min_bps": rate_min,
        "priority": priority,
        "mode": mode and str(mode),
        "payload": None if path is None else {"path": path, "destination_path": to_path, "overwrite": overwrite},
        "label": label,
        "project": project,
        "metadata": _object(metadata),
        "preempt": preempt or None,
        **_shape(paths, via, split, most_segments, shortest_segment, best_effort),
    }
    request = _question(source, destination, size, size_of, duration, fields)
    with context.broker(state_dir, as_json) as broker:
        if quote:
            _show_quotes(broker.quote(request, _planners(planner)), as_json, _as_lines)
        else:
            made = broker.submit(request | {"planner": planner, "hold": hold}, idempotency_key)
            _booked(broker, made, watch, as_json, quiet)


@transfer.command("quote")
def quote_command(
    source: From = None,
    destination: To = None,
    size: Size = None,
    size_of: SizeOf = None,
    duration: HoldFor = None,
    deadline: Deadline = None,
    not_before: NotBefore = None,
    rate_max: RateMax = None,
    rate_min: RateMin = None,
    planner: Annotated[str, typer.Option(metavar="NAME,...|all", help="Which planners are asked.")] = "all",
    paths: Paths = None,
    via: Via = None,
    split: Split = None,
    most_segments: MostSegments = None,
    shortest_segment: ShortestSegment = None,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """What each planner would book now, side by side. Nothing is booked, and nothing is kept for you.

    \b
    Examples
      bwb transfer quote A B --size 10TB --deadline +6h
      bwb transfer quote A B --size 10G --planner vbls,fbls --json
    """
    fields = {
        "deadline": deadline,
        "not_before": not_before,
        "rate_max_bps": rate_max,
        "rate_min_bps": rate_min,
        **_shape(paths, via, split, most_segments, shortest_segment, None),
    }
    request = _question(source, destination, size, size_of, duration, fields)
    with context.broker(state_dir, as_json) as broker:
        quotes = broker.quote(request, _planners(planner))
    _show_quotes(quotes, as_json, _as_table)


def _planners(given: str) -> list[str]:
    return ["*"] if given in ("all", "*") else given.split(",")


@transfer.command()
def change(
    transfer_id: Annotated[str, typer.Argument(metavar="ID")],
    size: Size = None,
    duration: HoldFor = None,
    deadline: Deadline = None,
    not_before: NotBefore = None,
    rate_max: RateMax = None,
    rate_min: RateMin = None,
    planner: Annotated[str | None, typer.Option(help="Plan what is left with this one.")] = None,
    priority: Annotated[int | None, typer.Option(help="Higher is more important, when capacity is lost.")] = None,
    paths: Paths = None,
    via: Via = None,
    split: Split = None,
    most_segments: MostSegments = None,
    shortest_segment: ShortestSegment = None,
    best_effort: BestEffort = None,
    label: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    project: Annotated[str | None, typer.Option(help="What it belongs to.")] = None,
    without: Annotated[list[Limit] | None, typer.Option(help="Take this limit away. Repeat for several.", metavar="NAME")] = None,
    preview: Preview = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Change what is asked. It is checked like a new booking; refused (exit status 1), the old booking stays as it is.

    \b
    Examples
      bwb transfer change tr_... --deadline +3h --preview
      bwb transfer change tr_... --size 2TB --rate-max 5G
      bwb transfer change tr_... --without deadline
    """
    fields = {
        "volume_bytes": size,
        "duration_s": _seconds(duration),
        "deadline": deadline,
        "not_before": not_before,
        "rate_max_bps": rate_max,
        "rate_min_bps": rate_min,
        "planner": planner,
        "priority": priority,
        "label": label,
        "project": project,
        **_shape(paths, via, split, most_segments, shortest_segment, best_effort),
    }
    given = {name: value for name, value in fields.items() if value is not None}
    given |= dict.fromkeys((_LIMITS[limit] for limit in without or ()), None)
    if not given:
        context.fail("say what to change; `bwb transfer change --help` lists what can be", context.MISUSED)
    with context.broker(state_dir, as_json) as broker:
        changed = broker.preview_change(transfer_id, given) if preview else broker.change(transfer_id, given)
    if as_json:
        context.show_json(changed)
    else:
        _show(changed)
        _remark_preview(preview)


def _remark_preview(preview: bool) -> None:
    if preview:
        context.remark("a preview: nothing was changed")


def _submit_file(file: Path, idempotency_key: str | None, watch: bool, state_dir: Path | None, as_json: bool, quiet: bool) -> None:
    content = context.stdin_or_file(file)
    with context.broker(state_dir, as_json) as broker:
        if isinstance(content, dict):
            _booked(broker, broker.submit(content, idempotency_key), watch, as_json, quiet)
            return
        if not isinstance(content, list) or not content:
            context.fail(f"{file}: want a request, or a list of requests", context.MISUSED)
        items = broker.submit_batch(content, idempotency_key)
        booked = [item["transfer"]["id"] for item in items if item["transfer"] is not None]
        if not watch or not booked:
            _show_batch(items, as_json)
        else:
            _show_batch(items, as_json=False)
            _watch(broker, booked, as_json)
        if len(booked) < len(items):
            raise typer.Exit(context.FAILED)


def _booked(broker: BrokerClient, made: Transfer, watch: bool, as_json: bool, quiet: bool = False) -> None:
    if quiet:
        typer.echo(made["id"])
    if watch:
        context.remark(f"{made['id']}: promised by {made['promised_finish']}")
        _watch(broker, [made["id"]], as_json)
    elif quiet:
        pass
    elif as_json:
        context.show_json(made)
    else:
        _show(made)


@transfer.command("list")
def list_transfers(
    state: Annotated[list[State] | None, typer.Option(help="Only those. Repeat for several.")] = None,
    project: str | None = None,
    node: Annotated[str | None, typer.Option(help="Source or destination.")] = None,
    search: Annotated[str | None, typer.Option(help="Part of label, project or id.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The newest so many.")] = 50,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Transfers, newest first.

    \b
    Examples
      bwb transfer list --state ACTIVE --state RESERVED
      bwb transfer list --project run7 --json
    """
    found: list[Transfer] = []
    with context.broker(state_dir, as_json) as broker:
        wanted = broker.transfers(
            page_size=min(limit, 1000), state=[str(s) for s in state or ()], project=project, node=node, search=search
        )
        for item in wanted:
            found.append(item)
            if len(found) == limit:
                break
    if as_json:
        context.show_json(found)
        return
    rows = context.table("Id", "State", "From", "To", "Size", "Done", "Promised", "Label", right=("Size", "Done"))
    for item in found:
        done = 1 if item["state"] == "FINISHED" else item["bytes_done"] / max(size_of(item), 1)
        rows.add_row(
            item["id"],
            context.state_text(item),
            item["source"],
            item["destination"],
            show_size(item["volume_bytes"]) if item["duration_s"] is None else show_duration(round(item["duration_s"] * US_PER_S)),
            f"{done:.0%}",
            show_time(item["promised_finish"]),
            Text(item["label"] or ""),
        )
    context.show_table(rows)


@transfer.command()
def show(
    transfer_id: Annotated[str, typer.Argument(metavar="ID")],
    history: Annotated[bool, typer.Option("--history", help="Also what happened to it.")] = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """One transfer: its state, what is booked for it, and why it waits."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.transfer(transfer_id)
        events = broker.history(transfer_id) if history else []
    if as_json:
        context.show_json({**found, "history": events} if history else found)
        return
    _show(found)
    for event in events:
        context.say(Text(f"{event['at']} {event['action']} by {event['actor']}"))


@transfer.command()
def watch(ids: Ids = None, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """Watch transfers until they have ended (without IDs: all that are alive now). Exit status 1 when one did not finish.

    Ctrl-C ends the watching, not the transfers. --json prints them once all have ended.
    """
    with context.broker(state_dir, as_json) as broker:
        wanted = ids or [item["id"] for item in broker.transfers(state=["HELD", "RESERVED", "ACTIVE"])]
        _watch(broker, wanted, as_json)


def _action(action: Action, about: str) -> None:
    """One command per action that the API has; they differ in their names, and a commit has nothing to preview."""

    def carry_out(ids: list[str], preview: bool, state_dir: Path | None, as_json: bool) -> None:
        changed: list[Transfer] = []
        with context.broker(state_dir, as_json) as broker:
            for transfer_id in ids:
                changed.append(broker.preview_act(transfer_id, action) if preview else broker.act(transfer_id, action))
                if not as_json:
                    context.say(Text(f"{transfer_id}: ").append(context.state_text(changed[-1])))
                    _show_freed(changed[-1])
        if as_json:
            context.show_json(changed[0] if len(ids) == 1 else changed)
        else:
            _remark_preview(preview)

    def command(
        ids: Annotated[list[str], typer.Argument(metavar="ID...")], state_dir: StateDir = None, as_json: AsJson = False
    ) -> None:
        carry_out(ids, False, state_dir, as_json)

    def with_preview(
        ids: Annotated[list[str], typer.Argument(metavar="ID...")],
        preview: Preview = False,
        state_dir: StateDir = None,
        as_json: AsJson = False,
    ) -> None:
        carry_out(ids, preview, state_dir, as_json)

    transfer.command(action, help=about)(command if action == "commit" else with_preview)


def _show_freed(changed: Transfer) -> None:
    for segment in cast(TransferPreview, changed).get("freed", ()):
        rate, path = show_rate(segment["rate_bps"]), " ".join(segment["path"])
        context.say(f"  would free {rate} on {path} from {segment['begin']} to {segment['end']}")


_action("cancel", "End transfers; what is still booked for them is free at once.")
_action("pause", "Send nothing until resumed; what is still booked goes back. The promise does not hold meanwhile.")
_action("resume", "Book the rest of paused transfers from now on. Refused when it does not fit.")
_action("commit", "Make reservations of held bookings.")


def _watch(broker: BrokerClient, ids: list[str], as_json: bool) -> None:
    """Until all have ended; raises typer.Exit unless all have finished."""
    found: dict[str, Transfer] = {}
    try:
        with Board(context.err if as_json else context.out) as board:
            while True:
                try:
                    for transfer_id in ids:
                        if transfer_id not in found or found[transfer_id]["state"] not in ENDED:
                            found[transfer_id] = broker.transfer(transfer_id)
                    board.notice("")
                except BrokerUnreachable as error:
                    if not found:
                        raise
                    board.notice(f"{error}; agents go on with what is booked, still trying (ctrl-C ends the watching)")
                board.show(list(found.values()))
                if len(found) == len(ids) and all(item["state"] in ENDED for item in found.values()):
                    break
                time.sleep(_POLL_S)
    except KeyboardInterrupt:
        alive = [item["id"] for item in found.values() if item["state"] not in ENDED] or ids
        context.remark(f"\nnot watching any more; the transfers go on: bwb transfer watch {' '.join(alive)}")
        raise typer.Exit(context.INTERRUPTED) from None
    if as_json:
        context.show_json(list(found.values()) if len(ids) != 1 else found[ids[0]])
    if any(item["state"] != "FINISHED" for item in found.values()):
        raise typer.Exit(context.FAILED)


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except ValueError as error:
        context.fail(f"--metadata is not JSON: {error}", context.MISUSED)
    if not isinstance(value, dict):
        context.fail('--metadata must be an object, such as {"run": 7}', context.MISUSED)
    return value


def _show(found: Transfer) -> None:
    reason = found["waiting_reason"]
    finish = found["actual_finish"]
    payload = found["payload"] or {}
    path = payload.get("path")
    volume, duration = found["volume_bytes"], found["duration_s"]
    limits = {"at most": found["rate_max_bps"], "at least": found["rate_min_bps"]}
    context.show_fields(
        {
            "transfer": found["id"],
            "label": found["label"],
            "project": found["project"],
            "state": context.state_text(found),
            "why": reason and f"{reason['code']}: {reason['detail']}" + (f" (until {reason['until']})" if reason["until"] else ""),
            "from": found["source"],
            "to": found["destination"],
            "file": path and path + (f" -> {payload['destination_path']}" if payload.get("destination_path") else ""),
            "mode": found["mode"],
            "size": None if volume is None else f"{show_size(volume)} ({volume} bytes)",
            "holds for": None if duration is None else show_duration(round(duration * US_PER_S)),
            "done": f"{found['bytes_done']} bytes" if found["bytes_done"] else None,
            "rate": ", ".join(f"{word} {show_rate(rate)}" for word, rate in limits.items() if rate) or None,
            "deadline": found["deadline"],
            "priority": f"{found['priority']}, best effort" if found["best_effort"] else found["priority"] or None,
            "promised": found["promised_finish"],
            "finished": finish and finish + against(finish, found["promised_finish"]),
            "checksum": found["checksum"],
            "hold until": found["hold_until"] if found["state"] == "HELD" else None,
        }
    )
    _show_plan(found["plan"])


def _show_plan(plan: Plan) -> None:
    rows = context.table("From", "To", "Rate", "Path", right=("Rate",))
    for segment in plan["segments"]:
        rows.add_row(segment["begin"], segment["end"], show_rate(segment["rate_bps"]), " ".join(segment["path"]))
    if plan["segments"]:
        context.show_table(rows)


def _show_quotes(quotes: list[Quote], as_json: bool, show_plans: Callable[[list[tuple[Quote, Plan]]], None]) -> None:
    if as_json:
        context.show_json({"quotes": quotes})
    else:
        if plans := [(quote, quote["plan"]) for quote in quotes if quote["plan"] is not None]:
            show_plans(plans)
        for quote in quotes:
            if quote["problem"] is not None:
                context.remark(f"{quote['planner']}: no", "bold")
                context.show_problem(quote["problem"])
    if not any(quote["admitted"] for quote in quotes):
        raise typer.Exit(context.FAILED)


def _as_lines(plans: list[tuple[Quote, Plan]]) -> None:
    for quote, plan in plans:
        mean = plan["metrics"]["mean_rate_bps"]
        rate = f", on average {show_rate(int(mean))}" if mean else ""
        context.say(f"{quote['planner']}: {plan['start']} - {plan['finish']}{rate}")


def _as_table(plans: list[tuple[Quote, Plan]]) -> None:
    rows = context.table("Planner", "Start", "Finish", "On average", "Segments", "Path", "", right=("On average", "Segments"))
    for quote, plan in plans:
        mean = plan["metrics"]["mean_rate_bps"]
        rows.add_row(
            quote["planner"],
            plan["start"],
            plan["finish"],
            show_rate(int(mean)) if mean else "-",
            str(len(plan["segments"])),
            " | ".join(" ".join(path) for path in plan["paths"]),
            "" if quote["books"] else "predicts only",
        )
    context.show_table(rows)


def _show_batch(items: list[BatchItem], as_json: bool) -> None:
    if as_json:
        context.show_json({"items": items})
        return
    for number, item in enumerate(items, 1):
        booked = item["transfer"]
        if booked is not None:
            context.remark(f"{number}: {name_of(booked)} {booked['id']}, promised by {booked['promised_finish']}")
        elif item["problem"] is not None:
            context.remark(f"{number}: refused")
            context.show_problem(item["problem"])
