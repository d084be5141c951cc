"""Profiles by field, skill data, and the tier of each run at admission."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the tables and the column. Drop a column of profiles that was never written."""
    op.execute("ALTER TABLE profiles DROP COLUMN body")
    op.add_column("runs", sa.Column("tier", sa.Text(), server_default="free", nullable=False))
    for table, name in (("profile_fields", "field"), ("skill_data", "skill")):
        op.create_table(
            table,
            sa.Column("owner", sa.Text(), nullable=False),
            sa.Column(name, sa.String(length=64), nullable=False),
            sa.Column("body", sa.LargeBinary(), nullable=False),
            sa.Column("updated", sa.BigInteger(), nullable=False),
            sa.ForeignKeyConstraint(["owner"], ["profiles.owner"], name=f"fk_{table}_owner", ondelete="CASCADE"),
            sa.PrimaryKeyConstraint("owner", name, name=f"pk_{table}"),
        )
