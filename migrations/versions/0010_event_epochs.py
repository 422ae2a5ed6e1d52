# SPDX-License-Identifier: Apache-2.0
"""positions of events that outlive their cluster"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_COMMENT = "Readers in order of ({}) and below the oldest open transaction never miss a row that commits late."


def upgrade() -> None:
    op.create_table(
        "event_epochs",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False, comment="system identifier, time line and oid of the database"),
        sa.PrimaryKeyConstraint("number", name="pk_event_epochs"),
        comment="Transactions are numbered within one epoch. A database that finds itself in another cluster begins the next.",
    )
    op.add_column(
        "events",
        sa.Column(
            "epoch",
            sa.Integer(),
            nullable=False,
            server_default=sa.text("1"),
            comment="its default moves on with `event_epochs`",
        ),
    )
    op.drop_index("ix_events_txid_seq", table_name="events")
    op.create_index("ix_events_position", "events", ["epoch", "txid", "seq"], unique=False)
    op.create_table_comment("events", _COMMENT.format("epoch, txid, seq"), existing_comment=_COMMENT.format("txid, seq"))


def downgrade() -> None:
    op.create_table_comment("events", _COMMENT.format("txid, seq"), existing_comment=_COMMENT.format("epoch, txid, seq"))
    op.drop_index("ix_events_position", table_name="events")
    op.create_index("ix_events_txid_seq", "events", ["txid", "seq"], unique=False)
    op.drop_column("events", "epoch")
    op.drop_table("event_epochs")
