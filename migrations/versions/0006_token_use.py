# SPDX-License-Identifier: Apache-2.0
"""when a token was last used"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tokens", sa.Column("used_us", sa.BigInteger(), nullable=True, comment="when it was last used, to a minute"))


def downgrade() -> None:
    op.drop_column("tokens", "used_us")
