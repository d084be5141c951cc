"""The database port, the base of repositories, and the advisory locks that transactions take."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import CoroutineType
from typing import Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection, text

from recto.store.statement import SQLITE

Result = TypeVar("Result")
Owner = TypeVar("Owner", bound="Repository")
Params = ParamSpec("Params")
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
        """True if several servers may use this database at once."""
        ...

    async def write(self, work: Transaction[Result], *, size: int | None = None) -> Result:
        """Run work in a transaction.

        `size` is the approximate number of bytes written. SQLite runs small writes on the event loop.
        """
        ...

    async def write_first(self, work: Transaction[Result]) -> Result:
        """Run work like `write`, ahead of the queue of other writes."""
        ...

    async def read(self, work: Transaction[Result], *, few: bool = False) -> Result:
        """Run work in a read transaction with one snapshot. Roll back any changes.

        Set `few` if the work reads only a few rows by key: SQLite may then run it on the event loop.
        """
        ...

    def forget(self) -> None:
        """Drop compiled statements, because they retain the values of their first use."""
        ...

    async def close(self) -> None: ...


class Repository:
    """SQL for one kind of row. Each method with a decorator of this module runs in its own transaction.

    The decorator supplies the connection: callers omit that argument and await the result.
    """

    def __init__(self, database: Database) -> None:
        self.database = database


Method: TypeAlias = Callable[Concatenate[Owner, Connection, Params], Result]
# Quoted: CoroutineType is subscriptable only in annotations. Protocols with async methods require it.
AsyncMethod: TypeAlias = "Callable[Concatenate[Owner, Params], CoroutineType[None, None, Result]]"


def read_transaction(method: Method[Owner, Params, Result]) -> AsyncMethod[Owner, Params, Result]:
    """Run a method in a read transaction with one snapshot."""

    @wraps(method)
    async def run(owner: Owner, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return await owner.database.read(lambda connection: method(owner, connection, *args, **kwargs))

    return run


def key_lookup(method: Method[Owner, Params, Result]) -> AsyncMethod[Owner, Params, Result]:
    """Run a method that reads a few rows by key in a read transaction. SQLite may run it on the event loop."""

    @wraps(method)
    async def run(owner: Owner, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return await owner.database.read(lambda connection: method(owner, connection, *args, **kwargs), few=True)

    return run


def write_transaction(method: Method[Owner, Params, Result]) -> AsyncMethod[Owner, Params, Result]:
    """Run a method in a write transaction."""

    @wraps(method)
    async def run(owner: Owner, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return await owner.database.write(lambda connection: method(owner, connection, *args, **kwargs))

    return run


def priority_write(method: Method[Owner, Params, Result]) -> AsyncMethod[Owner, Params, Result]:
    """Run a method in a write transaction ahead of the queue of other writes."""

    @wraps(method)
    async def run(owner: Owner, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return await owner.database.write_first(lambda connection: method(owner, connection, *args, **kwargs))

    return run


def lock_user(connection: Connection, user: str) -> None:
    """Lock a user against other admissions of runs."""
    _lock(connection, f"user {user}")


def lock_thread(connection: Connection, thread: str) -> None:
    """Lock a thread against admissions and deletion. To lock a user as well, lock the user first."""
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
