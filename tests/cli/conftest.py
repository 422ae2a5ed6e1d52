# SPDX-License-Identifier: Apache-2.0
import os
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from broker.cli.app import build
from tests.cli.command import Bwb, Ran
from tests.live import Live, live_server
from tests.postgres import Server as Postgres


@pytest.fixture(scope="package")
def live(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One broker for all commands; each test has links of its own."""
    url = postgres.new_database()
    with live_server(url, tmp_path_factory.mktemp("state")) as (running, _):
        yield running
    postgres.drop(url)


@pytest.fixture
def bwb(live: Live) -> Bwb:
    """Run `bwb` in this process, in the environment of a shell; `env` adds to that (None takes away)."""

    def run(*words: str, code: int = 0, stdin: str | None = None, env: dict[str, str | None] | None = None) -> Ran:
        environment: dict[str, str | None] = dict.fromkeys(name for name in os.environ if name.startswith("BWB_"))
        done = CliRunner().invoke(build(words[0]), words, input=stdin, env=environment | live.environment | (env or {}))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, (words, done.exit_code, done.stdout, done.stderr)
        assert live.token not in done.output
        return Ran(done.exit_code, done.stdout, done.stderr)

    return run


_links = iter(range(1_000_000))


@pytest.fixture
def link(live: Live) -> str:
    """A link of 1 Gb/s from node SN to node TN, for the N in its name LN. Nothing else is near it."""
    number = next(_links)
    with live.client() as client:
        client.create_link({"id": f"L{number}", "source": f"S{number}", "target": f"T{number}", "capacity_bps": 10**9})
    return f"L{number}"


@pytest.fixture
def ends(link: str) -> tuple[str, str]:
    return f"S{link[1:]}", f"T{link[1:]}"
