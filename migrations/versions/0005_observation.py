# SPDX-License-Identifier: Apache-2.0
"""what operators look at: refusals, places of nodes, what hosts have fetched"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_ENDED = sa.text("state NOT IN ('HELD', 'RESERVED', 'ACTIVE')")


def upgrade() -> None:
    op.create_table(
        "refusals",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("planner", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False, comment="code of the problem"),
        sa.Column("number", sa.Integer(), nullable=False, comment="how many requests of one transaction"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refusals")),
    )
    op.create_index("ix_refusals_at", "refusals", ["at_us"], unique=False)
    op.create_table(
        "nodes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True, comment="for people; null: the id"),
        sa.Column("latitude", sa.Double(), nullable=True),
        sa.Column("longitude", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_nodes")),
        comment="What is known of nodes beside the links that touch them: where they stand on a map. A node needs no row.",
    )
    op.add_column(
        "hosts", sa.Column("fetched_revision", sa.BigInteger(), nullable=True, comment="of the assignments that its agent has")
    )
    op.create_index("ix_transfers_created", "transfers", ["created_us", "id"], unique=False)
    op.create_index("ix_transfers_ended", "transfers", ["actual_finish_us"], unique=False, postgresql_where=_ENDED)


def downgrade() -> None:
    op.drop_index("ix_transfers_ended", table_name="transfers", postgresql_where=_ENDED)
    op.drop_index("ix_transfers_created", table_name="transfers")
    op.drop_column("hosts", "fetched_revision")
    op.drop_table("nodes")
    op.drop_index("ix_refusals_at", table_name="refusals")
    op.drop_table("refusals")
