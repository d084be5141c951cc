"""Attachments and their blobs, datasets and their shares, notes, and the digest of a request."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

TABLES = sa.MetaData(naming_convention={"pk": "pk_%(table_name)s", "fk": "fk_%(table_name)s_%(column_0_N_name)s"})
sa.Table(
    "blobs",
    TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Index("uq_blobs_owner_sha256", "owner", "sha256", unique=True),
)
sa.Table(
    "attachments",
    TABLES,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("mime_type", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("blob", sa.Text, sa.ForeignKey("blobs.name", onupdate="CASCADE"), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Index("ix_attachments_owner_created_id", "owner", "created", "id"),
    sa.Index("ix_attachments_created_id", "created", "id"),
    sa.Index("ix_attachments_blob", "blob"),
)
sa.Table(
    "file_totals",
    TABLES,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("files", sa.BigInteger, nullable=False),
)
sa.Table(
    "datasets",
    TABLES,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("updated", sa.BigInteger, nullable=False),
    sa.Index("ix_datasets_owner", "owner"),
)
sa.Table(
    "dataset_shares",
    TABLES,
    sa.Column("dataset", sa.String(36), sa.ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("user", sa.Text, primary_key=True),
    sa.Index("ix_dataset_shares_user", "user"),
)
sa.Table("notes", TABLES, sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False))


def upgrade() -> None:
    """Create these tables and columns."""
    op.add_column("runs", sa.Column("digest", sa.LargeBinary(), nullable=True))
    op.add_column("file_refs", sa.Column("attachment", sa.String(length=36), nullable=True))
    op.create_index("ix_file_refs_attachment", "file_refs", ["attachment"], unique=False)
    # Do not check for existing tables: a table of another program must stop the migration.
    TABLES.create_all(op.get_bind(), checkfirst=False)
