# SPDX-License-Identifier: Apache-2.0
"""start signals"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("transfers", sa.Column("after", sa.Text(), nullable=True, comment="the transfer whose end starts this one"))
    op.add_column(
        "transfers",
        sa.Column(
            "signal",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=True,
            comment="on what it starts then, and what happens when the signal does not come",
        ),
    )
    op.add_column(
        "transfers", sa.Column("released_us", sa.BigInteger(), nullable=True, comment="since when it waits for `after` no longer")
    )
    op.create_index(
        "ix_transfers_live_after",
        "transfers",
        ["after"],
        unique=False,
        postgresql_where=sa.text("state IN ('HELD', 'RESERVED', 'ACTIVE') AND after IS NOT NULL AND released_us IS NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_transfers_live_after", table_name="transfers")
    op.drop_column("transfers", "released_us")
    op.drop_column("transfers", "signal")
    op.drop_column("transfers", "after")
