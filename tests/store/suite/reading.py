"""What a store promises of reading: what was written comes back as it was, to its owner only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recto.errors import NotFound
from recto.store.ports import RunChange
from recto.store.store import Store
from tests.store.suite.samples import admission, admit, at, begin, events, every_kind_of_entry, said


class ReadingSuite:
    """Readers read."""

    async def test_a_run_is_found_by_its_id_and_by_its_name(self, store: Store):
        run = await admit(store, "r1")
        assert await store.find_run("ann", run.id) == run
        assert await store.find_run("ann", "r1") == run

    async def test_a_run_of_somebody_else_is_not_found(self, store: Store):
        run = await admit(store, "r1")
        for id in (run.id, "r1", "unknown"):
            with pytest.raises(NotFound, match=id):
                await store.find_run("bob", id)

    async def test_a_run_named_by_the_id_of_another_does_not_hide_it(self, store: Store):
        run = await admit(store, "r1", "a")
        named = (await store.admit(admission(run.id, "b"))).run
        assert (await store.find_run("ann", run.id)).id == run.id
        assert (await store.find_run("ann", named.id)).id == named.id

    async def test_every_kind_of_entry_comes_back_as_it_was(self, store: Store):
        lease = await begin(store, "r1")
        entries = every_kind_of_entry()
        await store.record(lease, RunChange(entries=entries), at(1))
        stored = [replace(entry, seq=seq) for seq, entry in enumerate(entries, start=1)]
        for found, wanted in zip(await store.log_after("thread-1"), stored, strict=True):
            assert found == wanted

    async def test_a_log_is_read_from_behind_a_number(self, store: Store):
        lease = await begin(store, "r1")
        await store.record(lease, RunChange(entries=[said(f"m{number}") for number in range(1, 6)]), at(1))
        assert [entry.id for entry in await store.log_after("thread-1", 3)] == ["m4", "m5"]
        assert list(await store.log_after("thread-1", 5)) == []
        assert list(await store.log_after("unknown")) == []

    async def test_events_are_read_a_page_at_a_time(self, store: Store):
        lease = await begin(store, "r1")
        other = await begin(store, "r2", "thread-2")
        await store.record(lease, events(b"1", b"2", b"3", b"4", b"5"), at(1))
        await store.record(other, events(b"other"), at(1))
        pages = [await store.events(lease.run, after, limit=2) for after in (0, 2, 4, 5)]
        assert [[event.body for event in page] for page in pages] == [[b"1", b"2"], [b"3", b"4"], [b"5"], []]
        assert list(await store.events("unknown", after=0, limit=2)) == []

    async def test_bodies_of_events_are_kept_to_the_byte(self, store: Store):
        lease = await begin(store, "r1")
        bodies = [b"", bytes(range(256)), b'{ "n": 1.0e3 }', "四 😀".encode(), b"x" * 1_000_000]
        await store.record(lease, RunChange(events=bodies), at(1))
        assert [event.body for event in await store.events(lease.run, after=0, limit=9)] == bodies

    async def test_a_store_in_order_passes_its_probe(self, store: Store):
        await admit(store, "r1")
        await store.probe()
        assert store.problem is None
