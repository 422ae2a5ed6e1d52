# SPDX-License-Identifier: Apache-2.0
"""limits of tokens, what they have booked, and whose jobs come first"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    limits = "by name (core.allowance), where they are not the defaults: a number or `unlimited`"
    op.add_column("tokens", sa.Column("limits", postgresql.JSONB(), nullable=True, comment=limits))
    op.add_column("tokens", sa.Column("revision", sa.BigInteger(), nullable=False, server_default=sa.text("1")))
    urgent = "an operator's: taken before all others"
    op.add_column("jobs", sa.Column("urgent", sa.Boolean(), nullable=False, server_default=sa.text("false"), comment=urgent))
    booked = "of these, unless paused: bytes booked times microseconds from request to finish"
    op.create_table(
        "token_use",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("open", sa.BigInteger(), nullable=False, comment="live transfers"),
        sa.Column("byte_us", sa.Numeric(), nullable=False, comment=booked),
        sa.PrimaryKeyConstraint("owner", name=op.f("pk_token_use")),
        comment="What each token has booked, kept up by every transaction that changes it.",
    )
    op.execute("""
        INSERT INTO token_use (owner, open, byte_us)
        SELECT owner, count(*), COALESCE(sum(booked_bytes::numeric * GREATEST(finish_us - created_us, 0)) FILTER (WHERE NOT paused), 0)
        FROM transfers WHERE state IN ('HELD', 'RESERVED', 'ACTIVE') GROUP BY owner""")


def downgrade() -> None:
    op.drop_table("token_use")
    op.drop_column("jobs", "urgent")
    op.drop_column("tokens", "revision")
    op.drop_column("tokens", "limits")
