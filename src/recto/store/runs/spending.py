"""Spending and savings of users per day (UTC), added up as calls end: usage, tokens saved by folding, prefix breaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Table,
    bindparam,
    case,
    cast,
    func,
    literal,
    null,
    select,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.expression import ColumnCollection

from recto.conversation.json import load_object
from recto.page.savings import SavingKind
from recto.store.ports import CallEnd
from recto.store.schema import RUNS, SAVINGS, SPENDING
from recto.store.statement import Statement, StatementValues, param

USAGE = {"input": "inputTokens", "output": "outputTokens", "cached": "cachedInputTokens"}
DAY_COLUMNS = ("day", *USAGE, "calls", "price")
SAVING_KEY, SAVING_SUMS = ("owner", "day", "agent", "kind", "name"), ("calls", "tokens", "saved", "cost")
# Sums in which an amount may be unknown.
MONEY = frozenset({"price", "saved", "cost"})


@dataclass(frozen=True, kw_only=True)
class DailySpending:
    """Usage of a user's calls on a day. `price` is the sum of the known prices; None if no price is known."""

    day: str
    input: int = 0
    output: int = 0
    cached: int = 0
    calls: int = 0
    price: int | None = None


@dataclass(frozen=True, kw_only=True)
class DailySaving:
    """Savings of a rule (`fold`), or breaks with a cause (`break`), in the calls of an agent.

    `saved` and `cost` are sums of the known amounts, in billionths; None if no amount is known.
    """

    agent: str
    kind: SavingKind
    name: str
    calls: int
    tokens: int
    saved: int | None
    cost: int | None


def _make_adder(
    table: Table, key: Sequence[str], values: Mapping[str, ColumnElement[object]], condition: ColumnElement[bool]
) -> Statement:
    """Return the statement that adds values to the row with their key."""
    rows = select(*values.values()).where(condition)
    names = [name for name in values if name not in key]
    on_postgres, on_sqlite = (kind.insert(table).from_select(list(values), rows) for kind in (postgresql, sqlite))
    return Statement(
        on_postgres.on_conflict_do_update(index_elements=key, set_=_add(table, on_postgres.excluded, names)),
        on_sqlite=on_sqlite.on_conflict_do_update(index_elements=key, set_=_add(table, on_sqlite.excluded, names)),
    )


def _add(
    table: Table, new: ColumnCollection[str, ColumnElement[int]], names: Sequence[str]
) -> dict[str, ColumnElement[int]]:
    old = table.c
    sums = {name: old[name] + new[name] for name in names}
    for name in MONEY.intersection(names):
        total = func.coalesce(old[name], 0) + func.coalesce(new[name], 0)
        sums[name] = case((old[name].is_(None) & new[name].is_(None), null()), else_=total)
    return sums


def _make_params(table: Table, names: Sequence[str]) -> dict[str, ColumnElement[object]]:
    params: dict[str, ColumnElement[object]] = {name: param(f"new_{name}", table.c[name]) for name in names}
    return {**params, "calls": literal(1, table.c.calls.type)}


_is_run = RUNS.c.id == bindparam("this")
_usage = _make_params(SPENDING, ("day", *USAGE, "price"))
_saving = _make_params(SAVINGS, ("day", "kind", "name", "tokens", "saved", "cost"))
_user = param("new_owner", SPENDING.c.owner)
ADD_SPENDING = _make_adder(SPENDING, ("owner", "day"), {"owner": RUNS.c.owner, **_usage}, _is_run)
# The WHERE is required, because SQLite would otherwise parse ON CONFLICT after SELECT as a join.
ADD_SPENDING_OF_USER = _make_adder(SPENDING, ("owner", "day"), {"owner": _user, **_usage}, true())
ADD_SAVING = _make_adder(SAVINGS, SAVING_KEY, {"owner": RUNS.c.owner, "agent": RUNS.c.agent, **_saving}, _is_run)
SPENDING_OF_DAY = Statement(
    select(*[SPENDING.c[name] for name in DAY_COLUMNS]).where(
        SPENDING.c.owner == bindparam("owner_is"), SPENDING.c.day == bindparam("day_is")
    )
)


def add_spending(connection: Connection, run: str, call: CallEnd) -> None:
    """Add a call's usage to its user's day."""
    ADD_SPENDING.count(connection, {**_usage_values(call), "this": run})


def add_spending_of_user(connection: Connection, owner: str, call: CallEnd) -> None:
    """Add the usage of a call without a run to its user's day."""
    ADD_SPENDING_OF_USER.count(connection, {**_usage_values(call), "new_owner": owner})


def _usage_values(call: CallEnd) -> StatementValues:
    usage = (load_object(call.usage) if call.usage else None) or {}
    counts = {f"new_{name}": count if isinstance(count := usage.get(key), int) else 0 for name, key in USAGE.items()}
    return {**counts, "new_day": _day_of(call), "new_price": call.price}


def add_savings(connection: Connection, run: str, call: CallEnd) -> None:
    """Add a call's savings to its user's day."""
    rows = [
        {
            "this": run,
            "new_day": _day_of(call),
            "new_kind": saving.kind,
            "new_name": saving.name,
            "new_tokens": saving.tokens,
            "new_saved": saving.benefit,
            "new_cost": saving.cost,
        }
        for saving in call.savings
    ]
    ADD_SAVING.run_many(connection, rows)


def _day_of(call: CallEnd) -> str:
    return call.ended.astimezone(UTC).date().isoformat()


def read_spending(connection: Connection, owner: str, day: date) -> DailySpending:
    """Return a user's usage on a day (UTC)."""
    rows = SPENDING_OF_DAY.rows(connection, {"owner_is": owner, "day_is": day.isoformat()})
    values = dict(zip(DAY_COLUMNS, rows[0], strict=True)) if rows else {}
    return DailySpending(**{"day": day.isoformat(), **values})  # pyright: ignore[reportArgumentType] - by name


def read_savings(
    connection: Connection, owner: str, since: date, until: date, agent: str | None = None
) -> list[DailySaving]:
    """Return a user's savings and prefix breaks between two days (UTC, inclusive), of one agent or of all."""
    columns, keys = SAVINGS.c, (SAVINGS.c.agent, SAVINGS.c.kind, SAVINGS.c.name)
    # Cast the sums, because PostgreSQL sums integers into another type.
    sums = [cast(func.sum(columns[name]), BigInteger).label(name) for name in SAVING_SUMS]
    is_between = columns.day.between(since.isoformat(), until.isoformat())
    query = select(*keys, *sums).where(columns.owner == owner, is_between)
    query = query if agent is None else query.where(columns.agent == agent)
    rows = connection.execute(query.group_by(*keys).order_by(*keys)).mappings()
    return [DailySaving(**row) for row in rows]
