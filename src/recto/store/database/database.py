"""The database port, and the advisory locks that transactions take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection, text

from recto.store.statement import SQLITE

Result = TypeVar("Result")
Transaction: TypeAlias = Callable[[Connection], Result]
LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:what, 0))")


class Database(Protocol):
    """A database. `write` returns after the commit; if it raises, it stored nothing."""

    @property
    def problem(self) -> str | None:
        """Reason why writes fail; None while they succeed."""
        ...

    @property
    def is_shared(self) -> bool:
        """True if several servers may use it at once."""
        ...

    async def write(self, work: Transaction[Result], *, size: int | None = None) -> Result:
        """Run work in a transaction. `size` is the approximate number of bytes written: SQLite writes small ones at
        once.
        """
        ...

    async def write_first(self, work: Transaction[Result]) -> Result:
        """Run work like `write`, ahead of the queue of other writes."""
        ...

    async def read(self, work: Transaction[Result], *, few: bool = False) -> Result:
        """Run work in a read transaction with one snapshot. Changes are rolled back.

        With `few`, the work reads a few rows by key and may run at once.
        """
        ...

    def forget(self) -> None:
        """Drop compiled statements: they hold the values of their first use."""
        ...

    async def close(self) -> None: ...


def lock_user(connection: Connection, user: str) -> None:
    """Lock a user against other admissions of runs."""
    _lock(connection, f"user {user}")


def lock_thread(connection: Connection, thread: str) -> None:
    """Lock a thread against admissions and deletion. Lock its user first if both are needed."""
    _lock(connection, f"thread {thread}")


def lock_files(connection: Connection, *owners: str) -> None:
    """Lock users against other changes of their files."""
    # Sorted, so that two transactions that lock several users cannot deadlock.
    _lock(connection, *[f"files {owner}" for owner in sorted(owners)])


def lock_datasets(connection: Connection, owner: str) -> None:
    """Lock a user against other new datasets."""
    _lock(connection, f"datasets {owner}")


def _lock(connection: Connection, *names: str) -> None:
    if names and connection.dialect.name != SQLITE:
        connection.execute(LOCK, [{"what": name} for name in names])
