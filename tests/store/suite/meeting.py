"""What a store promises of files that many come for at once: each has its blob, none is left behind, all is counted."""

import asyncio
from collections.abc import Awaitable

import pytest

from recto.errors import FileRefused, NotFound
from recto.store.store import Store
from tests.store.suite.attachments import NO_LIMIT, add, attachment
from tests.store.suite.samples import at

ATTEMPTS = 6


class MeetingSuite:
    async def test_P9_whatever_comes_and_goes_at_once_what_is_left_is_counted(self, store: Store):
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


async def fill(store: Store, owner: str, files: int) -> None:
    """One file more, which there is room for, and another, which is too many. The first goes again."""
    extra = await store.add_attachment(attachment(owner, "extra"), NO_LIMIT, files)
    try:
        await store.add_attachment(attachment(owner, "too many"), NO_LIMIT, files)
    finally:
        await store.delete_attachment(owner, extra.id)
