# SPDX-License-Identifier: Apache-2.0
"""`bwb token`: who may do what."""

from enum import StrEnum
from typing import Annotated

import typer

from broker.cli import context
from broker.cli.context import AsJson, StateDir
from broker.cli.quantities import WHEN, show_time

token = context.command_group("Tokens for people and programs. Hosts get theirs by `bwb host enrol`.")


class Scope(StrEnum):
    read = "read"
    submit = "submit"
    operate = "operate"
    admin = "admin"


@token.command()
def create(
    name: Annotated[str, typer.Argument(help="Who or what will use it.")],
    scope: Annotated[
        list[Scope],
        typer.Option(
            "--scope",
            "-s",
            help="read: look. submit: book transfers. operate: links, hosts, everybody's transfers. admin: tokens. Repeat for several.",
        ),
    ],
    expires: Annotated[
        str | None, typer.Option(parser=WHEN, metavar="WHEN", help="RFC 3339 or from now, as +30d. Default: never.")
    ] = None,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. The secret goes to standard output, once; the broker keeps only its hash.

    \b
    Examples
      bwb token create workflows -s read -s submit --expires +30d > wf.token
      export BWB_URL=https://broker:7410 BWB_TOKEN=$(cat wf.token)
    """
    with context.broker(state_dir, as_json) as broker:
        made = broker.create_token(name, [str(item) for item in scope], expires)
    if as_json:
        context.show_json(made)
        return
    until = f"until {made['expires']}" if made["expires"] else "without an end"
    context.remark(f"{made['id']} ({', '.join(made['scopes'])}), {until}; the secret is shown only now:")
    typer.echo(made["token"])


@token.command("list")
def list_tokens(state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """All tokens, without their secrets."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.tokens()
    if as_json:
        context.show_json(found)
        return
    rows = context.table("Id", "Name", "Scopes", "Created", "Last used", "Valid until")
    for item in found:
        until = f"revoked {show_time(item['revoked'])}" if item["revoked"] else show_time(item["expires"])
        created, used = show_time(item["created"]), show_time(item["last_used"])
        rows.add_row(item["id"], item["name"], " ".join(item["scopes"]), created, used, until)
    context.show_table(rows)


@token.command()
def revoke(token_id: str, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """End a token. What was booked with it stays booked.

    \b
    Example
      bwb token revoke tok_01jd...
    """
    with context.broker(state_dir, as_json) as broker:
        broker.revoke_token(token_id)
    if as_json:
        context.show_json({"id": token_id, "revoked": True})
    else:
        context.say(f"{token_id} is revoked")
