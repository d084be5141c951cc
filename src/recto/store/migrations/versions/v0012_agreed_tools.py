"""A thread may have tools that its user agreed to once and for all: they ask no more in it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """No thread has any."""
    op.add_column("threads", sa.Column("agreed", sa.Text(), server_default="[]", nullable=False))
