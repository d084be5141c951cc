"""What a fork copies beside the log, in the tables themselves; and which index answers for history."""

import sqlite3
from contextlib import closing
from pathlib import Path

from recto.conversation.log import RolledBack
from recto.store.ports import RunChange, RunEnding
from recto.store.store import Store, open_store
from recto.store.threads.history import HistoryQuery
from tests.store.suite.calls import call
from tests.store.suite.samples import at, begin, said


async def write(store: Store) -> None:
    lease = await begin(store, "r1")
    entries = [said("m1"), said("m2"), RolledBack(id="b", to="m2")]
    await store.record(lease, RunChange(entries=entries, call=call(1, "ab"), ending=RunEnding(outcome="done")), at(1))


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


async def test_P13_neither_a_day_nor_what_hides_it_is_looked_for_in_the_whole_log(tmp_path: Path):
    path = tmp_path / "recto.db"
    store = await open_store(f"sqlite:///{path}")
    await write(store)
    assert not (await store.history("ann", HistoryQuery())).has_more
    await store.close()
    marked = "SELECT seq FROM log WHERE thread = 'x' AND kind IN ('rolled_back', 'undone') ORDER BY seq"
    day = "SELECT body FROM log WHERE thread = 'x' AND time <= 7 ORDER BY time DESC, seq DESC LIMIT 16"
    plans = [str(rows(path, f"EXPLAIN QUERY PLAN {sql}")) for sql in (marked, day)]
    assert ["ix_log_turned_back" in plans[0], "ix_log_thread_time_seq" in plans[1]] == [True, True]
    assert "TEMP B-TREE" not in "".join(plans)
