# SPDX-License-Identifier: Apache-2.0
"""`bwb openapi`: export the contract, or check that the exported one matches the code."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT = Path("api-spec/openapi.yaml")


def openapi_command(
    file: Annotated[Path, typer.Argument(help="Where the contract is kept.")] = DEFAULT,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 when the file differs from the code.")] = False,
) -> None:
    """Write the REST API's contract (OpenAPI 3.1). For developers of the broker; users find it in api-spec/."""
    from broker.api.contract.document import export
    from broker.main import create_app
    from broker.settings import Settings

    said = export(create_app(Settings()))
    if not check:
        file.write_text(said)
        typer.echo(f"wrote {file}")
    elif not file.exists() or file.read_text() != said:
        typer.echo(f"{file} is not what the code says; run `bwb openapi` and commit it", err=True)
        raise typer.Exit(1)
    else:
        typer.echo(f"{file} is what the code says")
