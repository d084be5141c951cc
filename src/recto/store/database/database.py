"""A database, as the store uses it: work on a connection in a transaction of its own, and the locks it takes there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection, text

from recto.store.statement import SQLITE

Result = TypeVar("Result")
Transaction: TypeAlias = Callable[[Connection], Result]
LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:what, 0))")


class Database(Protocol):
    """A database. What `write` returns is committed; what it raises left nothing behind."""

    @property
    def problem(self) -> str | None:
        """Why writes fail at present; None while they succeed."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether several servers may use it at once."""
        ...

    async def write(self, work: Transaction[Result], *, size: int | None = None) -> Result:
        """Run work in a transaction. `size` is about how many bytes it writes: a small one may be made at once."""
        ...

    async def write_first(self, work: Transaction[Result]) -> Result:
        """As `write`, for what must not wait for long: it does not stand behind others."""
        ...

    async def read(self, work: Transaction[Result], *, few: bool = False) -> Result:
        """One transaction that sees one moment, whatever is written meanwhile. What it writes is not kept.

        One that finds a `few` rows by their key may be made at once.
        """
        ...

    def forget(self) -> None:
        """Keep no statement that was compiled: it has the values that it was first asked with."""
        ...

    async def close(self) -> None: ...


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
