"""Alembic's entry point. It migrates on the given connection, in its open transaction."""

from __future__ import annotations

from alembic import context

from recto.store.schema import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
