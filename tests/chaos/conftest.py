# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL that survives kill -9."""

from collections.abc import Iterator

import pytest

from tests.postgres import Server, temporary_server


@pytest.fixture
def durable() -> Iterator[Server]:
    with temporary_server(durable=True) as server:
        yield server
