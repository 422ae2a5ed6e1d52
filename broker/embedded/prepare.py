# SPDX-License-Identifier: Apache-2.0
"""Make a database ready for the broker: wait until it answers, migrate it, write the first admin token."""

import asyncio
import time
from pathlib import Path

import psycopg

from broker.embedded import UpError
from broker.fleet import tokens
from broker.store import migrate


def prepare(database_url: str, token_dir: Path | None, wait_s: float) -> None:
    """Wait for PostgreSQL, migrate, and make sure of the administrator's token."""
    _wait_for(database_url, wait_s)
    migrate.upgrade(database_url)
    if token_dir is not None:
        asyncio.run(tokens.first_admin_token(database_url, token_dir))


def _wait_for(database_url: str, wait_s: float) -> None:
    end = time.monotonic() + wait_s
    while True:
        try:
            psycopg.connect(database_url, connect_timeout=5).close()
            return
        except psycopg.OperationalError as error:
            if time.monotonic() > end:
                raise UpError(f"the database cannot be reached: {error}") from None
            time.sleep(0.02)
