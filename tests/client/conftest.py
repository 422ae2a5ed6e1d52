# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import Live, Server, live_server


@pytest.fixture
def live_and_server(database_url: str, tmp_path: Path) -> Iterator[tuple[Live, Server]]:
    with live_server(database_url, tmp_path / "state") as running:
        yield running


@pytest.fixture
def live(live_and_server: tuple[Live, Server]) -> Live:
    return live_and_server[0]


@pytest.fixture
def server(live_and_server: tuple[Live, Server]) -> Server:
    return live_and_server[1]
