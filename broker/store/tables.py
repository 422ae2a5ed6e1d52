# SPDX-License-Identifier: Apache-2.0
"""The tables. Times are bigint microseconds UTC (`_us`), rates bigint bit/s (`_bps`), volumes bigint bytes (`_bytes`).

The ledger is append-only and is the authoritative record of bookings; `links.version` is its head per link. `events` is the audit
log, the history of each transfer and the source of `GET /v1/events`.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.types import UserDefinedType

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class TransactionId(UserDefinedType[int]):
    """PostgreSQL's xid8: the 64-bit number of the writing transaction."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """Its name in SQL."""
        return "xid8"


topology = Table(
    "topology",
    metadata,
    Column("only", Boolean, CheckConstraint("only", name="one_row"), primary_key=True, server_default=text("true")),
    Column("version", BigInteger, nullable=False, server_default=text("0")),
    comment="One row; version grows with every change to any link, so that processes know when to load the network anew.",
)

links = Table(
    "links",
    metadata,
    Column("id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("capacity_bps", BigInteger, nullable=False),
    Column("mtu_bytes", Integer),
    Column("channel_bps", BigInteger),
    Column("slot_us", BigInteger, nullable=False, server_default=text("1")),
    Column("metric", BigInteger),
    Column("host", Text, comment="set on the two links that stand for a host's NIC"),
    Column("version", BigInteger, nullable=False, server_default=text("0"), comment="head of the ledger"),
    Column("revision", BigInteger, nullable=False, server_default=text("1"), comment="grows with every change of the link itself"),
    Column("created_us", BigInteger, nullable=False),
    Column("changed_us", BigInteger, nullable=False, comment="since when the present capacity function holds"),
    Column("deleted_us", BigInteger, comment="a deleted link keeps its row, so that ledger versions never start again"),
    CheckConstraint("capacity_bps >= 0", name="capacity"),
    CheckConstraint("slot_us > 0", name="slot"),
)

nodes = Table(
    "nodes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, comment="for people; null: the id"),
    Column("latitude", Double),
    Column("longitude", Double),
    comment="What is known of nodes beside the links that touch them: where they stand on a map. A node needs no row.",
)

link_steps = Table(
    "link_steps",
    metadata,
    Column("link_id", Text, ForeignKey("links.id"), nullable=False),
    Column("begin_us", BigInteger, nullable=False),
    Column("bps", BigInteger, nullable=False),
    PrimaryKeyConstraint("link_id", "begin_us"),
    comment="Steps of what may be used of a link (`available`): from begin_us on, until the next step.",
)

link_windows = Table(
    "link_windows",
    metadata,
    Column("id", Text, primary_key=True),
    Column("link_id", Text, ForeignKey("links.id"), nullable=False, index=True),
    Column("begin_us", BigInteger, nullable=False),
    Column("end_us", BigInteger, nullable=False),
    Column("bps", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("reason", Text),
    CheckConstraint("begin_us < end_us", name="interval"),
)

transfers = Table(
    "transfers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("planner", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("destination", Text, nullable=False),
    Column("volume_bytes", BigInteger, comment="null: class 2, a holding time instead of a volume"),
    Column("duration_us", BigInteger, comment="the holding time of class 2"),
    Column("booked_bytes", BigInteger, nullable=False, comment="volume and margin, or of class 2: what the plan must carry"),
    Column("rate_max_bps", BigInteger),
    Column("rate_min_bps", BigInteger),
    Column("not_before_us", BigInteger, nullable=False),
    Column("deadline_us", BigInteger),
    Column("priority", Integer, nullable=False),
    Column("best_effort", Boolean, nullable=False, server_default=text("false"), comment="gives way to requests that preempt"),
    Column("options", JSONB, comment="how its plans may look (core.request.Options); null: nothing special was asked"),
    Column("project", Text),
    Column("label", Text),
    Column("payload", JSONB),
    Column("mechanism", Text),
    Column("after", Text, comment="the transfer whose end starts this one"),
    Column("signal", JSONB, comment="on what it starts then, and what happens when the signal does not come"),
    Column("released_us", BigInteger, comment="since when it waits for `after` no longer"),
    Column("metadata", JSONB),
    Column("segments", JSONB, nullable=False, comment="[[begin_us, end_us, rate_bps, [link, ...]], ...]"),
    Column("start_us", BigInteger),
    Column("finish_us", BigInteger, comment="end of the last segment"),
    Column("promised_us", BigInteger, comment="the finish that was first answered, or the deadline agreed since"),
    Column("plan_revision", Integer, nullable=False),
    Column("plan_from_us", BigInteger, nullable=False, comment="segments from here on are the present plan"),
    Column("carried_bytes", BigInteger, nullable=False, comment="of booked_bytes, carried before plan_from_us"),
    Column("hold_until_us", BigInteger),
    Column("paused", Boolean, nullable=False),
    Column("bytes_done", BigInteger, nullable=False),
    Column("measured_bps", BigInteger),
    Column("actual_start_us", BigInteger),
    Column("actual_finish_us", BigInteger),
    Column("checksum", Text),
    Column("reason", JSONB, comment="why it waits, was slowed, failed or ended: {code, detail, limited_by, until}"),
    Column("owner", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    Column("source_told", Boolean, nullable=False, server_default=text("false"), comment="the source's agent was handed it"),
    Column(
        "destination_told", Boolean, nullable=False, server_default=text("false"), comment="the destination's agent was handed it"
    ),
    Column("unheard_us", BigInteger, comment="since when its agents should have been heard of and were not"),
    Column(
        "assumed",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="its end was assumed, for nobody was heard: a late report corrects it",
    ),
)
# Live transfers are few compared with the history; every periodic job and every agent queries them.
Index(
    "ix_transfers_live_after",
    transfers.c.after,
    postgresql_where=text("state IN ('HELD', 'RESERVED', 'ACTIVE') AND after IS NOT NULL AND released_us IS NULL"),
)
Index("ix_transfers_live", transfers.c.finish_us, postgresql_where=text("state IN ('HELD', 'RESERVED', 'ACTIVE')"))
Index(
    "ix_transfers_live_source", transfers.c.source, postgresql_where=text("state IN ('RESERVED', 'ACTIVE') AND mode <> 'reserve'")
)
Index(
    "ix_transfers_live_destination",
    transfers.c.destination,
    postgresql_where=text("state IN ('RESERVED', 'ACTIVE') AND mode <> 'reserve'"),
)

Index(
    "ix_transfers_unheard",
    transfers.c.source,
    transfers.c.destination,
    postgresql_where=text("unheard_us IS NOT NULL OR assumed"),
)
Index("ix_transfers_created", transfers.c.created_us, transfers.c.id)
Index("ix_transfers_ended", transfers.c.actual_finish_us, postgresql_where=text("state NOT IN ('HELD', 'RESERVED', 'ACTIVE')"))

refusals = Table(
    "refusals",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("at_us", BigInteger, nullable=False),
    Column("planner", Text, nullable=False),
    Column("reason", Text, nullable=False, comment="code of the problem"),
    Column("number", Integer, nullable=False, comment="how many requests of one transaction"),
    Index("ix_refusals_at", "at_us"),
)

ledger = Table(
    "ledger",
    metadata,
    Column("link_id", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("transfer_id", Text, nullable=False),
    Column("begin_us", BigInteger, nullable=False),
    Column("end_us", BigInteger, nullable=False),
    Column("delta_bps", BigInteger, nullable=False),
    # A plan is valid only on the exact version it was computed on: the second of two concurrent writers violates this key.
    PrimaryKeyConstraint("link_id", "version"),
    CheckConstraint("begin_us < end_us", name="interval"),
    CheckConstraint("delta_bps <> 0", name="delta"),
    Index("ix_ledger_link_end", "link_id", "end_us"),
    Index("ix_ledger_transfer", "transfer_id"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("owner", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("body_hash", LargeBinary, nullable=False),
    Column("answer", JSONB, comment="what was answered; null only inside the transaction that decides"),
    Column("created_us", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner", "key"),
    Index("ix_idempotency_keys_created", "created_us"),
)

events = Table(
    "events",
    metadata,
    Column("seq", BigInteger, Identity(always=True), primary_key=True),
    Column("epoch", Integer, nullable=False, server_default=text("1"), comment="its default moves on with `event_epochs`"),
    Column("txid", TransactionId, nullable=False, server_default=text("pg_current_xact_id()")),
    Column("at_us", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject_kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("before", JSONB),
    Column("after", JSONB),
    Index("ix_events_position", "epoch", "txid", "seq"),
    Index("ix_events_subject", "subject", "seq"),
    Index("ix_events_at", "at_us"),
    comment="Readers in order of (epoch, txid, seq) and below the oldest open transaction never miss a row that commits late.",
)

event_epochs = Table(
    "event_epochs",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("cluster", Text, nullable=False, comment="system identifier, time line and oid of the database"),
    comment="Transactions are numbered within one epoch. A database that finds itself in another cluster begins the next.",
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("hash", LargeBinary, nullable=False, unique=True, comment="SHA-256 of the token; the token itself is nowhere"),
    Column("name", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("host", Text, comment="an agent's token acts for this host only"),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger),
    Column("revoked_us", BigInteger),
    Column("used_us", BigInteger, comment="when it was last used, to a minute"),
    Column(
        "limits",
        JSONB(none_as_null=True),
        comment="by name (core.allowance), where they are not the defaults: a number or `unlimited`",
    ),
    Column("revision", BigInteger, nullable=False, server_default=text("1")),
)

token_use = Table(
    "token_use",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("open", BigInteger, nullable=False, comment="live transfers"),
    Column(
        "byte_us",
        Numeric,
        nullable=False,
        comment="of these, unless paused: bytes booked times microseconds from request to finish",
    ),
    comment="What each token has booked, kept up by every transaction that changes it.",
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("hash", LargeBinary, nullable=False, unique=True, comment="SHA-256 of the cookie's secret"),
    Column("token_id", Text, ForeignKey("tokens.id"), nullable=False, comment="the token it stands for, and dies with"),
    Column("created_us", BigInteger, nullable=False),
    Column("seen_us", BigInteger, nullable=False, comment="when it was last used, to a minute"),
    Column("expires_us", BigInteger, nullable=False),
    Index("ix_sessions_expires", "expires_us"),
)

enrolment_tokens = Table(
    "enrolment_tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("host", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("nic_bps", BigInteger, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("used_us", BigInteger),
    Column("revoked_us", BigInteger, comment="by an operator, or because the host joined or was removed since"),
)

hosts = Table(
    "hosts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("node", Text, nullable=False),
    Column("nic_bps", BigInteger, nullable=False),
    Column("data_address", Text, nullable=False),
    Column("tls_fingerprint", Text),
    Column("agent_version", Text),
    Column("capabilities", JSONB),
    Column("clock", JSONB),
    Column("drained", Boolean, nullable=False, server_default=text("false")),
    Column("revision", BigInteger, nullable=False, server_default=text("1"), comment="of its assignments"),
    Column("enrolled_us", BigInteger, nullable=False),
    Column("last_seen_us", BigInteger),
    Column("fetched_revision", BigInteger, comment="of the assignments that its agent has"),
    Column("goodbye_us", BigInteger, comment="when its agent said that it stops; null: it has not, or is back"),
    Column("applied_revision", BigInteger, comment="of the assignments that its agent acts by, as it says"),
    Column("said_all_us", BigInteger, comment="when its agent had told last all that it had to tell"),
)

reports = Table(
    "reports",
    metadata,
    Column("transfer_id", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("received_us", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("bytes", BigInteger),
    Column("rate_bps", BigInteger),
    Column("applied_rate_bps", BigInteger),
    Column("detail", JSONB),
    PrimaryKeyConstraint("transfer_id", "host", "sequence"),
    Index("ix_reports_received", "received_us"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False, comment="plan | simulation"),
    Column("state", Text, nullable=False, comment="QUEUED | RUNNING | DONE | FAILED | CANCELED"),
    Column("request", JSONB, nullable=False),
    Column("progress", Double, nullable=False, server_default=text("0"), comment="0 to 1"),
    Column("stage", Text, comment="what it is doing, in words"),
    Column("result", JSONB),
    Column("error", JSONB, comment="problem+json members"),
    Column("owner", Text, nullable=False),
    Column("urgent", Boolean, nullable=False, server_default=text("false"), comment="an operator's: taken before all others"),
    Column("cancel", Boolean, nullable=False, server_default=text("false"), comment="somebody asked it to stop"),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("heartbeat_us", BigInteger, comment="a running job whose heart stopped is queued again"),
    Column("revision", BigInteger, nullable=False, server_default=text("1")),
    Column("created_us", BigInteger, nullable=False),
    Column("started_us", BigInteger),
    Column("finished_us", BigInteger),
    Index("ix_jobs_created", "created_us"),
    comment="Long work: the row is the truth, the message in Redis only says that there is something to do.",
)
Index("ix_jobs_waiting", jobs.c.created_us, postgresql_where=text("state IN ('QUEUED', 'RUNNING')"))

audits = Table(
    "audits",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("at_us", BigInteger, nullable=False),
    Column("took_us", BigInteger, nullable=False),
    Column("violations", JSONB, nullable=False),
)
