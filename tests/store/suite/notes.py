"""What a store promises of notes: whoever takes one, all get the same."""

import asyncio

from recto.store.store import Store

TOGETHER = 12


class NoteSuite:
    async def test_a_note_says_what_was_written_first_until_it_is_changed(self, store: Store):
        assert await store.note("storage") is None
        assert await store.take_note("storage", "四 one") == "四 one"
        assert await store.take_note("storage", "two") == "四 one"
        assert (await store.note("storage"), await store.note("other")) == ("四 one", None)
        await store.change_note("storage", "two")
        assert (await store.note("storage"), await store.take_note("storage", "three")) == ("two", "two")
        await store.change_note("other", "")
        assert (await store.note("other"), await store.take_note("other", "x")) == ("", "")

    async def test_of_many_who_take_a_note_at_once_all_get_the_same(self, store: Store):
        found = await asyncio.gather(*[store.take_note("storage", str(number)) for number in range(TOGETHER)])
        assert (len(set(found)), await store.note("storage")) == (1, found[0])
