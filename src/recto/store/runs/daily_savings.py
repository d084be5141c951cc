"""SQL of savings: tokens saved by folding and prefix breaks, per user and day, added up as calls end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date

from sqlalchemy import BigInteger, ColumnElement, Connection, bindparam, case, cast, func, literal, null, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.expression import ColumnCollection

from recto.page.savings import SavingKind
from recto.store.ports import CallEnd
from recto.store.schema import RUNS, SAVINGS
from recto.store.statement import Statement, param

KEY = ("owner", "day", "agent", "kind", "name")
COUNTS, MONEY = ("calls", "tokens"), ("saved", "cost")
SUMS = (*COUNTS, *MONEY)


@dataclass(frozen=True, kw_only=True)
class DailySaving:
    """Savings of a rule (`fold`), or breaks with a cause (`break`), in the calls of an agent.

    `saved` and `cost` add up the known amounts, in billionths; None if none is known.
    """

    agent: str
    kind: SavingKind
    name: str
    calls: int
    tokens: int
    saved: int | None
    cost: int | None


def _save() -> Statement:
    given = {name: param(f"new_{name}", SAVINGS.c[name]) for name in ("day", "kind", "name", "tokens", *MONEY)}
    row = {"owner": RUNS.c.owner, "agent": RUNS.c.agent, "calls": literal(1, SAVINGS.c.calls.type), **given}
    names = (*KEY, *SUMS)
    rows = select(*[row[name] for name in names]).where(RUNS.c.id == bindparam("this"))
    on_postgres, on_sqlite = (kind.insert(SAVINGS).from_select(names, rows) for kind in (postgresql, sqlite))
    return Statement(
        on_postgres.on_conflict_do_update(index_elements=KEY, set_=_added(on_postgres.excluded)),
        on_sqlite=on_sqlite.on_conflict_do_update(index_elements=KEY, set_=_added(on_sqlite.excluded)),
    )


def _added(new: ColumnCollection[str, ColumnElement[int]]) -> dict[str, ColumnElement[int]]:
    old = SAVINGS.c
    money = {
        name: case(
            (old[name].is_(None) & new[name].is_(None), null()),
            else_=func.coalesce(old[name], 0) + func.coalesce(new[name], 0),
        )
        for name in MONEY
    }
    return {**{name: old[name] + new[name] for name in COUNTS}, **money}


SAVE = _save()


def save(connection: Connection, run: str, call: CallEnd) -> None:
    """Add a call's savings to its user's day."""
    day = call.ended.astimezone(UTC).date().isoformat()
    rows = [
        {
            "this": run,
            "new_day": day,
            "new_kind": one.kind,
            "new_name": one.name,
            "new_tokens": one.tokens,
            "new_saved": one.benefit,
            "new_cost": one.cost,
        }
        for one in call.savings
    ]
    SAVE.run_many(connection, rows)


def saved(
    connection: Connection, owner: str, since: date, until: date, agent: str | None = None
) -> Sequence[DailySaving]:
    """Return a user's savings and prefix breaks between two days (UTC, inclusive), of one agent or of all."""
    of, keys = SAVINGS.c, (SAVINGS.c.agent, SAVINGS.c.kind, SAVINGS.c.name)
    # PostgreSQL sums integers into another type.
    sums = [cast(func.sum(of[name]), BigInteger).label(name) for name in SUMS]
    query = select(*keys, *sums).where(of.owner == owner, of.day >= since.isoformat(), of.day <= until.isoformat())
    query = query if agent is None else query.where(of.agent == agent)
    rows = connection.execute(query.group_by(*keys).order_by(*keys)).mappings()
    return [DailySaving(**row) for row in rows]
