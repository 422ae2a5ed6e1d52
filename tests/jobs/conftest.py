# SPDX-License-Identifier: Apache-2.0
"""The tasks of a worker."""

from collections.abc import Iterator
from types import ModuleType

import pytest

from broker.jobs import periodic
from broker.settings import Settings
from tests.service import SECRET


@pytest.fixture
def worker(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The tasks as a worker process would run them, in threads of their own: each has an event loop."""
    monkeypatch.setattr(periodic, "settings", lambda: Settings(database_url=database_url, secret_key=SECRET))
    periodic._process.cache_clear()
    yield periodic
    process = periodic._process()
    process.runner.run(process.database.close())
    process.runner.close()
    periodic._process.cache_clear()
