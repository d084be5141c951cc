"""What a message counts is stored with it, and who counted; what stands out in a log is found without reading it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Entries that are there are counted when that is first needed."""
    op.add_column("log", sa.Column("tokens", sa.Integer(), nullable=True))
    op.add_column("log", sa.Column("counter", sa.String(32), nullable=True))
    stands_out = sa.text("kind IN ('skill_changed', 'compacted')")
    op.create_index("ix_log_stands_out", "log", ["thread", "seq"], sqlite_where=stands_out, postgresql_where=stands_out)
