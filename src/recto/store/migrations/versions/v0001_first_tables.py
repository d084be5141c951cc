"""The first tables: threads and their log, runs and their events, calls and their segments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make them."""
    _make_threads()
    _make_log()
    _make_runs()
    _index_runs()
    _make_events()
    _make_calls()
    _make_segments()
    _make_file_refs()
    _make_profiles()


def _make_threads() -> None:
    op.create_table(
        "threads",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("skill", sa.Text(), nullable=True),
        sa.Column("scenario", sa.Text(), nullable=True),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_threads"),
    )
    op.create_index("ix_threads_owner_updated", "threads", ["owner", "updated"], unique=False)


def _make_log() -> None:
    op.create_table(
        "log",
        sa.Column("thread", sa.String(length=36), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("run", sa.String(length=36), nullable=True),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["thread"], ["threads.id"], name="fk_log_thread", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("thread", "seq", name="pk_log"),
    )
    op.create_index("uq_log_thread_id", "log", ["thread", "id"], unique=True)


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("thread", sa.String(length=36), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("input", sa.LargeBinary(), nullable=False),
        sa.Column("response_id", sa.String(length=36), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("entered", sa.Boolean(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("node", sa.String(length=36), nullable=True),
        sa.Column("boot", sa.String(length=36), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("started", sa.BigInteger(), nullable=True),
        sa.Column("ended", sa.BigInteger(), nullable=True),
        sa.Column("cancel", sa.Text(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("too_long", sa.Integer(), nullable=False),
        sa.Column("can_compact", sa.Boolean(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("last_event", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("usage", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["thread"], ["threads.id"], name="fk_runs_thread", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )


def _index_runs() -> None:
    op.create_index("ix_runs_status_lease_until", "runs", ["status", "lease_until"], unique=False)
    op.create_index("ix_runs_thread_id", "runs", ["thread", "id"], unique=False)
    op.create_index(
        "uq_runs_active_thread",
        "runs",
        ["thread"],
        unique=True,
        sqlite_where=sa.text("status = 'running'"),
        postgresql_where=sa.text("status = 'running'"),
    )
    op.create_index("uq_runs_owner_name", "runs", ["owner", "name"], unique=True)


def _make_events() -> None:
    op.create_table(
        "events",
        sa.Column("run", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_events_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "number", name="pk_events"),
        sqlite_with_rowid=False,
    )


def _make_calls() -> None:
    op.create_table(
        "calls",
        sa.Column("run", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("shared", sa.Integer(), nullable=False),
        sa.Column("hashes", sa.LargeBinary(), nullable=False),
        sa.Column("manifest", sa.LargeBinary(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=False),
        sa.Column("first_token", sa.BigInteger(), nullable=True),
        sa.Column("ended", sa.BigInteger(), nullable=True),
        sa.Column("finish", sa.String(length=32), nullable=True),
        sa.Column("usage", sa.LargeBinary(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_calls_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "number", name="pk_calls"),
    )


def _make_segments() -> None:
    op.create_table(
        "segments",
        sa.Column("thread", sa.String(length=36), nullable=False),
        sa.Column("hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["thread"], ["threads.id"], name="fk_segments_thread", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("thread", "hash", name="pk_segments"),
        sqlite_with_rowid=False,
    )


def _make_file_refs() -> None:
    op.create_table(
        "file_refs",
        sa.Column("thread", sa.String(length=36), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["thread"], ["threads.id"], name="fk_file_refs_thread", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("thread", "id", name="pk_file_refs"),
    )


def _make_profiles() -> None:
    op.create_table(
        "profiles",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_profiles"),
    )
