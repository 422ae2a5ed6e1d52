# SPDX-License-Identifier: Apache-2.0
"""`bwb link import`: a whole network at once, from NET.json or from topohub."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from broker.cli import context
from broker.cli.context import AsJson, StateDir
from broker.cli.link import topologies
from broker.cli.link.options import Capacity, Channel, Mtu, Replan, Slot, pick_given
from broker.cli.link.show import MAX_SHOWN, show_settled
from broker.cli.network_file import BadFile, read_network
from broker.client import ProblemError
from broker.client.documents import TopologyChange
from broker.core.link_document import document_of
from broker.core.network import Link


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
    """Import a whole network, or update the present one: all of it in one step, or nothing.

    Links are matched by id: new ones are created, different ones changed, equal ones left unchanged. Networks of topohub come
    without capacities; give one for all links. Each adjacency becomes two directed links.

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
    common = pick_given(capacity, mtu, channel, slot, metric, None)
    if network == "-" or Path(network).exists() or network.endswith(".json"):
        if common:
            context.fail(f"{network} says what its links are; {_options(common)} is for networks of topohub", context.MISUSED)
        wanted, places = _read_links(Path(network))
    else:
        wanted, places = _topohub_links(network, common), topologies.places(network)
    body = [document_of(item) for item in wanted]
    on_broken = "replan" if replan else "refuse"
    with context.broker(state_dir, as_json) as broker:
        try:
            with context.err.status(f"{'comparing' if dry_run else 'importing'} {len(body)} links"):
                done = broker.put_topology(body, nodes=places or None, prune=prune, on_broken=on_broken, preview=dry_run)
        except ProblemError as problem:
            _blame_file(network, problem, as_json)
            raise
    if as_json:
        context.show_json(done)
    else:
        _show_topology_change(done, dry_run)


def _read_links(file: Path) -> tuple[list[Link], Sequence[dict[str, Any]]]:
    """The links of a file, and the nodes that it describes."""
    try:
        found = read_network(file)
    except BadFile as bad:
        context.fail(str(bad), context.MISUSED)
    if found.ignored:
        context.remark(f"{file}: ignored: {', '.join(found.ignored)}", "yellow")
    return list(found.network.links.values()), found.nodes


def _topohub_links(name: str, common: dict[str, Any]) -> list[Link]:
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
    """The names of the command's options for fields of the API."""
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
    """Report a problem of the broker, such as links.3.metric, by its place in the file."""
    errors = problem.document.get("errors") or []
    ours = [error for error in errors if str(error.get("field", "")).startswith("links.")]
    if ours and not as_json:
        lines = (f"{network}: {_place(str(error['field']))}: {error['detail']}" for error in ours)
        context.fail("\n".join(lines), context.FAILED)


def _place(field: str) -> str:
    """links.3.available.0.bps -> links[3].available[0].bps, as `bwb plan` writes it."""
    return re.sub(r"\.(\d+)", r"[\1]", field)


def _show_topology_change(done: TopologyChange, dry_run: bool) -> None:
    for sign, style, ids in (("+", "green", done["created"]), ("~", "yellow", done["changed"]), ("-", "red", done["deleted"])):
        for link_id in ids[:MAX_SHOWN]:
            context.say(f"{sign} {link_id}", style)
        if len(ids) > MAX_SHOWN:
            context.say(f"{sign} ... and {len(ids) - MAX_SHOWN} more", style)
    counts = ", ".join(f"{len(ids)} {what}" for what, ids in (
        ("created", done["created"]), ("changed", done["changed"]), ("deleted", done["deleted"])))  # fmt: skip
    context.say(f"{'would be' if dry_run else 'links'}: {counts}; {done['unchanged']} unchanged")
    if done["cut_off"]:
        context.say(f"hosts that nothing leads to: {', '.join(done['cut_off'])}", "yellow")
    show_settled(done)
