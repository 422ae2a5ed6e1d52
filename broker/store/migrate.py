# SPDX-License-Identifier: Apache-2.0
"""Upgrade the database to the newest schema. An advisory lock serialises several processes that try at once."""

from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text
from sqlalchemy.dialects.postgresql.base import ischema_names

import migrations
from broker.store.session import driver_url
from broker.store.tables import TransactionId, metadata

_LOCK = 7_238_461_905  # any number that no other program uses: key of the advisory lock
# Migrations wait this long for a table lock and then fail, instead of queueing behind a long reader and blocking all others.
_LOCK_TIMEOUT = "10s"


def upgrade(database_url: str, revision: str = "head") -> None:
    """Bring the schema to `revision`. Concurrent processes take turns."""
    engine = create_engine(driver_url(database_url))
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
            connection.execute(text(f"SET lock_timeout = '{_LOCK_TIMEOUT}'"))
            connection.commit()
            command.upgrade(_config(connection), revision)
            connection.commit()
    finally:
        engine.dispose()


def find_drift(database_url: str) -> list[object]:
    """The differences that autogenerate finds: empty if the migrations match `tables`."""
    ischema_names["xid8"] = TransactionId  # SQLAlchemy does not know this type, and would not compare it
    engine = create_engine(driver_url(database_url))
    try:
        with engine.connect() as connection:
            return list(compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata))
    finally:
        engine.dispose()


def new_revision(database_url: str, message: str) -> None:
    """Write a migration from the difference between the database and `tables`; for developers."""
    engine = create_engine(driver_url(database_url))
    with engine.connect() as connection:
        command.revision(_config(connection), message=message, autogenerate=True)
    engine.dispose()


def _config(connection: object) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    return config
