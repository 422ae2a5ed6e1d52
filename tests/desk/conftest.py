# SPDX-License-Identifier: Apache-2.0
"""One desk at work on a database of its own, or as many as `@pytest.mark.desks(2)` says."""

from collections.abc import AsyncIterator

import pytest

from tests.desk.world import World, running
from tests.service import Clock


@pytest.fixture
async def world(request: pytest.FixtureRequest, database_url: str, clock: Clock) -> AsyncIterator[World]:
    marked = request.node.get_closest_marker("desks")
    async with running(database_url, clock, desks=marked.args[0] if marked else 1) as world:
        yield world
