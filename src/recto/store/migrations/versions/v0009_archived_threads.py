"""A thread may be archived: it stays as it is, and lists leave it out that are asked to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """None of those that are there is."""
    op.add_column("threads", sa.Column("archived", sa.Boolean(), server_default=sa.false(), nullable=False))
