"""An index of ended runs, oldest first, for cleanup."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the index."""
    ended = sa.text("ended IS NOT NULL")
    op.create_index("ix_runs_ended", "runs", ["ended", "id"], unique=False, sqlite_where=ended, postgresql_where=ended)
