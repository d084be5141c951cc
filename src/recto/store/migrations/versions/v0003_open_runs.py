"""Indexes of open runs by user and by thread, which every admission queries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the indexes."""
    is_open = sa.text("status <> 'ended'")
    for name, columns in (("ix_runs_open_owner", ["owner"]), ("ix_runs_open_thread", ["thread", "id"])):
        op.create_index(name, "runs", columns, unique=False, sqlite_where=is_open, postgresql_where=is_open)
