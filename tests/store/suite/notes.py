"""What a store promises of notes: whoever takes one, all get the same."""

import asyncio

from recto.store.store import Store

TOGETHER = 12


class NoteSuite:
    async def test_a_note_says_what_was_written_first_until_it_is_changed(self, store: Store):
        assert await store.notes.find("storage") is None
        assert await store.notes.add("storage", "四 one") == "四 one"
        assert await store.notes.add("storage", "two") == "四 one"
        assert (await store.notes.find("storage"), await store.notes.find("other")) == ("四 one", None)
        await store.notes.set("storage", "two")
        assert (await store.notes.find("storage"), await store.notes.add("storage", "three")) == ("two", "two")
        await store.notes.set("other", "")
        assert (await store.notes.find("other"), await store.notes.add("other", "x")) == ("", "")

    async def test_of_many_who_take_a_note_at_once_all_get_the_same(self, store: Store):
        found = await asyncio.gather(*[store.notes.add("storage", str(number)) for number in range(TOGETHER)])
        assert (len(set(found)), await store.notes.find("storage")) == (1, found[0])
