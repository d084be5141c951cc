"""What a store promises of files that many come for at once: each has its blob, none is left behind, all is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from recto.conversation.attachment import Attachment
from recto.errors import FileRefused, NotFound
from recto.store.store import Store
from tests.store.suite.attachments import NO_LIMIT, SIZE, add, attachment, is_there, with_files
from tests.store.suite.samples import admission, at

TOGETHER, ATTEMPTS = 12, 6


class MeetingSuite:
    """Two come for the same file at once."""

    # P9
    async def test_the_same_bytes_from_many_at_once_are_one_blob(self, store: Store):
        copies = [attachment() for _ in range(TOGETHER)]
        found = await asyncio.gather(*[store.add_attachment(each, NO_LIMIT) for each in copies])
        assert len({one.blob for one in found}) == 1
        assert await store.known_blobs([each.blob for each in copies]) == frozenset({found[0].blob})

    # P9
    async def test_of_many_files_at_once_no_more_are_taken_than_there_is_room_for(self, store: Store):
        copies = [attachment(content=str(number)) for number in range(TOGETHER)]
        adding = [store.add_attachment(each, 3 * SIZE) for each in copies]
        found = await asyncio.gather(*adding, return_exceptions=True)
        assert sorted({type(one).__name__ for one in found}) == ["Attachment", "FileRefused"]
        assert await store.attachment_bytes("ann") == 3 * SIZE
        kept = frozenset(one.blob for one in found if isinstance(one, Attachment))
        assert await store.known_blobs([each.blob for each in copies]) == kept

    # P9
    async def test_bytes_that_come_while_the_last_who_has_them_deletes_them_have_a_blob(self, store: Store):
        for attempt in range(ATTEMPTS):
            last = await add(store, content=str(attempt))
            new = [attachment(content=str(attempt)) for _ in range(TOGETHER // 2)]
            added = [store.add_attachment(each, NO_LIMIT) for each in new]
            *found, gone = await asyncio.gather(*added, store.delete_attachment("ann", last.id))
            kept = frozenset(one.blob for one in found if isinstance(one, Attachment))
            assert len(kept) == 1
            assert await store.known_blobs([last.blob, *kept]) == kept
            assert gone == (() if last.blob in kept else (last.blob,))

    # P9
    async def test_of_many_who_delete_the_last_attachments_of_a_blob_one_is_told_of_it(self, store: Store):
        for attempt in range(ATTEMPTS):
            made = [await add(store, content=str(attempt)) for _ in range(TOGETHER // 2)]
            found = await asyncio.gather(*[store.delete_attachment("ann", one.id) for one in made])
            assert [blob for blobs in found for blob in blobs] == [made[0].blob]
            assert await store.known_blobs([made[0].blob]) == frozenset[str]()

    # P9
    async def test_whatever_comes_and_goes_at_once_what_is_left_is_counted(self, store: Store):
        for _ in range(ATTEMPTS):
            old = [await add(store, owner, content) for owner in ("ann", "bob") for content in "aabc"]
            changes: list[Awaitable[object]] = [
                *[store.add_attachment(attachment("ann", content, created=at(9)), NO_LIMIT) for content in "abcdef"],
                *[store.delete_attachment(one.owner, one.id) for one in old[::3]],
                *[store.delete_unused_attachments(at(5), 2) for _ in range(4)],
                store.delete_user("bob"),
            ]
            done = await asyncio.gather(*changes, return_exceptions=True)
            assert [one for one in done if isinstance(one, Exception) and not isinstance(one, NotFound)] == []
            for owner in ("ann", "bob"):
                left = (await store.list_attachments(owner, None, 999)).attachments
                assert await store.attachment_bytes(owner) == sum(one.size for one in left)
                with pytest.raises(FileRefused, match=f"you would have {len(left) + 2} files"):
                    await fill(store, owner, len(left) + 1)

    # P9
    async def test_of_many_who_delete_the_same_attachment_one_does(self, store: Store):
        one = await add(store)
        deleting = [store.delete_attachment("ann", one.id) for _ in range(TOGETHER)]
        found = await asyncio.gather(*deleting, return_exceptions=True)
        assert sorted(type(one).__name__ for one in found) == [*["NotFound"] * (TOGETHER - 1), "tuple"]
        assert [blobs for blobs in found if isinstance(blobs, tuple)] == [(one.blob,)]

    # P10
    async def test_a_run_that_names_a_file_that_is_cleaned_just_now_has_it_or_is_refused(self, store: Store):
        for attempt in range(ATTEMPTS):
            one = await add(store, content=str(attempt))
            asked = with_files(admission(f"r{attempt}", f"thread-{attempt}"), one)
            cleaning = [store.delete_unused_attachments(at(5), 9) for _ in range(3)]
            admitted, *_ = await asyncio.gather(store.admit(asked), *cleaning, return_exceptions=True)
            kept = await is_there(store, one)
            assert type(admitted).__name__ == ("Admitted" if kept else "Refused")
            assert [ref.is_there for ref in await store.file_refs(asked.thread)] == ([True] if kept else [])


async def fill(store: Store, owner: str, files: int) -> None:
    """One file more, which there is room for, and another, which is too many. The first goes again."""
    extra = await store.add_attachment(attachment(owner, "extra"), NO_LIMIT, files)
    try:
        await store.add_attachment(attachment(owner, "too many"), NO_LIMIT, files)
    finally:
        await store.delete_attachment(owner, extra.id)
