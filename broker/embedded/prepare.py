# SPDX-License-Identifier: Apache-2.0
"""`python -m broker.embedded.prepare STATE_DIR`: wait for the database, migrate it, write the first admin token, end.

A process of its own, because it imports half of the broker: it does so while PostgreSQL is still starting, and the memory is gone
when `bwb up` goes on.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

import psycopg

from broker.fleet import tokens
from broker.store import migrate

_PATIENCE_S = 30.0


def main(state_dir: Path) -> None:
    database_url = os.environ["BWB_DATABASE_URL"]
    _wait_for(database_url)
    migrate.upgrade(database_url)
    asyncio.run(tokens.first_admin_token(database_url, state_dir))


def _wait_for(database_url: str) -> None:
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            psycopg.connect(database_url, connect_timeout=5).close()
            return
        except psycopg.OperationalError as error:
            if time.monotonic() > end:
                sys.exit(f"the database cannot be reached: {error}")
            time.sleep(0.02)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
