# SPDX-License-Identifier: Apache-2.0
"""Clients that others' generators make of the contract compile, and drive a real broker: submit, a refusal, a patch of one field, cancel."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import Live, live_server
from tests.postgres import Server

ROOT = Path(__file__).parents[2]
FIELDS = ("volume_bytes", "priority", "paths", "planner")


@pytest.fixture(scope="module")
def broker(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live_server(postgres.new_database(), tmp_path_factory.mktemp("state")) as (live, _):
        with live.client() as client:
            client.create_link({"id": "L1", "source": "A", "target": "B", "capacity_bps": 10**9})
        yield live


@pytest.mark.parametrize("language", ["python", "typescript", "go"])
def test_a_generated_client_drives_the_broker(broker: Live, language: str) -> None:
    """The program checks what it is answered; here is what the broker has of it."""
    command = [sys.executable, str(ROOT / "packaging" / "contract.py"), "drive", language]
    environment = os.environ | {"BWB_URL": broker.url, "BWB_TOKEN": broker.token}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with broker.client() as client:
        transfer = client.transfer(done.stdout.split()[-1])
    assert (transfer["state"], transfer["label"]) == ("CANCELED", "patched")
    assert [transfer[name] for name in FIELDS] == [10**9, 7, 2, "fbls"]  # type: ignore[literal-required]
