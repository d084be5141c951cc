"""Attachments and their blobs, datasets and their shares, notes, and the digest of a request."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add them."""
    op.add_column("runs", sa.Column("digest", sa.LargeBinary(), nullable=True))
    op.add_column("file_refs", sa.Column("attachment", sa.String(length=36), nullable=True))
    op.create_index("ix_file_refs_attachment", "file_refs", ["attachment"], unique=False)
    _make_attachments()
    _make_totals()
    _make_datasets()
    op.create_table(
        "notes",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_notes"),
    )


def _make_attachments() -> None:
    op.create_table(
        "blobs",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_blobs"),
    )
    op.create_index("uq_blobs_owner_sha256", "blobs", ["owner", "sha256"], unique=True)
    op.create_table(
        "attachments",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("mime_type", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("blob", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["blob"], ["blobs.name"], name="fk_attachments_blob", onupdate="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_attachments"),
    )
    for columns in (["owner", "created", "id"], ["created", "id"], ["blob"]):
        op.create_index(f"ix_attachments_{'_'.join(columns)}", "attachments", columns, unique=False)


def _make_totals() -> None:
    op.create_table(
        "file_totals",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_file_totals"),
    )


def _make_datasets() -> None:
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
    )
    op.create_index("ix_datasets_owner", "datasets", ["owner"], unique=False)
    op.create_table(
        "dataset_shares",
        sa.Column("dataset", sa.String(length=36), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["dataset"], ["datasets.id"], name="fk_dataset_shares_dataset", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("dataset", "user", name="pk_dataset_shares"),
    )
    op.create_index("ix_dataset_shares_user", "dataset_shares", ["user"], unique=False)
