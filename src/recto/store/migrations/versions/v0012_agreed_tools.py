"""Tools that need no confirmation in a thread."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the column. No existing thread has such tools."""
    op.add_column("threads", sa.Column("agreed", sa.Text(), server_default="[]", nullable=False))
