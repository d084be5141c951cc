"""The first tables: threads and their log, runs and their events, calls and their segments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TABLES = sa.MetaData(naming_convention={"pk": "pk_%(table_name)s", "fk": "fk_%(table_name)s_%(column_0_N_name)s"})
sa.Table(
    "threads",
    TABLES,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("agent", sa.Text),
    sa.Column("title", sa.Text),
    sa.Column("skill", sa.Text),
    sa.Column("scenario", sa.Text),
    sa.Column("last_seq", sa.BigInteger, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("updated", sa.BigInteger, nullable=False),
    sa.Index("ix_threads_owner_updated", "owner", "updated"),
)
sa.Table(
    "log",
    TABLES,
    sa.Column("thread", sa.String(36), sa.ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("run", sa.String(36)),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Index("uq_log_thread_id", "thread", "id", unique=True),
)
sa.Table(
    "runs",
    TABLES,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("name", sa.String(128), nullable=False),
    sa.Column("thread", sa.String(36), sa.ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("input", sa.LargeBinary, nullable=False),
    sa.Column("response_id", sa.String(36), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("entered", sa.Boolean, nullable=False),
    sa.Column("fence", sa.Integer, nullable=False),
    sa.Column("losses", sa.Integer, nullable=False),
    sa.Column("node", sa.String(36)),
    sa.Column("boot", sa.String(36)),
    sa.Column("lease_until", sa.BigInteger),
    sa.Column("started", sa.BigInteger),
    sa.Column("ended", sa.BigInteger),
    sa.Column("cancel", sa.Text),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("too_long", sa.Integer, nullable=False),
    sa.Column("can_compact", sa.Boolean, nullable=False),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("last_event", sa.Integer, nullable=False),
    sa.Column("outcome", sa.String(32)),
    sa.Column("error", sa.Text),
    sa.Column("usage", sa.LargeBinary),
    sa.Index("ix_runs_status_lease_until", "status", "lease_until"),
    sa.Index("ix_runs_thread_id", "thread", "id"),
    sa.Index(
        "uq_runs_active_thread",
        "thread",
        unique=True,
        sqlite_where=sa.text("status = 'running'"),
        postgresql_where=sa.text("status = 'running'"),
    ),
    sa.Index("uq_runs_owner_name", "owner", "name", unique=True),
)
sa.Table(
    "events",
    TABLES,
    sa.Column("run", sa.String(36), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
sa.Table(
    "calls",
    TABLES,
    sa.Column("run", sa.String(36), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("purpose", sa.String(16), nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("shared", sa.Integer, nullable=False),
    sa.Column("hashes", sa.LargeBinary, nullable=False),
    sa.Column("manifest", sa.LargeBinary, nullable=False),
    sa.Column("started", sa.BigInteger, nullable=False),
    sa.Column("first_token", sa.BigInteger),
    sa.Column("ended", sa.BigInteger),
    sa.Column("finish", sa.String(32)),
    sa.Column("usage", sa.LargeBinary),
    sa.Column("error", sa.Text),
)
sa.Table(
    "segments",
    TABLES,
    sa.Column("thread", sa.String(36), sa.ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("hash", sa.LargeBinary(32), primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
sa.Table(
    "file_refs",
    TABLES,
    sa.Column("thread", sa.String(36), sa.ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
)
sa.Table(
    "profiles",
    TABLES,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("tier", sa.Text, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("updated", sa.BigInteger, nullable=False),
)


def upgrade() -> None:
    """Create these tables."""
    # Do not check for existing tables: a table of another program must stop the migration.
    TABLES.create_all(op.get_bind(), checkfirst=False)
