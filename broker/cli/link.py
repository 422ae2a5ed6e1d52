# SPDX-License-Identifier: Apache-2.0
"""`bwb link`: the network, what is free of it when, and maintenance windows."""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from broker.cli import context, plot, topologies
from broker.cli.context import AsJson, StateDir
from broker.cli.network_file import BadFile, read_network
from broker.cli.quantities import DURATION, RATE, STEP, WHEN, show_rate
from broker.client import ProblemError
from broker.client.documents import Link, LinkChange, Settled, TopologyChange
from broker.core.link_document import document_of
from broker.core.network import Link as NetworkLink

link = context.command_group("Links: directed, with a capacity that may change over time.")

Replan = Annotated[
    bool,
    typer.Option("--replan", help="Go on although promises break: transfers in the way are planned anew. Default: refuse."),
]
Preview = Annotated[
    bool, typer.Option("--preview", help="Change nothing; show what would become of the transfers that lose their place.")
]
Capacity = Annotated[int | None, typer.Option(parser=RATE, metavar="RATE", help="10G, 800M (bit/s).")]
Mtu = Annotated[int | None, typer.Option(help="Given: the capacity is the line rate, and the payload share of it is booked.")]
Channel = Annotated[int | None, typer.Option(parser=RATE, metavar="RATE", help="Rates are whole multiples of it.")]
Slot = Annotated[
    int | None, typer.Option(parser=DURATION, metavar="TIME", help="Booked times are whole multiples of it: 1s, 100ms.")
]
Metric = Annotated[int | None, typer.Option(help="Of several paths the one with the least sum is taken.")]
Available = Annotated[
    list[Any] | None,
    typer.Option(parser=STEP, metavar="TIME=RATE", help="From TIME on, RATE may be used: +10min=200M. Repeat, in order of time."),
]


class Kind(StrEnum):
    maintenance = "maintenance"
    outage = "outage"
    background = "background"


@link.command()
def create(
    link_id: Annotated[str | None, typer.Argument(metavar="ID")] = None,
    source: Annotated[str | None, typer.Argument(help="Node that it leaves.")] = None,
    target: Annotated[str | None, typer.Argument(help="Node that it leads to.")] = None,
    capacity: Capacity = None,
    both: Annotated[bool, typer.Option("--both", help="Also the way back, as ID~back.")] = False,
    mtu: Mtu = None,
    channel: Channel = None,
    slot: Slot = None,
    metric: Metric = None,
    available: Available = None,
    file: Annotated[
        Path | None, typer.Option(help="All links of a NET.json (as `bwb plan` reads it); - for standard input.")
    ] = None,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Add a link, or all links of a file.

    \b
    Examples
      bwb link create L1 A B --capacity 10G
      bwb link create L1 A B --capacity 10G --both --mtu 9000
      bwb link create L2 A C --capacity 10G --available +1h=2G --available +2h=10G
      bwb link create --file NET.json
    """
    if file is not None:
        if link_id is not None:
            context.fail("give a link or --file, not both", context.MISUSED)
        wanted = _links_of(file)
    else:
        if link_id is None or source is None or target is None or capacity is None:
            context.fail("give ID SOURCE TARGET and --capacity, or --file NET.json", context.MISUSED)
        one = _given(capacity, mtu, channel, slot, metric, available) | {"id": link_id, "source": source, "target": target}
        wanted = [one, one | {"id": f"{link_id}~back", "source": target, "target": source}] if both else [one]
    made = []
    with context.broker(state_dir, as_json) as broker:
        for item in wanted:
            made.append(broker.create_link(item))
            if not as_json:
                context.say(f"{made[-1]['id']}: {made[-1]['source']} -> {made[-1]['target']}, {_capacity(made[-1])}")
    if as_json:
        context.show_json(made if file is not None or both else made[0])


@link.command("import")
def import_links(
    network: Annotated[
        str | None,
        typer.Argument(
            help="NET.json, as `bwb plan` reads it; - for standard input; or a name of topohub, as in sndlib/germany50."
        ),
    ] = None,
    capacity: Capacity = None,
    mtu: Mtu = None,
    channel: Channel = None,
    slot: Slot = None,
    metric: Annotated[int | None, typer.Option(help="Of a topohub network: the same for all links. Default: the distance.")] = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Delete the links that are not in it. Default: other links stay. NICs of hosts always stay."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and which promises would break.")] = False,
    replan: Replan = False,
    show_names: Annotated[
        bool, typer.Option("--list", help="Show the names of topohub instead; with an argument, those that contain it.")
    ] = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Bring in a whole network, or bring the present one up to date: all of it in one step, or nothing.

    Links are known by their id: those that are new are created, those that differ are changed, those that are equal are left alone.
    Networks of topohub come without capacities; give one for all links. Each adjacency becomes two directed links.

    \b
    Examples
      bwb link import NET.json --dry-run
      bwb link import NET.json --prune --replan
      bwb link import sndlib/germany50 --capacity 100G --mtu 9000
      bwb link import --list germany
    """
    if show_names:
        _show_names(network or "", as_json)
        return
    if network is None:
        context.fail("give NET.json, -, or a name that `bwb link import --list` shows", context.MISUSED)
    common = _given(capacity, mtu, channel, slot, metric, None)
    if network == "-" or Path(network).exists() or network.endswith(".json"):
        if common:
            context.fail(f"{network} says what its links are; {_options(common)} is for networks of topohub", context.MISUSED)
        wanted = _read_links(Path(network))
    else:
        wanted = _topohub_links(network, common)
    body = [document_of(item) for item in wanted]
    on_broken = "replan" if replan else "refuse"
    with context.broker(state_dir, as_json) as broker:
        try:
            with context.err.status(f"{'comparing' if dry_run else 'importing'} {len(body)} links"):
                done = broker.put_topology(body, prune=prune, on_broken=on_broken, preview=dry_run)
        except ProblemError as problem:
            _blame_file(network, problem, as_json)
            raise
    if as_json:
        context.show_json(done)
    else:
        _show_topology_change(done, dry_run)


@link.command("list")
def list_links(state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """All links; hosts' NICs are links, too."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.links()
    if as_json:
        context.show_json(found)
        return
    rows = context.table("Link", "From", "To", "Capacity", "Windows", "Bookings", "Host", right=("Capacity", "Windows", "Bookings"))
    for item in found:
        windows = str(len(item["windows"]) or "-")
        rows.add_row(
            item["id"], item["source"], item["target"], _capacity(item), windows, str(item["version"]), item["host"] or "-"
        )
    context.show_table(rows)


@link.command()
def show(link_id: str, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """One link, with its capacity steps and windows."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.link(link_id)
    if as_json:
        context.show_json(found)
    else:
        _show_link(found)


@link.command()
def change(
    link_id: str,
    capacity: Capacity = None,
    mtu: Mtu = None,
    channel: Channel = None,
    slot: Slot = None,
    metric: Metric = None,
    available: Available = None,
    steady: Annotated[bool, typer.Option("--steady", help="Forget the steps of --available: the capacity is what it is.")] = False,
    replan: Replan = False,
    preview: Preview = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Change a link. Lowering it under what is booked is refused, with the promises that would break; --replan goes on.

    \b
    Examples
      bwb link change L1 --capacity 40G --preview
      bwb link change L1 --available now=8G --available +6h=10G --replan
    """
    fields = _given(capacity, mtu, channel, slot, metric, available) | ({"available": []} if steady else {})
    if not fields:
        context.fail("give at least one thing to change", context.MISUSED)
    with context.broker(state_dir, as_json) as broker:
        changed = broker.change_link(link_id, fields | {"on_broken": "replan" if replan else "refuse"}, preview=preview)
    _show_change(changed, as_json)


@link.command()
def delete(
    link_id: str,
    replan: Replan = False,
    preview: Preview = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Remove a link. Where transfers are booked on it that is refused; with --replan they take other paths."""
    with context.broker(state_dir, as_json) as broker:
        done = broker.delete_link(link_id, on_broken="replan" if replan else "refuse", preview=preview)
    if as_json:
        context.show_json(done or {"id": link_id, "deleted": True})
        return
    if done is not None:
        _show_settled(done)
    if not preview:
        context.say(f"{link_id} is deleted")


@link.command()
def calendar(
    link_id: str,
    begin: Annotated[str, typer.Option("--from", parser=WHEN, metavar="WHEN", help="RFC 3339, now, or from now: +10min.")] = "now",
    end: Annotated[str, typer.Option("--to", parser=WHEN, metavar="WHEN", help="As --from.")] = "+1h",
    steps: Annotated[bool, typer.Option("--steps", help="Also the figures.")] = False,
    points: Annotated[int, typer.Option(min=2, max=100_000, help="More steps than this are thinned out, keeping peaks.")] = 2000,
    reverse: Annotated[
        bool, typer.Option("--reverse", help="With --steps: also what is booked on the way back, which acknowledgements share.")
    ] = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Plot what is booked and what is free on a link.

    \b
    Examples
      bwb link calendar L1
      bwb link calendar L1 --from 2026-12-01T00:00:00Z --to 2026-12-02T00:00:00Z --steps
    """
    with context.broker(state_dir, as_json) as broker:
        found = broker.calendar(link_id, begin, end, points, reverse)
    if as_json:
        context.show_json(found)
        return
    context.say(plot.calendar(found, context.out.width))
    if steps:
        columns = {"Capacity": "capacity_bps", "Booked": "booked_bps", "Free": "free_bps"}
        if reverse:
            columns["Booked on the way back"] = "reverse_booked_bps"
        rows = context.table("From", *columns, right=tuple(columns))
        for step in found["steps"]:
            figures: Mapping[str, Any] = step
            rows.add_row(step["begin"], *(show_rate(figures[name]) for name in columns.values()))
        context.show_table(rows)
        if found["decimated"]:
            context.say(f"thinned out to {len(found['steps'])} steps; --points gives more")


@link.command()
def window(
    link_id: str,
    begin: Annotated[str, typer.Option("--from", parser=WHEN, metavar="WHEN", help="RFC 3339, now, or from now: +10min.")] = "now",
    end: Annotated[str | None, typer.Option("--to", parser=WHEN, metavar="WHEN", help="As --from.")] = None,
    rate: Annotated[int, typer.Option(parser=RATE, metavar="RATE", help="What may be used meanwhile.")] = 0,
    kind: Kind = Kind.maintenance,
    reason: Annotated[str | None, typer.Option(help="For those who read the audit log.")] = None,
    remove: Annotated[str | None, typer.Option(metavar="WINDOW", help="Take this window away instead.")] = None,
    replan: Replan = False,
    preview: Preview = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """For a while, no more than --rate of a link may be used: maintenance, an outage, background traffic.

    \b
    Examples
      bwb link window L1 --from +2h --to +4h --reason "line card"
      bwb link window L1 --to +1h --rate 2G --kind background --replan
      bwb link window L1 --to +2h --kind outage --preview
      bwb link window L1 --remove win_01jd...
    """
    if (end is None) == (remove is None):
        context.fail("give --to for a new window, or --remove", context.MISUSED)
    with context.broker(state_dir, as_json) as broker:
        if remove is not None:
            changed = broker.remove_window(link_id, remove, preview=preview)
        else:
            body = {"begin": begin, "end": end, "bps": rate, "kind": str(kind), "reason": reason}
            changed = broker.add_window(link_id, body | {"on_broken": "replan" if replan else "refuse"}, preview=preview)
    _show_change(changed, as_json)


def _given(
    capacity: int | None, mtu: int | None, channel: int | None, slot: int | None, metric: int | None, available: list[Any] | None
) -> dict[str, Any]:
    fields = {"capacity_bps": capacity, "mtu_bytes": mtu, "channel_bps": channel, "slot_us": slot, "metric": metric}
    return {name: value for name, value in (fields | {"available": available or None}).items() if value is not None}


def _links_of(file: Path) -> list[dict[str, Any]]:
    document = context.stdin_or_file(file)
    links = document.get("links") if isinstance(document, dict) else None
    if not isinstance(links, list) or not all(isinstance(item, dict) for item in links):
        context.fail(f'{file}: want {{"links": [...]}}, as `bwb plan` reads it', context.MISUSED)
    # null means "not given" in NET.json; the API says so by leaving it out
    return [{name: value for name, value in item.items() if value is not None} for item in links]


def _read_links(file: Path) -> list[NetworkLink]:
    try:
        found = read_network(file)
    except BadFile as bad:
        context.fail(str(bad), context.MISUSED)
    if found.ignored:
        context.remark(f"{file}: ignored: {', '.join(found.ignored)}", "yellow")
    return list(found.network.links.values())


def _topohub_links(name: str, common: dict[str, Any]) -> list[NetworkLink]:
    try:
        if "capacity_bps" not in common and topologies.names(name):
            context.fail(f"{name} says nothing of capacities: give one for all links, as in --capacity 100G", context.MISUSED)
        made = topologies.links(name, topologies.Equal(**({"capacity_bps": 1} | common)))
    except topologies.UnknownTopology as unknown:
        context.fail(str(unknown), context.MISUSED)
    for problem in made[0].problems():
        context.fail(f"{_options({problem.field: 0})}: {problem.detail}", context.MISUSED)
    return made


def _options(fields: Mapping[str, Any]) -> str:
    """Names of the command's options, for fields of the API."""
    return ", ".join("--" + name.removesuffix("_bps").removesuffix("_bytes").removesuffix("_us") for name in fields)


def _show_names(search: str, as_json: bool) -> None:
    found = topologies.names(search)
    if as_json:
        context.show_json(found)
        return
    if not found:
        context.fail(f"no network of topohub has {search!r} in its name", context.FAILED)
    for name in found:
        context.say(name)


def _blame_file(network: str, problem: ProblemError, as_json: bool) -> None:
    """What the broker says of links.3.metric, in terms of the file."""
    errors = problem.document.get("errors") or []
    ours = [error for error in errors if str(error.get("field", "")).startswith("links.")]
    if ours and not as_json:
        lines = (f"{network}: {_place(str(error['field']))}: {error['detail']}" for error in ours)
        context.fail("\n".join(lines), context.FAILED)


def _place(field: str) -> str:
    """links.3.available.0.bps -> links[3].available[0].bps, as `bwb plan` writes it."""
    return re.sub(r"\.(\d+)", r"[\1]", field)


_MOST_SHOWN = 20


def _show_topology_change(done: TopologyChange, dry_run: bool) -> None:
    for sign, style, ids in (("+", "green", done["created"]), ("~", "yellow", done["changed"]), ("-", "red", done["deleted"])):
        for link_id in ids[:_MOST_SHOWN]:
            context.say(f"{sign} {link_id}", style)
        if len(ids) > _MOST_SHOWN:
            context.say(f"{sign} ... and {len(ids) - _MOST_SHOWN} more", style)
    counts = ", ".join(f"{len(ids)} {what}" for what, ids in (
        ("created", done["created"]), ("changed", done["changed"]), ("deleted", done["deleted"])))  # fmt: skip
    context.say(f"{'would be' if dry_run else 'links'}: {counts}; {done['unchanged']} unchanged")
    if done["cut_off"]:
        context.say(f"hosts that nothing leads to: {', '.join(done['cut_off'])}", "yellow")
    _show_settled(done)


def _capacity(found: Link) -> str:
    return show_rate(found["capacity_bps"]) + ("*" if found["available"] else "")


def _show_link(found: Link) -> None:
    context.show_fields(
        {
            "link": found["id"],
            "from": found["source"],
            "to": found["target"],
            "capacity": show_rate(found["capacity_bps"]),
            "mtu": found["mtu_bytes"],
            "channel": None if found["channel_bps"] is None else show_rate(found["channel_bps"]),
            "slot": None if found["slot_us"] == 1 else f"{found['slot_us']} µs",
            "metric": found["metric"],
            "way back": found["reverse"],
            "NIC of host": found["host"],
            "revision": found["revision"],
        }
    )
    for step in found["available"]:
        context.say(f"from {step['from']}: {show_rate(step['bps'])}")
    for item in found["windows"]:
        reason = f": {item['reason']}" if item["reason"] else ""
        line = f"{item['kind']} {item['id']} {item['begin']} - {item['end']}: {show_rate(item['bps'])}{reason}"
        context.say(line)


def _show_change(changed: LinkChange, as_json: bool) -> None:
    if as_json:
        context.show_json(changed)
        return
    _show_link(changed)
    _show_settled(changed)


def _show_settled(done: Settled) -> None:
    """Who lost the place, and what became, or would become, of each."""
    for title, style, ids in (("planned anew", "", done["replanned"]), ("promises broken", "bold red", done["broken"])):
        if ids:
            more = f" and {len(ids) - _MOST_SHOWN} more" if len(ids) > _MOST_SHOWN else ""
            context.say(f"{title}: {', '.join(ids[:_MOST_SHOWN])}{more}", style)
    for outcome in done["outcomes"][:_MOST_SHOWN]:
        name = outcome["id"] + (f" ({outcome['label']})" if outcome["label"] else "")
        if outcome["finish"] is None:
            reason = outcome["reason"]["detail"] if outcome["reason"] else outcome["state"]
            context.say(f"  {name}: lost: {reason}", "red")
        elif outcome["broken"]:
            context.say(f"  {name}: done by {outcome['finish']} instead of {outcome['promised_finish']}", "yellow")
        else:
            context.say(f"  {name}: done by {outcome['finish']}, as promised")
    if done["preview"]:
        context.say("a preview: nothing was changed")
