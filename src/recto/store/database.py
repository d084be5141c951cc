"""What a database is to the store: work on a connection, in a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection

Result = TypeVar("Result")
Work: TypeAlias = Callable[[Connection], Result]


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

    async def write(self, work: Work[Result]) -> Result: ...
    async def write_first(self, work: Work[Result]) -> Result:
        """As `write`, for what must not wait for long: it does not stand behind others."""
        ...

    async def read(self, work: Work[Result]) -> Result: ...
    async def close(self) -> None: ...
