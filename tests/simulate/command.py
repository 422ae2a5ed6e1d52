# SPDX-License-Identifier: Apache-2.0
"""`bwb simulate` in this process."""

import json
from typing import Any

import typer
from typer.testing import CliRunner

from broker.cli.simulate.commands import simulate

app = typer.Typer()
app.add_typer(simulate, name="simulate")


class Answer:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def bwb(*words: object) -> Answer:
    env = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    result = CliRunner().invoke(app, ["simulate", *(str(word) for word in words)], env=env)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Answer(result.exit_code, result.stdout, result.stderr)
