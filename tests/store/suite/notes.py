"""Notes: all callers get the same value."""

import asyncio

from recto.store.store import Store

TOGETHER = 12


class NoteSuite:
    async def test_the_first_value_of_a_note_stays_until_it_is_set(self, store: Store):
        assert await store.notes.find("storage") is None
        assert await store.notes.add("storage", "四 one") == "四 one"
        assert await store.notes.add("storage", "two") == "四 one"
        assert (await store.notes.find("storage"), await store.notes.find("other")) == ("四 one", None)
        await store.notes.set("storage", "two")
        assert (await store.notes.find("storage"), await store.notes.add("storage", "three")) == ("two", "two")
        await store.notes.set("other", "")
        assert (await store.notes.find("other"), await store.notes.add("other", "x")) == ("", "")

    async def test_concurrent_adds_of_a_note_return_the_same_value(self, store: Store):
        results = await asyncio.gather(*[store.notes.add("storage", str(number)) for number in range(TOGETHER)])
        assert (len(set(results)), await store.notes.find("storage")) == (1, results[0])
