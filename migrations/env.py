# SPDX-License-Identifier: Apache-2.0
"""Alembic's entry. The connection comes from `broker.store.migrate`, never from a file."""

from alembic import context

from broker.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, compare_type=True, transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
