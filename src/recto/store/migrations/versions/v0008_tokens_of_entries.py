"""Token counts of log entries, and an index of summaries and skill changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the columns and the index. Existing entries are counted on first use."""
    op.add_column("log", sa.Column("tokens", sa.Integer(), nullable=True))
    op.add_column("log", sa.Column("counter", sa.String(32), nullable=True))
    stands_out = sa.text("kind IN ('skill_changed', 'compacted')")
    op.create_index("ix_log_stands_out", "log", ["thread", "seq"], sqlite_where=stands_out, postgresql_where=stands_out)
