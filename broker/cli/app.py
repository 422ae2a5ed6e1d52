# SPDX-License-Identifier: Apache-2.0
"""The command `bwb`. A sub-command's module is imported only when that sub-command is called, so that `bwb --help` stays fast."""

import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer

# name: (module, attribute: a function, or a Typer for a group of commands), and its line in `bwb --help`.
COMMANDS = {
    "up": ("broker.cli.server.up:up_command", "Run the whole broker on this machine, nothing to configure."),
    "demo": ("broker.cli.demo.command:demo_command", "Show it all at work: a broker, two agents, real files, promises kept."),
    "transfer": ("broker.cli.transfer.commands:transfer", "Submit, watch and steer transfers."),
    "run": ("broker.cli.run:run_command", "Book, wait for the start, and run any command at the booked rate."),
    "reoptimise": ("broker.cli.job:reoptimise_command", "Plan what is not yet sent anew, all together, keeping every promise."),
    "job": ("broker.cli.job:job", "Re-optimisations and simulations that the broker works on."),
    "link": ("broker.cli.link.commands:link", "Links, their calendars, maintenance windows."),
    "host": ("broker.cli.host:host", "Transfer hosts and their agents."),
    "lab": ("broker.cli.lab.commands:lab", "Try it on this machine: hosts in network namespaces and a bottleneck between them."),
    "token": ("broker.cli.token:token", "Tokens for people and programs."),
    "audit": ("broker.cli.audit:audit_command", "Prove that every promise still holds."),
    "plan": ("broker.cli.plan.commands:plan_command", "Plan transfers offline: no server, no database."),
    "simulate": ("broker.cli.simulate.commands:simulate", "Try planners on traffic that you describe, offline."),
    "serve": ("broker.cli.server.serve:serve_command", "Run the API and the dashboard alone."),
    "worker": ("broker.cli.server.serve:worker_command", "Run background jobs alone."),
    "openapi": ("broker.cli.server.openapi:openapi_command", "Export or check the REST API's contract."),
    "migrate": ("broker.cli.server.serve:migrate_command", "Bring the database to the newest schema."),
}


def build(wanted: str | None) -> typer.Typer:
    """The command line with one sub-command in full; of the others only the names and lines that --help lists."""
    app = typer.Typer(
        name="bwb",
        help="A bandwidth broker for bulk data transfers: every transfer ends when it was promised.",
        no_args_is_help=True,
        pretty_exceptions_show_locals=False,  # locals hold tokens
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_main)
    for name, (place, line) in COMMANDS.items():
        module, attribute = place.split(":")
        command = getattr(import_module(module), attribute) if name == wanted else _not_loaded
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, short_help=line)
        else:
            # The arguments of a wrapped command belong to it, even without a `--` before it.
            settings = {"allow_interspersed_args": False} if name == "run" else None
            app.command(name, short_help=line, context_settings=settings)(command)
    return app


def run() -> None:
    """The entry point of `bwb`."""
    words = os.environ.get("_TYPER_COMPLETE_ARGS", "").split() or sys.argv  # set while a shell asks for completions
    build(next((word for word in words[1:] if not word.startswith("-")), None))()


def _not_loaded() -> None:
    raise AssertionError("run() loads the sub-command that it is called with")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bwb {version('bandwidth-broker')}")
        raise typer.Exit


def _main(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


if __name__ == "__main__":
    run()
