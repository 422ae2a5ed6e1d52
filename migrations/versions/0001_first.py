# SPDX-License-Identifier: Apache-2.0
"""ledger, transfers, access, fleet"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from broker.store.tables import TransactionId

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audits",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("took_us", sa.BigInteger(), nullable=False),
        sa.Column("violations", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audits")),
    )
    op.create_table(
        "enrolment_tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("nic_bps", sa.BigInteger(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.Column("used_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_enrolment_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_enrolment_tokens_hash")),
    )
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("txid", TransactionId(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject_kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("before", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("after", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
        comment="Readers in order of (txid, seq) and below the oldest open transaction never miss a row that commits late.",
    )
    op.create_index("ix_events_at", "events", ["at_us"], unique=False)
    op.create_index("ix_events_subject", "events", ["subject", "seq"], unique=False)
    op.create_index("ix_events_txid_seq", "events", ["txid", "seq"], unique=False)
    op.create_table(
        "hosts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("nic_bps", sa.BigInteger(), nullable=False),
        sa.Column("data_address", sa.Text(), nullable=False),
        sa.Column("tls_fingerprint", sa.Text(), nullable=True),
        sa.Column("agent_version", sa.Text(), nullable=True),
        sa.Column("capabilities", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("clock", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("drained", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default=sa.text("1"), nullable=False, comment="of its assignments"),
        sa.Column("enrolled_us", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_hosts")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.LargeBinary(), nullable=False),
        sa.Column(
            "answer",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=True,
            comment="what was answered; null only inside the transaction that decides",
        ),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index("ix_idempotency_keys_created", "idempotency_keys", ["created_us"], unique=False)
    op.create_table(
        "ledger",
        sa.Column("link_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("transfer_id", sa.Text(), nullable=False),
        sa.Column("begin_us", sa.BigInteger(), nullable=False),
        sa.Column("end_us", sa.BigInteger(), nullable=False),
        sa.Column("delta_bps", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("begin_us < end_us", name=op.f("ck_ledger_interval")),
        sa.CheckConstraint("delta_bps <> 0", name=op.f("ck_ledger_delta")),
        sa.PrimaryKeyConstraint("link_id", "version", name=op.f("pk_ledger")),
    )
    op.create_index("ix_ledger_link_end", "ledger", ["link_id", "end_us"], unique=False)
    op.create_index("ix_ledger_transfer", "ledger", ["transfer_id"], unique=False)
    op.create_table(
        "links",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("capacity_bps", sa.BigInteger(), nullable=False),
        sa.Column("mtu_bytes", sa.Integer(), nullable=True),
        sa.Column("channel_bps", sa.BigInteger(), nullable=True),
        sa.Column("slot_us", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("metric", sa.BigInteger(), nullable=True),
        sa.Column("host", sa.Text(), nullable=True, comment="set on the two links that stand for a host's NIC"),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False, comment="head of the ledger"),
        sa.Column(
            "revision",
            sa.BigInteger(),
            server_default=sa.text("1"),
            nullable=False,
            comment="grows with every change of the link itself",
        ),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("changed_us", sa.BigInteger(), nullable=False, comment="since when the present capacity function holds"),
        sa.Column(
            "deleted_us",
            sa.BigInteger(),
            nullable=True,
            comment="a deleted link keeps its row, so that ledger versions never start again",
        ),
        sa.CheckConstraint("capacity_bps >= 0", name=op.f("ck_links_capacity")),
        sa.CheckConstraint("slot_us > 0", name=op.f("ck_links_slot")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_links")),
    )
    op.create_table(
        "reports",
        sa.Column("transfer_id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("received_us", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("rate_bps", sa.BigInteger(), nullable=True),
        sa.Column("applied_rate_bps", sa.BigInteger(), nullable=True),
        sa.Column("detail", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("transfer_id", "host", "sequence", name=op.f("pk_reports")),
    )
    op.create_index("ix_reports_received", "reports", ["received_us"], unique=False)
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False, comment="SHA-256 of the token; the token itself is nowhere"),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("host", sa.Text(), nullable=True, comment="an agent's token acts for this host only"),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=True),
        sa.Column("revoked_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
    )
    op.create_table(
        "topology",
        sa.Column("only", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("only", name=op.f("pk_topology")),
        comment="One row; version grows with every change to any link, so that processes know when to load the network anew.",
    )
    op.create_table(
        "transfers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("planner", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("volume_bytes", sa.BigInteger(), nullable=False),
        sa.Column("booked_bytes", sa.BigInteger(), nullable=False, comment="volume and margin: what the plan must carry"),
        sa.Column("rate_max_bps", sa.BigInteger(), nullable=True),
        sa.Column("rate_min_bps", sa.BigInteger(), nullable=True),
        sa.Column("not_before_us", sa.BigInteger(), nullable=False),
        sa.Column("deadline_us", sa.BigInteger(), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("project", sa.Text(), nullable=True),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("mechanism", sa.Text(), nullable=True),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column(
            "segments",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="[[begin_us, end_us, rate_bps, [link, ...]], ...]",
        ),
        sa.Column("start_us", sa.BigInteger(), nullable=True),
        sa.Column("finish_us", sa.BigInteger(), nullable=True, comment="end of the last segment"),
        sa.Column(
            "promised_us",
            sa.BigInteger(),
            nullable=True,
            comment="the finish that was first answered, or the deadline agreed since",
        ),
        sa.Column("plan_revision", sa.Integer(), nullable=False),
        sa.Column("plan_from_us", sa.BigInteger(), nullable=False, comment="segments from here on are the present plan"),
        sa.Column("carried_bytes", sa.BigInteger(), nullable=False, comment="of booked_bytes, carried before plan_from_us"),
        sa.Column("hold_until_us", sa.BigInteger(), nullable=True),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("bytes_done", sa.BigInteger(), nullable=False),
        sa.Column("measured_bps", sa.BigInteger(), nullable=True),
        sa.Column("actual_start_us", sa.BigInteger(), nullable=True),
        sa.Column("actual_finish_us", sa.BigInteger(), nullable=True),
        sa.Column("checksum", sa.Text(), nullable=True),
        sa.Column(
            "reason",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=True,
            comment="why it waits, was slowed, failed or ended: {code, detail, limited_by, until}",
        ),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_transfers")),
    )
    op.create_index(
        "ix_transfers_live",
        "transfers",
        ["finish_us"],
        unique=False,
        postgresql_where=sa.text("state IN ('HELD', 'RESERVED', 'ACTIVE')"),
    )
    op.create_index(
        "ix_transfers_live_destination",
        "transfers",
        ["destination"],
        unique=False,
        postgresql_where=sa.text("state IN ('RESERVED', 'ACTIVE') AND mode <> 'reserve'"),
    )
    op.create_index(
        "ix_transfers_live_source",
        "transfers",
        ["source"],
        unique=False,
        postgresql_where=sa.text("state IN ('RESERVED', 'ACTIVE') AND mode <> 'reserve'"),
    )
    op.create_table(
        "link_steps",
        sa.Column("link_id", sa.Text(), nullable=False),
        sa.Column("begin_us", sa.BigInteger(), nullable=False),
        sa.Column("bps", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["link_id"], ["links.id"], name=op.f("fk_link_steps_link_id")),
        sa.PrimaryKeyConstraint("link_id", "begin_us", name=op.f("pk_link_steps")),
        comment="Steps of what may be used of a link (`available`): from begin_us on, until the next step.",
    )
    op.create_table(
        "link_windows",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("link_id", sa.Text(), nullable=False),
        sa.Column("begin_us", sa.BigInteger(), nullable=False),
        sa.Column("end_us", sa.BigInteger(), nullable=False),
        sa.Column("bps", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint("begin_us < end_us", name=op.f("ck_link_windows_interval")),
        sa.ForeignKeyConstraint(["link_id"], ["links.id"], name=op.f("fk_link_windows_link_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_link_windows")),
    )
    op.create_index(op.f("ix_link_windows_link_id"), "link_windows", ["link_id"], unique=False)
    op.execute("INSERT INTO topology DEFAULT VALUES")


def downgrade() -> None:
    op.drop_index(op.f("ix_link_windows_link_id"), table_name="link_windows")
    op.drop_table("link_windows")
    op.drop_table("link_steps")
    op.drop_index(
        "ix_transfers_live_source",
        table_name="transfers",
        postgresql_where=sa.text("state IN ('RESERVED', 'ACTIVE') AND mode <> 'reserve'"),
    )
    op.drop_index(
        "ix_transfers_live_destination",
        table_name="transfers",
        postgresql_where=sa.text("state IN ('RESERVED', 'ACTIVE') AND mode <> 'reserve'"),
    )
    op.drop_index("ix_transfers_live", table_name="transfers", postgresql_where=sa.text("state IN ('HELD', 'RESERVED', 'ACTIVE')"))
    op.drop_table("transfers")
    op.drop_table("topology")
    op.drop_table("tokens")
    op.drop_index("ix_reports_received", table_name="reports")
    op.drop_table("reports")
    op.drop_table("links")
    op.drop_index("ix_ledger_transfer", table_name="ledger")
    op.drop_index("ix_ledger_link_end", table_name="ledger")
    op.drop_table("ledger")
    op.drop_index("ix_idempotency_keys_created", table_name="idempotency_keys")
    op.drop_table("idempotency_keys")
    op.drop_table("hosts")
    op.drop_index("ix_events_txid_seq", table_name="events")
    op.drop_index("ix_events_subject", table_name="events")
    op.drop_index("ix_events_at", table_name="events")
    op.drop_table("events")
    op.drop_table("enrolment_tokens")
    op.drop_table("audits")
