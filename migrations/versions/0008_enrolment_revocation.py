# SPDX-License-Identifier: Apache-2.0
"""enrolment tokens can be revoked"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    comment = "by an operator, or because the host joined or was removed since"
    op.add_column("enrolment_tokens", sa.Column("revoked_us", sa.BigInteger(), nullable=True, comment=comment))
    # What was made for a host that has joined since could take its place.
    op.execute("""
        UPDATE enrolment_tokens SET revoked_us = hosts.enrolled_us FROM hosts
        WHERE hosts.name = enrolment_tokens.host AND enrolment_tokens.created_us < hosts.enrolled_us AND used_us IS NULL""")


def downgrade() -> None:
    op.drop_column("enrolment_tokens", "revoked_us")
