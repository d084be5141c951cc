"""Archived threads, which lists can leave out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column. No existing thread is archived."""
    op.add_column("threads", sa.Column("archived", sa.Boolean(), server_default=sa.false(), nullable=False))
