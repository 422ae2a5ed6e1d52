# SPDX-License-Identifier: Apache-2.0
"""sessions of the dashboard"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False, comment="SHA-256 of the cookie's secret"),
        sa.Column("token_id", sa.Text(), nullable=False, comment="the token it stands for, and dies with"),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("seen_us", sa.BigInteger(), nullable=False, comment="when it was last used, to a minute"),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name=op.f("fk_sessions_token_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("hash", name=op.f("uq_sessions_hash")),
    )
    op.create_index("ix_sessions_expires", "sessions", ["expires_us"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_sessions_expires", table_name="sessions")
    op.drop_table("sessions")
