"""SQL of what all files of a user come to. It changes with every one that comes or goes, in the same transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

from sqlalchemy import Connection, bindparam, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from recto.store.schema import FILE_TOTALS
from recto.store.statement import Statement


class Total(NamedTuple):
    """So many bytes in so many files."""

    bytes: int = 0
    files: int = 0


_of_owner = FILE_TOTALS.c.owner == bindparam("owner_is")
FIND_TOTALS = Statement(select(FILE_TOTALS.c.bytes, FILE_TOTALS.c.files).where(_of_owner))
LOWER = Statement(
    update(FILE_TOTALS)
    .where(_of_owner)
    .values(bytes=FILE_TOTALS.c.bytes - bindparam("less_bytes"), files=FILE_TOTALS.c.files - bindparam("less_files"))
)
FORGET = Statement(delete(FILE_TOTALS).where(_of_owner, FILE_TOTALS.c.files == 0))


def _raise() -> Statement:
    on_postgres, on_sqlite = (
        clause.on_conflict_do_update(
            index_elements=["owner"],
            set_={name: FILE_TOTALS.c[name] + clause.excluded[name] for name in ("bytes", "files")},
        )
        for clause in (postgresql.insert(FILE_TOTALS), sqlite.insert(FILE_TOTALS))
    )
    return Statement(on_postgres, columns=("owner", "bytes", "files"), on_sqlite=on_sqlite)


RAISE = _raise()


def total_of(connection: Connection, owner: str) -> Total:
    """What all files of a user come to."""
    rows = FIND_TOTALS.rows(connection, {"owner_is": owner})
    return Total(*cast("tuple[int, int]", rows[0])) if rows else Total()


def raise_total(connection: Connection, owner: str, size: int) -> None:
    """One file more."""
    RAISE.many(connection, [{"owner": owner, "bytes": size, "files": 1}])


def lower_totals(connection: Connection, gone: Mapping[str, Total]) -> None:
    """So much less of each of these users. Of a user without files nothing is left."""
    rows = [{"owner_is": owner, "less_bytes": less.bytes, "less_files": less.files} for owner, less in gone.items()]
    LOWER.many(connection, rows)
    FORGET.many(connection, [{"owner_is": owner} for owner in gone])
