"""Attachments: equal files of a user share one blob, and no unused blob stays."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from datetime import datetime
from hashlib import sha256

import pytest

from recto.conversation.message_files import Attachment, FileRef
from recto.errors import Conflict, FileRefused, NotFound
from recto.ids import new_id
from recto.store.ports import Admission
from recto.store.store import Store
from tests.store.suite.samples import START, admission, all_pages, at

SIZE = 10
NO_LIMIT = 0
ATTEMPTS = 6


def attachment(owner: str = "ann", content: str = "a", *, name: str = "a.pdf", created: datetime = START) -> Attachment:
    """Return a new file with its own id and blob."""
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
    return await store.files.add(attachment(owner, content, created=created), NO_LIMIT)


def with_files(new: Admission, *files: Attachment) -> Admission:
    refs = [
        FileRef(id=f"{new.response_id}-{place}", attachment=one.id, name=one.name, kind=one.kind)
        for place, one in enumerate(files)
    ]
    return replace(new, files=tuple(refs))


async def is_there(store: Store, one: Attachment) -> bool:
    try:
        return await store.files.find(one.id) == one
    except NotFound:
        return False


async def unused(store: Store, limit: int = 99) -> tuple[int, tuple[str, ...]]:
    count, blobs = await store.files.delete_unused(at(5), limit)
    return count, tuple(sorted(blobs))


async def list_attachments(store: Store, size: int) -> list[Attachment]:
    pages = await all_pages(lambda cursor: store.files.list_page("ann", cursor, size))
    return [one for page in pages for one in page.attachments]


async def fill(store: Store, owner: str, files: int) -> None:
    """Add a file within the limit and one above it, then delete the first."""
    extra = await store.files.add(attachment(owner, "extra"), NO_LIMIT, files)
    try:
        await store.files.add(attachment(owner, "too many"), NO_LIMIT, files)
    finally:
        await store.files.delete(owner, extra.id)


class AttachmentSuite:
    async def test_P9_an_attachment_survives_a_round_trip(self, store: Store):
        new = replace(attachment(), name="四 😀.pdf", size=2**40, created=at(0.5))
        assert await store.files.add(new, NO_LIMIT) == new
        assert await store.files.find(new.id, "ann") == new
        for id, owner in ((new.id, "bob"), ("unknown", "ann"), ("unknown", None)):
            for ask in (store.files.find(id, owner), store.files.delete(owner or "ann", id)):
                with pytest.raises(NotFound, match=f"There is no attachment '{id}'"):
                    await ask
        assert await store.files.find(new.id) == new

    async def test_P9_equal_files_of_a_user_share_a_blob(self, store: Store):
        first = await add(store)
        new = attachment(name="b.pdf", created=at(1))
        second = await store.files.add(new, NO_LIMIT)
        assert second == replace(new, blob=first.blob)
        assert await store.files.find(new.id) == second
        other = await add(store, content="other bytes")
        requests = [first.blob, new.blob, other.blob, "unknown"]
        assert await store.files.find_blobs(requests) == frozenset({first.blob, other.blob})
        assert await store.files.find_blobs([*[str(number) for number in range(1200)], other.blob]) == frozenset(
            {other.blob}
        )

    async def test_P9_the_newest_of_equal_attachments_is_found(self, store: Store):
        ids = sorted(new_id() for _ in range(2))
        newer, older = (replace(attachment(created=at(minute)), id=id) for minute, id in zip((2, 1), ids, strict=True))
        for one in (newer, older):
            await store.files.add(one, NO_LIMIT)
        result = await store.files.find_same("ann", newer.sha256, newer.name)
        assert result is not None
        assert result.id == newer.id

    async def test_P9_equal_files_of_two_users_have_two_blobs(self, store: Store):
        both = [attachment("ann"), attachment("bob")]
        assert [await store.files.add(new, NO_LIMIT) for new in both] == both
        assert await store.files.find_same("carl", both[0].sha256, "a.pdf") is None
        assert [await store.files.find_same(new.owner, new.sha256, "a.pdf") for new in both] == both
        assert list(await store.files.delete("ann", both[0].id)) == [both[0].blob]
        assert await is_there(store, both[1])

    async def test_P9_attachments_are_listed_newest_first(self, store: Store):
        # Some have equal times, so that their ids decide.
        new = [await add(store, created=at(number // 2)) for number in range(5)]
        await add(store, "bob")
        expected = new[::-1]
        for size in (1, 2, 5, 9):
            assert await list_attachments(store, size) == expected
        assert (await store.files.list_page("nobody", None, 9)).attachments == ()

    @pytest.mark.parametrize(
        ("most", "problem"),
        [((2 * SIZE, 0), "30 bytes of files; you may have 20"), ((NO_LIMIT, 2), "3 files; you may have 2")],
        ids=["bytes", "files"],
    )
    async def test_P9_quotas_are_per_user(self, store: Store, most: tuple[int, int], problem: str):
        await add(store, "bob")
        new = [await store.files.add(attachment(), *most) for _ in range(2)]
        one_more = attachment(content="new")
        with pytest.raises(FileRefused, match=f"you would have {problem}") as error:
            await store.files.add(one_more, *most)
        assert error.value.code == "quota"
        assert await store.files.find_blobs([one_more.blob]) == frozenset[str]()
        assert [await store.files.total_bytes(owner) for owner in ("ann", "bob", "nobody")] == [20, SIZE, 0]
        await store.files.delete("ann", new[0].id)
        assert await store.files.add(one_more, *most) == one_more

    async def test_P9_a_renamed_blob_keeps_its_attachments(self, store: Store):
        first, second, other = await add(store), await add(store), await add(store, "bob")
        await store.files.rename_blob(first.blob, "new")
        assert [await is_there(store, replace(one, blob="new")) for one in (first, second)] == [True, True]
        assert (await store.files.find_blobs([first.blob, "new"]), await is_there(store, other)) == (
            frozenset({"new"}),
            True,
        )
        assert (await add(store)).blob == "new"
        await store.files.rename_blob("unknown", "newer")
        assert await store.files.find_blobs(["unknown", "newer"]) == frozenset[str]()
        with pytest.raises(Conflict):
            await store.files.rename_blob("new", other.blob)
        assert (await store.users.delete("ann")).blobs == ("new",)

    async def test_P9_old_unused_attachments_are_deleted_oldest_first(self, store: Store):
        old = [await add(store, content=str(number), created=at(number)) for number in (2, 0, 1)]
        older, young = await add(store, created=at(0)), await add(store, created=at(9))
        await store.runs.admit(with_files(admission("r1"), older))
        assert await unused(store, limit=2) == (2, tuple(sorted([old[1].blob, old[2].blob])))
        assert await unused(store, limit=2) == (1, (old[0].blob,))
        assert await unused(store, limit=2) == (0, ())
        assert [await is_there(store, one) for one in (older, young)] == [True, True]

    async def test_P9_a_finished_search_starts_over(self, store: Store):
        older = [await add(store, content=str(number), created=at(number)) for number in range(2)]
        await store.runs.admit(with_files(admission("r1"), older[0]))
        assert await unused(store, limit=1) == (1, (older[1].blob,))
        # After the position of the search; an earlier one becomes unused meanwhile.
        await store.threads.delete("ann", "thread-1")
        assert [await unused(store, limit=1) for _ in range(3)] == [(0, ()), (1, (older[0].blob,)), (0, ())]

    async def test_P9_concurrent_changes_keep_the_totals_right(self, store: Store):
        for _ in range(ATTEMPTS):
            old = [await add(store, owner, content) for owner in ("ann", "bob") for content in "aabc"]
            changes: list[Awaitable[object]] = [
                *[store.files.add(attachment("ann", content, created=at(9)), NO_LIMIT) for content in "abcdef"],
                *[store.files.delete(one.owner, one.id) for one in old[::3]],
                *[store.files.delete_unused(at(5), 2) for _ in range(4)],
                store.users.delete("bob"),
            ]
            done = await asyncio.gather(*changes, return_exceptions=True)
            assert [one for one in done if isinstance(one, Exception) and not isinstance(one, NotFound)] == []
            for owner in ("ann", "bob"):
                rest = (await store.files.list_page(owner, None, 999)).attachments
                assert await store.files.total_bytes(owner) == sum(one.size for one in rest)
                with pytest.raises(FileRefused, match=f"you would have {len(rest) + 2} files"):
                    await fill(store, owner, len(rest) + 1)
