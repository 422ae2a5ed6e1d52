# SPDX-License-Identifier: Apache-2.0
"""`bwb up`: the whole broker on one machine."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from broker.cli.server.serve import DEFAULT_PORT


def up_command(
    state_dir: Annotated[
        Path | None, typer.Option(help="Where everything is kept; default: BWB_STATE_DIR, else the user's state directory.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one (it is written to bwb.json).")] = DEFAULT_PORT,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Start PostgreSQL, Redis, the API with its dashboard and a worker, and keep them running until ctrl-C.

    BWB_DATABASE_URL and BWB_REDIS_URL select your own servers instead of the embedded ones.
    """
    from broker import settings
    from broker.embedded import UpError
    from broker.embedded.supervisor import up

    def report(line: str) -> None:
        with suppress(OSError):  # the output is closed, which is no reason to stop
            typer.echo(line)

    try:
        code = up(settings.state_dir(state_dir), host, port, report)
    except UpError as error:
        typer.echo(f"bwb up: {error}", err=True)
        code = 1
    raise typer.Exit(code)
