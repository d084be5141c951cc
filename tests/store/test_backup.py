"""Backups of a database in use: complete, of one moment, and never over an existing file."""

import asyncio
from pathlib import Path

import pytest

from recto.errors import SettingsError, StoreDown
from recto.store.database.sqlite import backup_file
from recto.store.store import Store, open_store
from tests.store.suite.samples import at, begin, events
from tests.waiting import settle

WRITES = 200


async def test_C1_a_backup_during_writes_contains_whole_writes(store: Store, tmp_path: Path):
    lease = await begin(store, "r1")

    async def write() -> None:
        for _ in range(WRITES):
            await store.runs.record(lease, events(b"a" * 5000, b"b"), at(1))

    writing = asyncio.create_task(write())
    while (await store.runs.find("ann", "r1")).last_event < 20:
        await settle(1)
    await asyncio.to_thread(backup_file, tmp_path / "recto.db", tmp_path / "copy.db")
    await writing
    copy = await open_store(f"sqlite:///{tmp_path / 'copy.db'}")
    result = await copy.runs.find("ann", "r1")
    assert 20 <= result.last_event <= 2 * WRITES
    assert len(await copy.events.list_after(lease.run, 0, 10 * WRITES)) == result.last_event
    assert result.last_event % 2 == 0
    await copy.close()
    assert sorted(path.name for path in tmp_path.glob("copy.db*")) == ["copy.db"]


async def test_C1_nothing_is_overwritten(store: Store, tmp_path: Path):
    target = tmp_path / "mine.txt"
    target.write_text("precious", encoding="utf-8")
    for claim in (target, tmp_path):
        with pytest.raises(SettingsError, match="Choose a new one"):
            backup_file(tmp_path / "recto.db", claim)
    assert target.read_text(encoding="utf-8") == "precious"


async def test_C1_a_missing_folder_or_database_is_an_error_and_leaves_nothing(store: Store, tmp_path: Path):
    before = sorted(tmp_path.iterdir())
    for source, target in (("recto.db", "nowhere/copy.db"), ("unknown.db", "copy.db")):
        with pytest.raises(StoreDown, match="could not be copied"):
            backup_file(tmp_path / source, tmp_path / target)
    assert (store.problem, sorted(tmp_path.iterdir())) == (None, before)
