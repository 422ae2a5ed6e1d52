# SPDX-License-Identifier: Apache-2.0
"""`bwb link`: the network, its free capacity over time, and maintenance windows."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from broker.cli import context
from broker.cli.context import AsJson, StateDir
from broker.cli.link import plot
from broker.cli.link.import_network import import_links
from broker.cli.link.options import Available, Capacity, Channel, Metric, Mtu, Preview, Replan, Slot, pick_given
from broker.cli.link.show import capacity as show_capacity
from broker.cli.link.show import show_change, show_link, show_settled
from broker.cli.quantities import RATE, WHEN, show_rate

link = context.command_group("Links: directed, with a capacity that may change over time.")


class Kind(StrEnum):
    """The reason for a window."""

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
        one = pick_given(capacity, mtu, channel, slot, metric, available) | {"id": link_id, "source": source, "target": target}
        wanted = [one, one | {"id": f"{link_id}~back", "source": target, "target": source}] if both else [one]
    made = []
    with context.broker(state_dir, as_json) as broker:
        for item in wanted:
            made.append(broker.create_link(item))
            if not as_json:
                context.say(f"{made[-1]['id']}: {made[-1]['source']} -> {made[-1]['target']}, {show_capacity(made[-1])}")
    if as_json:
        context.show_json(made if file is not None or both else made[0])


link.command("import")(import_links)


@link.command("list")
def list_links(state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """All links, including hosts' NICs."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.links()
    if as_json:
        context.show_json(found)
        return
    rows = context.table("Link", "From", "To", "Capacity", "Windows", "Bookings", "Host", right=("Capacity", "Windows", "Bookings"))
    for item in found:
        windows = str(len(item["windows"]) or "-")
        rows.add_row(
            item["id"], item["source"], item["target"], show_capacity(item), windows, str(item["version"]), item["host"] or "-"
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
        show_link(found)


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
    """Change a link. Less capacity than booked is refused, with the promises that would break; --replan overrides this.

    \b
    Examples
      bwb link change L1 --capacity 40G --preview
      bwb link change L1 --available now=8G --available +6h=10G --replan
    """
    fields = pick_given(capacity, mtu, channel, slot, metric, available) | ({"available": []} if steady else {})
    if not fields:
        context.fail("give at least one thing to change", context.MISUSED)
    with context.broker(state_dir, as_json) as broker:
        changed = broker.change_link(link_id, fields | {"on_broken": "replan" if replan else "refuse"}, preview=preview)
    show_change(changed, as_json)


@link.command()
def delete(
    link_id: str,
    replan: Replan = False,
    preview: Preview = False,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Remove a link. If transfers are booked on it this is refused; with --replan they take other paths."""
    with context.broker(state_dir, as_json) as broker:
        done = broker.delete_link(link_id, on_broken="replan" if replan else "refuse", preview=preview)
    if as_json:
        context.show_json(done or {"id": link_id, "deleted": True})
        return
    if done is not None:
        show_settled(done)
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
    """Plot the booked and the free rate of a link.

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
    """Limit a link to --rate for some time: maintenance, an outage, background traffic.

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
    show_change(changed, as_json)


def _links_of(file: Path) -> list[dict[str, Any]]:
    document = context.stdin_or_file(file)
    links = document.get("links") if isinstance(document, dict) else None
    if not isinstance(links, list) or not all(isinstance(item, dict) for item in links):
        context.fail(f'{file}: want {{"links": [...]}}, as `bwb plan` reads it', context.MISUSED)
    # null means "not given" in NET.json; in the API the field is left out
    return [{name: value for name, value in item.items() if value is not None} for item in links]
