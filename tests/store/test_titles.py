"""Titles on SQLite: upper and lower case are the same in every script, as SQLite itself would not have it."""

from pathlib import Path

import pytest

from recto.store.store import open_store
from recto.store.threads.thread_rows import ThreadsQuery
from tests.store.suite.samples import begin


@pytest.mark.parametrize("search", ["ÄPFEL", "äpfel", "Äpf", "STRASSE", "привет", "ΟΔΌΣ", "%", "_"])
async def test_P17_titles_are_found_in_any_case_of_any_script(tmp_path: Path, search: str):
    store = await open_store(f"sqlite:///{tmp_path / 'recto.db'}")
    await begin(store, "r1")
    await store.rename("ann", "thread-1", "Äpfel Straße ПРИВЕТ οδός")
    found = await store.list_threads("ann", ThreadsQuery(search=search))
    assert [thread.id for thread in found.threads] == ([] if search in "%_" else ["thread-1"])
    await store.close()
