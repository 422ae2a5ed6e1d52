# SPDX-License-Identifier: Apache-2.0
"""Two enrolled hosts and a link between them; in the end no invariant is broken."""

from collections.abc import AsyncIterator

import pytest

from tests.fleet.world import Fleet, enrolled
from tests.service import Service


@pytest.fixture
async def fleet(service: Service) -> AsyncIterator[Fleet]:
    async with enrolled(service) as fleet:
        yield fleet
