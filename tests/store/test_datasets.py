"""How datasets are looked up: who may use one that is shared with many costs no more than one shared with few."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import cast

import pytest
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import StaticPool

from recto.store.files import datasets
from recto.store.files.datasets import StoredDataset
from recto.store.schema import METADATA
from tests.store.suite.samples import START

MANY = tuple(f"user-{number}" for number in range(1_000))


@pytest.fixture
def connection() -> Iterator[Connection]:
    """All tables, in memory, and a dataset that is shared with many."""
    engine = create_engine("sqlite://", poolclass=StaticPool, isolation_level="AUTOCOMMIT")
    with closing(engine.connect()) as opened:
        METADATA.create_all(opened)
        made = StoredDataset(id="d1", owner="ann", name="All", shared_with=MANY, created=START, updated=START)
        datasets.make(opened, made)
        yield opened
    engine.dispose()


def test_F10_who_uses_a_dataset_finds_their_own_name_among_many_by_an_index(connection: Connection):
    driver, asked = cast("sqlite3.Connection", connection.connection.driver_connection), list[str]()
    driver.set_trace_callback(asked.append)
    assert datasets.get(connection, "user-7", "d1").shared_with == ("user-7",)
    assert [one.id for one in datasets.usable(connection, "user-7", ["d1"])] == ["d1"]
    assert datasets.usable(connection, "nobody", ["d1"]) == ()
    driver.set_trace_callback(None)
    steps = [str(row[3]) for one in asked for row in driver.execute(f"EXPLAIN QUERY PLAN {one}")]
    looked = [step for step in steps if "dataset_shares" in step]
    assert looked
    assert all("(dataset=? AND user=?)" in step for step in looked)
    assert not [step for step in steps if step.startswith("SCAN")]
