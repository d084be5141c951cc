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


def lock_files(connection: Connection, owner: str) -> None:
    """Nobody else adds a file of this user."""
    _lock(connection, f"files {owner}")


def _lock(connection: Connection, what: str) -> None:
    if connection.dialect.name != SQLITE:
        connection.execute(LOCK, {"what": what})
