# SPDX-License-Identifier: Apache-2.0
"""`bwb transfer`: request, show and control transfers."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from broker.cli import context
from broker.cli.context import AsJson, StateDir
from broker.cli.progress import size_of
from broker.cli.quantities import show_duration, show_size, show_time
from broker.cli.transfer.ask import change, quote_command, remark_preview, submit
from broker.cli.transfer.options import Ids, Preview, State
from broker.cli.transfer.show import show_effects, show_transfer
from broker.cli.transfer.watch import watch_all
from broker.client.documents import Transfer
from broker.client.transfers import Action
from broker.core.units import US_PER_S

transfer = context.command_group("Bulk transfers: each has a booked rate and a promised finish.")

transfer.command()(submit)
transfer.command("quote")(quote_command)
transfer.command()(change)


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
    """One transfer: its state, its booking, and why it waits."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.transfer(transfer_id)
        events = broker.history(transfer_id) if history else []
    if as_json:
        context.show_json({**found, "history": events} if history else found)
        return
    show_transfer(found)
    for event in events:
        context.say(Text(f"{event['at']} {event['action']} by {event['actor']}"))


@transfer.command()
def watch(ids: Ids = None, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """Watch transfers until they have ended (without IDs: all live ones). Exit status 1 if one did not finish.

    Ctrl-C ends the watching, not the transfers. --json prints them once all have ended.
    """
    with context.broker(state_dir, as_json) as broker:
        wanted = ids or [item["id"] for item in broker.transfers(state=["HELD", "RESERVED", "ACTIVE"])]
        watch_all(broker, wanted, as_json)


def _action(action: Action, about: str) -> None:
    """Add the command of an action of the API; the commands differ in their names, and a commit has no preview."""

    def carry_out(ids: list[str], preview: bool, state_dir: Path | None, as_json: bool) -> None:
        changed: list[Transfer] = []
        with context.broker(state_dir, as_json) as broker:
            for transfer_id in ids:
                changed.append(broker.preview_act(transfer_id, action) if preview else broker.act(transfer_id, action))
                if not as_json:
                    context.say(Text(f"{transfer_id}: ").append(context.state_text(changed[-1])))
                    show_effects(changed[-1])
        if as_json:
            context.show_json(changed[0] if len(ids) == 1 else changed)
        else:
            remark_preview(preview)

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


_action("cancel", "End transfers; what is still booked for them is free at once.")
_action("pause", "Send nothing until resumed; what is still booked goes back. The promise does not hold meanwhile.")
_action("resume", "Book the rest of paused transfers from now on. Refused when it does not fit.")
_action("commit", "Make reservations of held bookings.")
