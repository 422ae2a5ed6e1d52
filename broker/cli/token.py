# SPDX-License-Identifier: Apache-2.0
"""`bwb token`: tokens, their scopes and limits."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from broker.cli import context
from broker.cli.context import AsJson, StateDir
from broker.cli.quantities import DURATION, WHEN, show_duration, show_time
from broker.client.documents import Limit, TokenInUse
from broker.core.allowance import LIMITS
from broker.core.units import US_PER_S

token = context.command_group("Tokens for people and programs. Hosts get theirs by `bwb host enrol`.")


class Scope(StrEnum):
    """The scopes of a token; the scope of an agent is only given by enrolment."""

    read = "read"
    submit = "submit"
    operate = "operate"
    admin = "admin"


def _limit(given: str) -> int | str:
    """Parse a number, `unlimited` or `default`."""
    if given in ("unlimited", "default"):
        return given
    try:
        return int(given)
    except ValueError:
        raise typer.BadParameter(f"{given!r} is neither a number nor `unlimited` nor `default`") from None


def _ahead(given: str) -> int | str:
    return given if given in ("unlimited", "default") else int(DURATION(given)) // US_PER_S


_NUMBER: dict[str, Any] = {"parser": _limit, "metavar": "N|unlimited|default", "show_default": False}
MaxOpen = Annotated[int | None, typer.Option("--max-open", help="Most open transfers at once.", **_NUMBER)]
MaxGbHours = Annotated[
    int | None, typer.Option("--max-gb-hours", help="Most it has booked ahead: GB times hours until each will be done.", **_NUMBER)
]
MaxAhead = Annotated[
    int | None,
    typer.Option(
        "--max-ahead", help="How far ahead it may book: 90d.", parser=_ahead, metavar="TIME|unlimited|default", show_default=False
    ),
]
MaxPriority = Annotated[int | None, typer.Option("--max-priority", help="The highest priority it may ask for.", **_NUMBER)]
MaxJobs = Annotated[int | None, typer.Option("--max-jobs", help="Most long jobs that wait or run.", **_NUMBER)]
MaxSuccessors = Annotated[
    int | None, typer.Option("--max-successors", help="Most transfers behind one of another token.", **_NUMBER)
]


def _limits(*given: Any) -> dict[str, int | str | None]:
    """The given limits by name, in the order of `LIMITS`; None: the broker's default."""
    named = zip(LIMITS, given, strict=True)
    return {name: None if value == "default" else value for name, value in named if value is not None}


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
    max_open: MaxOpen = None,
    max_gb_hours: MaxGbHours = None,
    max_ahead: MaxAhead = None,
    max_priority: MaxPriority = None,
    max_jobs: MaxJobs = None,
    max_successors: MaxSuccessors = None,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. The secret goes to standard output, once; the broker keeps only its hash.

    \b
    Examples
      bwb token create workflows -s read -s submit --expires +30d > wf.token
      bwb token create student -s submit --max-open 100 --max-ahead 7d --max-priority 0 > student.token
      export BWB_URL=https://broker:7410 BWB_TOKEN=$(cat wf.token)
    """
    limits = _limits(max_open, max_gb_hours, max_ahead, max_priority, max_jobs, max_successors)
    with context.broker(state_dir, as_json) as broker:
        made = broker.create_token(name, [str(item) for item in scope], expires, _own(limits))
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
    rows = context.table("Id", "Name", "Scopes", "Open", "Created", "Last used", "Valid until", right=("Open",))
    for item in found:
        until = f"revoked {show_time(item['revoked'])}" if item["revoked"] else show_time(item["expires"])
        created, used = show_time(item["created"]), show_time(item["last_used"])
        rows.add_row(
            item["id"], item["name"], " ".join(item["scopes"]), _share(item["limits"]["open_transfers"]), created, used, until
        )
    context.show_table(rows)


@token.command()
def show(token_id: str, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """One token with its limits and current use."""
    with context.broker(state_dir, as_json) as broker:
        found = broker.token(token_id)
    _show(found, as_json)


@token.command("set")
def set_limits(
    token_id: str,
    max_open: MaxOpen = None,
    max_gb_hours: MaxGbHours = None,
    max_ahead: MaxAhead = None,
    max_priority: MaxPriority = None,
    max_jobs: MaxJobs = None,
    max_successors: MaxSuccessors = None,
    state_dir: StateDir = None,
    as_json: AsJson = False,
) -> None:
    """Set the limits of a token. Existing bookings stay, even if they exceed the limits.

    \b
    Examples
      bwb token set tok_01jd... --max-open 200000 --max-jobs unlimited
      bwb token set tok_01jd... --max-ahead default
    """
    limits = _limits(max_open, max_gb_hours, max_ahead, max_priority, max_jobs, max_successors)
    if not limits:
        raise typer.BadParameter("name at least one limit, as --max-open 100")
    with context.broker(state_dir, as_json) as broker:
        changed = broker.set_limits(token_id, limits)
    _show(changed, as_json)


def _own(limits: dict[str, int | str | None]) -> dict[str, int | str]:
    return {name: value for name, value in limits.items() if value is not None}


def _show(found: TokenInUse, as_json: bool) -> None:
    if as_json:
        context.show_json(found)
        return
    limits = found["limits"]
    ahead = limits["horizon_s"]["value"]
    context.show_fields(
        {
            "token": found["id"],
            "name": found["name"],
            "scopes": " ".join(found["scopes"]),
            "valid until": f"revoked {show_time(found['revoked'])}" if found["revoked"] else show_time(found["expires"]),
            "open transfers": _share(limits["open_transfers"]),
            "GB x hours ahead": _share(limits["booked_gb_hours"]),
            "books ahead": "unlimited" if ahead is None else show_duration(ahead * US_PER_S),
            "highest priority": _share(limits["priority"]),
            "jobs": _share(limits["jobs"]),
            "behind others' transfers": _share(limits["successors"]),
        }
    )


def _share(limit: Limit) -> str:
    """For example "12 of 100"."""
    most = "unlimited" if limit["value"] is None else f"{limit['value']:,}"
    shown = most if limit["used"] is None else f"{limit['used']:,.10g} of {most}"
    return shown if limit["default"] else f"{shown} (its own)"


@token.command()
def revoke(token_id: str, state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """Revoke a token. Its bookings stay.

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
