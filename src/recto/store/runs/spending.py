"""SQL of spending: usage of a user's calls per day, added up as they end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, literal, null, select, true
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.expression import ColumnCollection

from recto.conversation.json import load_object
from recto.store.ports import CallEnd
from recto.store.schema import RUNS, SPENDING
from recto.store.statement import Statement, StatementValues, param

COUNTS = ("input", "output", "cached")
USAGE = {"input": "inputTokens", "output": "outputTokens", "cached": "cachedInputTokens"}
NAMES = ("owner", "day", *COUNTS, "calls", "price")


@dataclass(frozen=True, kw_only=True)
class DailySpending:
    """Usage of a user's calls on a day. `price` adds up the known prices; None if none is known."""

    day: str
    input: int = 0
    output: int = 0
    cached: int = 0
    calls: int = 0
    price: int | None = None


def _spend(owner: ColumnElement[object], *where: ColumnElement[bool]) -> Statement:
    """Return the statement that adds a call to an owner's day."""
    values = [param(f"new_{name}", SPENDING.c[name]) for name in ("day", *COUNTS)]
    price = param("new_price", SPENDING.c.price)
    # Without a WHERE, SQLite parses ON CONFLICT after SELECT as a join.
    rows = select(owner, *values, literal(1, SPENDING.c.calls.type), price).where(*(where or (true(),)))
    on_postgres, on_sqlite = (kind.insert(SPENDING).from_select(NAMES, rows) for kind in (postgresql, sqlite))
    key = ("owner", "day")
    return Statement(
        on_postgres.on_conflict_do_update(index_elements=key, set_=_added(on_postgres.excluded)),
        on_sqlite=on_sqlite.on_conflict_do_update(index_elements=key, set_=_added(on_sqlite.excluded)),
    )


def _added(new: ColumnCollection[str, ColumnElement[int]]) -> dict[str, ColumnElement[int]]:
    old = SPENDING.c
    both = func.coalesce(old.price, 0) + func.coalesce(new["price"], 0)
    price = case((old.price.is_(None) & new["price"].is_(None), null()), else_=both)
    return {**{name: old[name] + new[name] for name in (*COUNTS, "calls")}, "price": price}


SPEND = _spend(RUNS.c.owner, RUNS.c.id == bindparam("this"))
SPEND_BESIDE = _spend(param("new_owner", SPENDING.c.owner))
SPENT = Statement(
    select(*[SPENDING.c[name] for name in NAMES if name != "owner"]).where(
        SPENDING.c.owner == bindparam("owner_is"), SPENDING.c.day == bindparam("day_is")
    )
)


def spend(connection: Connection, run: str, call: CallEnd) -> None:
    """Add a call's usage to its user's day."""
    SPEND.count(connection, {**_taken(call), "this": run})


def spend_beside(connection: Connection, owner: str, call: CallEnd) -> None:
    """Add the usage of a call without a run to its user's day."""
    SPEND_BESIDE.count(connection, {**_taken(call), "new_owner": owner})


def _taken(call: CallEnd) -> StatementValues:
    usage = (load_object(call.usage) if call.usage else None) or {}
    counts = {f"new_{name}": count if isinstance(count := usage.get(key), int) else 0 for name, key in USAGE.items()}
    day = call.ended.astimezone(UTC).date().isoformat()
    return {**counts, "new_day": day, "new_price": call.price}


def spent(connection: Connection, owner: str, day: date) -> DailySpending:
    """Return a user's usage on a day (UTC)."""
    rows = SPENT.rows(connection, {"owner_is": owner, "day_is": day.isoformat()})
    names = [name for name in NAMES if name != "owner"]
    values = dict(zip(names, rows[0], strict=True)) if rows else {}
    return DailySpending(**{"day": day.isoformat(), **values})  # pyright: ignore[reportArgumentType] - by name
