"""What a store promises of attachments: each is somebody's, the same bytes are one blob, and no blob is left behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from hashlib import sha256

import pytest

from recto.errors import Conflict, FileRefused, NotFound, WireError
from recto.ids import new_id
from recto.page.attachment import Attachment, FileRef
from recto.store.ports import Admission
from recto.store.store import Store
from recto.testing.store_suite.samples import START, admission, at, expect

TOGETHER, ATTEMPTS = 12, 6
SIZE = 10
NO_LIMIT = 0


def attachment(owner: str = "ann", content: str = "a", *, name: str = "a.pdf", created: datetime = START) -> Attachment:
    """A file that came in, with an id and a blob of its own."""
    return Attachment(
        id=new_id(),
        owner=owner,
        name=name,
        kind="document",
        mime_type="application/pdf",
        size=SIZE,
        sha256=sha256(content.encode()).hexdigest(),
        blob=new_id(),
        created=created,
    )


async def add(store: Store, owner: str = "ann", content: str = "a", *, created: datetime = START) -> Attachment:
    """The same, stored."""
    return await store.add_attachment(attachment(owner, content, created=created), NO_LIMIT)


def with_files(wish: Admission, *files: Attachment) -> Admission:
    """A run whose turn has these files."""
    refs = [
        FileRef(id=f"{wish.response_id}-{place}", attachment=one.id, name=one.name, kind=one.kind)
        for place, one in enumerate(files)
    ]
    return replace(wish, files=tuple(refs))


async def is_there(store: Store, one: Attachment) -> bool:
    """Whether an attachment is found."""
    try:
        return await store.find_attachment(one.id) == one
    except NotFound:
        return False


class AttachmentSuite:
    """Files are added, found and deleted (P9)."""

    # P9
    async def test_an_attachment_is_found_as_it_came_by_its_owner_and_by_its_id(self, store: Store) -> None:
        wish = replace(attachment(), name="四 😀.pdf", size=2**40, created=at(0.5))
        expect(await store.add_attachment(wish, NO_LIMIT), wish)
        expect(await store.find_attachment(wish.id, "ann"), wish)
        expect(await store.find_attachment(wish.id), wish)
        for id, owner in ((wish.id, "bob"), ("unknown", "ann"), ("unknown", None)):
            with pytest.raises(NotFound, match=f"There is no attachment '{id}'"):
                await store.find_attachment(id, owner)

    # P9
    async def test_the_same_bytes_are_one_blob_whoever_sent_them_under_whatever_name(self, store: Store) -> None:
        first = await add(store)
        wish = attachment("bob", name="b.pdf", created=at(1))
        second = await store.add_attachment(wish, NO_LIMIT)
        expect(second, replace(wish, blob=first.blob))
        expect(await store.find_attachment(wish.id), second)
        other = await add(store, "bob", "other bytes")
        asked = [first.blob, wish.blob, other.blob, "unknown"]
        expect(await store.known_blobs(asked), frozenset({first.blob, other.blob}))
        expect(await store.known_blobs([*[str(number) for number in range(1200)], other.blob]), frozenset({other.blob}))

    # P9
    async def test_a_blob_goes_with_its_last_attachment(self, store: Store) -> None:
        first, second = await add(store), await add(store, "bob")
        expect(list(await store.delete_attachment("ann", first.id)), [])
        expect(await is_there(store, second), True)
        expect(list(await store.delete_attachment("bob", second.id)), [first.blob])
        expect(await store.known_blobs([first.blob]), frozenset[str]())
        # The old object is about to be deleted: the same bytes need a new one.
        third = attachment()
        expect(await store.add_attachment(third, NO_LIMIT), third)

    # P9
    async def test_an_attachment_of_somebody_else_cannot_be_deleted(self, store: Store) -> None:
        mine = await add(store)
        for owner, id in (("bob", mine.id), ("ann", "unknown")):
            with pytest.raises(NotFound, match=f"There is no attachment '{id}'"):
                await store.delete_attachment(owner, id)
        expect(await is_there(store, mine), True)

    # P9
    async def test_an_id_that_is_taken_is_refused_and_leaves_no_blob(self, store: Store) -> None:
        first = await add(store)
        second = replace(attachment(content="b"), id=first.id)
        with pytest.raises(Conflict):
            await store.add_attachment(second, NO_LIMIT)
        expect(await store.known_blobs([first.blob, second.blob]), frozenset({first.blob}))

    # P9
    async def test_attachments_come_newest_first_page_by_page(self, store: Store) -> None:
        # The same time in some, so that only their ids tell them apart.
        made = [await add(store, created=at(number // 2)) for number in range(5)]
        await add(store, "bob")
        wanted = made[::-1]
        for size in (1, 2, 5, 9):
            expect(await pages(store, size), wanted)
        expect((await store.list_attachments("nobody", None, 9)).attachments, ())

    # P9
    @pytest.mark.parametrize("cursor", ["", "x", "WzFd", "a" * 5000])
    async def test_a_cursor_of_no_list_of_attachments_is_refused(self, store: Store, cursor: str) -> None:
        with pytest.raises(WireError, match="cursor"):
            await store.list_attachments("ann", cursor, 5)

    # P9
    async def test_a_user_has_so_many_bytes_and_no_more_whoever_else_has_the_same(self, store: Store) -> None:
        await add(store, "bob")
        await store.add_attachment(attachment(), 2 * SIZE)
        await store.add_attachment(attachment(), 2 * SIZE)
        expect((await store.attachment_bytes("ann"), await store.attachment_bytes("bob")), (20, SIZE))
        one_more = attachment(content="new")
        with pytest.raises(FileRefused, match="you would have 30 bytes of files; you may have 20") as refused:
            await store.add_attachment(one_more, 2 * SIZE)
        expect(refused.value.code, "quota")
        expect((await store.attachment_bytes("ann"), await is_there(store, one_more)), (20, False))
        expect(await store.known_blobs([one_more.blob]), frozenset[str]())
        await store.add_attachment(one_more, NO_LIMIT)
        expect((await store.attachment_bytes("ann"), await store.attachment_bytes("nobody")), (30, 0))

    # P9
    async def test_all_attachments_of_a_user_are_deleted_and_nothing_of_others(self, store: Store) -> None:
        alone = [await add(store, content=content) for content in "abc"]
        shared, his = await add(store, content="d"), await add(store, "bob", "d")
        expect(sorted(await store.delete_attachments_of("ann")), sorted(one.blob for one in alone))
        expect([await is_there(store, one) for one in (*alone, shared, his)], [False] * 4 + [True])
        expect((tuple(await store.delete_attachments_of("ann")), await store.attachment_bytes("bob")), ((), SIZE))


class UnusedSuite:
    """What no thread refers to is cleaned up (P9, P10)."""

    # P9
    async def test_old_attachments_that_no_thread_refers_to_go_oldest_first(self, store: Store) -> None:
        old = [await add(store, content=str(number), created=at(number)) for number in (2, 0, 1)]
        used, young = await add(store, created=at(0)), await add(store, created=at(9))
        await store.admit(with_files(admission("r1"), used))
        expect(await unused(store, limit=2), (2, tuple(sorted([old[1].blob, old[2].blob]))))
        expect(await unused(store, limit=2), (1, (old[0].blob,)))
        expect(await unused(store, limit=2), (0, ()))
        expect([await is_there(store, one) for one in (used, young)], [True, True])

    # P9
    async def test_a_blob_that_somebody_still_uses_outlives_who_does_not(self, store: Store) -> None:
        mine, his = await add(store), await add(store, "bob", created=at(9))
        expect(await unused(store), (1, ()))
        expect([await is_there(store, one) for one in (mine, his)], [False, True])

    # P9
    async def test_attachments_of_a_deleted_thread_are_unused_once_no_other_has_them(self, store: Store) -> None:
        one = await add(store)
        await store.admit(with_files(admission("r1"), one))
        await store.admit(with_files(admission("r2", "thread-2"), one))
        await store.delete_thread("ann", "thread-1")
        expect(await unused(store), (0, ()))
        await store.delete_thread("ann", "thread-2")
        expect(await unused(store), (1, (one.blob,)))


class MeetingSuite:
    """Two come for the same file at once."""

    # P9
    async def test_the_same_bytes_from_many_at_once_are_one_blob(self, store: Store) -> None:
        wishes = [attachment(f"user-{number}") for number in range(TOGETHER)]
        found = await asyncio.gather(*[store.add_attachment(wish, NO_LIMIT) for wish in wishes])
        expect(len({one.blob for one in found}), 1)
        expect(await store.known_blobs([wish.blob for wish in wishes]), frozenset({found[0].blob}))

    # P9
    async def test_of_many_files_at_once_no_more_are_taken_than_there_is_room_for(self, store: Store) -> None:
        wishes = [attachment(content=str(number)) for number in range(TOGETHER)]
        adding = [store.add_attachment(wish, 3 * SIZE) for wish in wishes]
        found = await asyncio.gather(*adding, return_exceptions=True)
        expect(sorted({type(one).__name__ for one in found}), ["Attachment", "FileRefused"])
        expect(await store.attachment_bytes("ann"), 3 * SIZE)
        kept = frozenset(one.blob for one in found if isinstance(one, Attachment))
        expect(await store.known_blobs([wish.blob for wish in wishes]), kept)

    # P9
    async def test_bytes_that_come_while_the_last_who_has_them_deletes_them_have_a_blob(self, store: Store) -> None:
        for attempt in range(ATTEMPTS):
            last = await add(store, content=str(attempt))
            new = [attachment(f"user-{number}", str(attempt)) for number in range(TOGETHER // 2)]
            added = [store.add_attachment(wish, NO_LIMIT) for wish in new]
            *found, gone = await asyncio.gather(*added, store.delete_attachment("ann", last.id))
            kept = frozenset(one.blob for one in found if isinstance(one, Attachment))
            expect(len(kept), 1)
            expect(await store.known_blobs([last.blob, *kept]), kept)
            expect(gone, () if last.blob in kept else (last.blob,))

    # P9
    async def test_of_many_who_delete_the_last_attachments_of_a_blob_one_is_told_of_it(self, store: Store) -> None:
        for attempt in range(ATTEMPTS):
            made = [await add(store, content=str(attempt)) for _ in range(TOGETHER // 2)]
            found = await asyncio.gather(*[store.delete_attachment("ann", one.id) for one in made])
            expect([blob for blobs in found for blob in blobs], [made[0].blob])
            expect(await store.known_blobs([made[0].blob]), frozenset[str]())

    # P9
    async def test_of_many_who_delete_the_same_attachment_one_does(self, store: Store) -> None:
        one = await add(store)
        deleting = [store.delete_attachment("ann", one.id) for _ in range(TOGETHER)]
        found = await asyncio.gather(*deleting, return_exceptions=True)
        expect(sorted(type(one).__name__ for one in found), [*["NotFound"] * (TOGETHER - 1), "tuple"])
        expect([blobs for blobs in found if isinstance(blobs, tuple)], [(one.blob,)])

    # P10
    async def test_a_run_that_names_a_file_that_is_cleaned_just_now_has_it_or_is_refused(self, store: Store) -> None:
        for attempt in range(ATTEMPTS):
            one = await add(store, content=str(attempt))
            wish = with_files(admission(f"r{attempt}", f"thread-{attempt}"), one)
            cleaning = [store.delete_unused_attachments(at(5), 9) for _ in range(3)]
            admitted, *_ = await asyncio.gather(store.admit(wish), *cleaning, return_exceptions=True)
            kept = await is_there(store, one)
            expect(type(admitted).__name__, "Admitted" if kept else "Refused")
            expect([ref.is_there for ref in await store.file_refs(wish.thread)], [True] if kept else [])


async def unused(store: Store, limit: int = 99) -> tuple[int, tuple[str, ...]]:
    """What is cleaned up of what is older than five seconds."""
    count, blobs = await store.delete_unused_attachments(at(5), limit)
    return count, tuple(sorted(blobs))


async def pages(store: Store, size: int) -> list[Attachment]:
    """All attachments of a user, page by page."""
    found: list[Attachment] = []
    cursor: str | None = None
    while True:
        page = await store.list_attachments("ann", cursor, size)
        found += page.attachments
        cursor = page.next
        if cursor is None:
            return found
