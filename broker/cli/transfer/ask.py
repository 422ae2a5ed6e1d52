# SPDX-License-Identifier: Apache-2.0
"""`bwb transfer submit|quote|change`: requests to the broker."""

from pathlib import Path
from typing import Annotated

import typer

from broker.cli import context
from broker.cli.context import AsJson, StateDir
from broker.cli.transfer.options import (
    LIMITS,
    After,
    BestEffort,
    Deadline,
    From,
    HoldFor,
    HostsUpFrom,
    Limit,
    Mode,
    MostSegments,
    NotBefore,
    OnOverrun,
    OnTimeout,
    Paths,
    Preview,
    Priority,
    RateMax,
    RateMin,
    ShortestSegment,
    SignalKind,
    SignalTimeout,
    Size,
    SizeOf,
    Split,
    To,
    Via,
    json_object,
    planners,
    question,
    seconds,
    shape,
    start_signal,
)
from broker.cli.transfer.show import as_lines, as_table, show_batch, show_effects, show_quotes, show_transfer
from broker.cli.transfer.watch import watch_all
from broker.client import BrokerClient
from broker.client.documents import Transfer
from broker.core.request import DEFAULT_PLANNER


def submit(
    source: From = None,
    destination: To = None,
    size: Size = None,
    size_of: SizeOf = None,
    duration: HoldFor = None,
    deadline: Deadline = None,
    not_before: NotBefore = None,
    hosts_up_from: HostsUpFrom = None,
    rate_max: RateMax = None,
    rate_min: RateMin = None,
    planner: Annotated[
        str,
        typer.Option(
            help="vbls: whatever is free, the earliest finish. fbls: one fixed rate. `bwb transfer quote` compares them all."
        ),
    ] = DEFAULT_PLANNER,
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
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Compare the SHA-256 of both ends; hashing can cost more than sending.")
    ] = True,
    mode: Annotated[
        Mode | None, typer.Option(help="managed: agents move the file. reserve: booked only. Default: managed with --path.")
    ] = None,
    after: After = None,
    signal: SignalKind = None,
    signal_timeout: SignalTimeout = None,
    on_timeout: OnTimeout = None,
    on_overrun: OnOverrun = None,
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
    """Book a transfer. Exit status 1 if it is refused: the answer gives the reason and counter-offers.

    \b
    Examples
      bwb transfer submit A B --size 10G
      bwb transfer submit A B --size 1.5TB --deadline +6h --rate-max 5G
      bwb transfer submit A B --duration 2h --rate-min 1G
      bwb transfer submit A B --size 10TB --split --paths 8
      bwb transfer submit dtn-a dtn-b --path run7/x.h5 --size 64GiB --watch
      bwb transfer submit dtn-c dtn-b --path run7/y.h5 --size 64GiB --after tr_...
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
        "hosts_up_from": hosts_up_from,
        "rate_max_bps": rate_max,
        "rate_min_bps": rate_min,
        "priority": priority,
        "mode": mode and str(mode),
        "payload": None if path is None else {"path": path, "destination_path": to_path, "overwrite": overwrite, "verify": verify},
        "label": label,
        "project": project,
        "metadata": json_object(metadata),
        "preempt": preempt or None,
        "after": after,
        "signal": start_signal(signal, signal_timeout, on_timeout, on_overrun),
        **shape(paths, via, split, most_segments, shortest_segment, best_effort),
    }
    request = question(source, destination, size, size_of, duration, fields)
    with context.broker(state_dir, as_json) as broker:
        if quote:
            show_quotes(broker.quote(request, planners(planner)), as_json, as_lines)
        else:
            made = broker.submit(request | {"planner": planner, "hold": hold}, idempotency_key)
            _booked(broker, made, watch, as_json, quiet)


def quote_command(
    source: From = None,
    destination: To = None,
    size: Size = None,
    size_of: SizeOf = None,
    duration: HoldFor = None,
    deadline: Deadline = None,
    not_before: NotBefore = None,
    hosts_up_from: HostsUpFrom = None,
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
    """The plan that each planner would book now, side by side. Nothing is booked or reserved.

    \b
    Examples
      bwb transfer quote A B --size 10TB --deadline +6h
      bwb transfer quote A B --size 10G --planner vbls,fbls --json
    """
    fields = {
        "deadline": deadline,
        "not_before": not_before,
        "hosts_up_from": hosts_up_from,
        "rate_max_bps": rate_max,
        "rate_min_bps": rate_min,
        **shape(paths, via, split, most_segments, shortest_segment, None),
    }
    request = question(source, destination, size, size_of, duration, fields)
    with context.broker(state_dir, as_json) as broker:
        quotes = broker.quote(request, planners(planner))
    show_quotes(quotes, as_json, as_table)


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
    """Change a transfer's request. It is checked like a new booking; if refused (exit status 1), the old booking stays unchanged.

    \b
    Examples
      bwb transfer change tr_... --deadline +3h --preview
      bwb transfer change tr_... --size 2TB --rate-max 5G
      bwb transfer change tr_... --without deadline
    """
    fields = {
        "volume_bytes": size,
        "duration_s": seconds(duration),
        "deadline": deadline,
        "not_before": not_before,
        "rate_max_bps": rate_max,
        "rate_min_bps": rate_min,
        "planner": planner,
        "priority": priority,
        "label": label,
        "project": project,
        **shape(paths, via, split, most_segments, shortest_segment, best_effort),
    }
    given = {name: value for name, value in fields.items() if value is not None}
    given |= dict.fromkeys((LIMITS[limit] for limit in without or ()), None)
    if not given:
        context.fail("say what to change; `bwb transfer change --help` lists what can be", context.MISUSED)
    with context.broker(state_dir, as_json) as broker:
        changed = broker.preview_change(transfer_id, given) if preview else broker.change(transfer_id, given)
    if as_json:
        context.show_json(changed)
    else:
        show_transfer(changed)
        show_effects(changed)
        remark_preview(preview)


def remark_preview(preview: bool) -> None:
    """Remark that nothing was changed, if it was a preview."""
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
            show_batch(items, as_json)
        else:
            show_batch(items, as_json=False)
            watch_all(broker, booked, as_json)
        if len(booked) < len(items):
            raise typer.Exit(context.FAILED)


def _booked(broker: BrokerClient, made: Transfer, watch: bool, as_json: bool, quiet: bool = False) -> None:
    if quiet:
        typer.echo(made["id"])
    if watch:
        context.remark(f"{made['id']}: promised by {made['promised_finish']}")
        watch_all(broker, [made["id"]], as_json)
    elif quiet:
        pass
    elif as_json:
        context.show_json(made)
    else:
        show_transfer(made)
