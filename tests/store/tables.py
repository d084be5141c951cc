"""All tables in memory, a store within an open transaction, and the statements that work executes."""

from collections.abc import Callable, Coroutine, Generator
from contextlib import closing, contextmanager

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import StaticPool

from recto.store.database.database import Result, Transaction
from recto.store.schema import METADATA
from recto.store.statement import get_driver
from recto.store.store import Store


class OpenTransaction:
    """A database whose reads and writes all belong to one open transaction."""

    problem = None
    is_shared = False

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def write(self, work: Transaction[Result], *, size: int | None = None) -> Result:
        return work(self.connection)

    async def write_first(self, work: Transaction[Result]) -> Result:
        return work(self.connection)

    async def read(self, work: Transaction[Result], *, few: bool = False) -> Result:
        return work(self.connection)

    def forget(self) -> None:
        """Keep everything."""

    async def close(self) -> None:
        """Leave the transaction to its owner."""


def store_in(connection: Connection) -> Store:
    return Store(OpenTransaction(connection))


def complete(work: Coroutine[object, None, Result]) -> Result:
    """Return the result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("the work waits")


@contextmanager
def tables() -> Generator[Connection]:
    engine = create_engine("sqlite://", poolclass=StaticPool, isolation_level="AUTOCOMMIT")
    with closing(engine.connect()) as connection:
        connection.execute(text("PRAGMA foreign_keys=ON"))
        METADATA.create_all(connection)
        yield connection
    engine.dispose()


def statements_of(connection: Connection, work: Callable[[], object]) -> list[str]:
    executed = list[str]()
    get_driver(connection).set_trace_callback(executed.append)
    work()
    get_driver(connection).set_trace_callback(None)
    return executed


def plan_of(connection: Connection, *works: Callable[[], object]) -> list[str]:
    """Return SQLite's plan of each statement that work executes, step by step."""
    executed = [one for work in works for one in statements_of(connection, work)]
    return [str(row[3]) for one in executed for row in get_driver(connection).execute(f"EXPLAIN QUERY PLAN {one}")]
