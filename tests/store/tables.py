"""All tables in memory, and what is asked of them."""

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import StaticPool

from recto.store.schema import METADATA
from recto.store.statement import get_driver


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
    """How SQLite looks up the rows that work asks for, step by step."""
    executed = [one for work in works for one in statements_of(connection, work)]
    return [str(row[3]) for one in executed for row in get_driver(connection).execute(f"EXPLAIN QUERY PLAN {one}")]
