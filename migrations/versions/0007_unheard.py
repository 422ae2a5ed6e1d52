# SPDX-License-Identifier: Apache-2.0
"""what was handed to agents, and since when they cannot be heard"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TRANSFERS = (
    sa.Column(
        "source_told", sa.Boolean(), nullable=False, server_default=sa.text("false"), comment="the source's agent was handed it"
    ),
    sa.Column(
        "destination_told",
        sa.Boolean(),
        nullable=False,
        server_default=sa.text("false"),
        comment="the destination's agent was handed it",
    ),
    sa.Column("unheard_us", sa.BigInteger(), nullable=True, comment="since when its agents should have been heard of and were not"),
    sa.Column(
        "assumed",
        sa.Boolean(),
        nullable=False,
        server_default=sa.text("false"),
        comment="its end was assumed, for nobody was heard: a late report corrects it",
    ),
)
_HOSTS = (
    sa.Column(
        "goodbye_us", sa.BigInteger(), nullable=True, comment="when its agent said that it stops; null: it has not, or is back"
    ),
    sa.Column("applied_revision", sa.BigInteger(), nullable=True, comment="of the assignments that its agent acts by, as it says"),
    sa.Column("said_all_us", sa.BigInteger(), nullable=True, comment="when its agent had told last all that it had to tell"),
)


def upgrade() -> None:
    for column in _TRANSFERS:
        op.add_column("transfers", column)
    for column in _HOSTS:
        op.add_column("hosts", column)
    # Nobody can say of older ones what was handed out: all that agents may have, counts as handed.
    op.execute("UPDATE transfers SET source_told = true, destination_told = true WHERE mode <> 'reserve' AND state <> 'HELD'")
    op.create_index(
        "ix_transfers_unheard",
        "transfers",
        ["source", "destination"],
        unique=False,
        postgresql_where=sa.text("unheard_us IS NOT NULL OR assumed"),
    )


def downgrade() -> None:
    op.drop_index("ix_transfers_unheard", table_name="transfers")
    for column in _HOSTS:
        op.drop_column("hosts", column.name)
    for column in _TRANSFERS:
        op.drop_column("transfers", column.name)
