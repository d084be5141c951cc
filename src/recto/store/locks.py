"""Locks that hold until the end of a transaction. On SQLite there is one writer, and nothing to do."""

from __future__ import annotations

from sqlalchemy import Connection, text

from recto.store.statement import SQLITE

LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:what, 0))")


def lock_user(connection: Connection, user: str) -> None:
    """Nobody else admits a run of this user."""
    _lock(connection, f"user {user}")


def lock_thread(connection: Connection, thread: str) -> None:
    """Nobody else admits a run to this thread, or deletes it. Who locks a user too does that first."""
    _lock(connection, f"thread {thread}")


def lock_files(connection: Connection, *owners: str) -> None:
    """Nobody else adds or deletes a file of these users."""
    # Always in this order, so that two who lock several cannot wait for each other.
    _lock(connection, *[f"files {owner}" for owner in sorted(owners)])


def lock_datasets(connection: Connection, owner: str) -> None:
    """Nobody else makes a dataset of this user."""
    _lock(connection, f"datasets {owner}")


def _lock(connection: Connection, *whats: str) -> None:
    if whats and connection.dialect.name != SQLITE:
        connection.execute(LOCK, [{"what": what} for what in whats])
