"""Indexes for history, the author of a thread's title, the price of a call, a user's daily spending."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns, the indexes and the table of daily spending."""
    op.add_column("threads", sa.Column("title_by", sa.String(length=8), nullable=True))
    op.add_column("calls", sa.Column("price", sa.BigInteger(), nullable=True))
    op.create_index("ix_log_thread_time_seq", "log", ["thread", "time", "seq"], unique=False)
    op.create_index(
        "ix_log_turned_back",
        "log",
        ["thread", "seq"],
        unique=False,
        sqlite_where=sa.text("kind IN ('rolled_back', 'undone')"),
        postgresql_where=sa.text("kind IN ('rolled_back', 'undone')"),
    )
    op.create_table(
        "spending",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("input", sa.BigInteger(), nullable=False),
        sa.Column("output", sa.BigInteger(), nullable=False),
        sa.Column("cached", sa.BigInteger(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("price", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("owner", "day", name="pk_spending"),
    )
