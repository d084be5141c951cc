"""Attachments on SQLite against a model, in batches; and concurrent transactions on PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, select, text
from sqlalchemy.ext.asyncio import create_async_engine

from recto.conversation.message_files import Attachment
from recto.errors import FileRefused, InvalidRequest, NotFound
from recto.store.database.database import lock_files
from recto.store.files import files
from recto.store.files.files import AttachmentCursor
from recto.store.schema import BLOBS, FILE_TOTALS
from recto.store.statement import BATCH_SIZE
from recto.store.store import Store, open_store
from recto.store.threads.threads import ForkOptions
from tests.store.suite.attachments import NO_LIMIT, SIZE, add, attachment, is_there, with_files
from tests.store.suite.samples import admission, at, has_run
from tests.store.tables import complete, store_in, tables
from tests.waiting import settle

PATIENCE = 20
MOST, MOST_FILES = 4 * SIZE, 3
OWNERS, CONTENTS = ("ann", "bob"), ("a", "b", "c")
ADD = st.tuples(st.just("add"), st.sampled_from(OWNERS), st.sampled_from(CONTENTS))
DELETE = st.tuples(st.just("delete"), st.sampled_from(OWNERS), st.integers(0, 6).map(str))
LEAVE = st.tuples(st.just("leave"), st.sampled_from(OWNERS), st.just(""))
CLEAN = st.tuples(st.just("clean"), st.just(""), st.integers(0, 4).map(str))


class Model:
    """The rules of attachments in a few lines of Python."""

    def __init__(self) -> None:
        self.all: list[Attachment] = []

    def blob_of(self, new: Attachment) -> str | None:
        size, files = self.totals().get(new.owner, (0, 0))
        if size + new.size > MOST or files + 1 > MOST_FILES:
            return None
        mine = [one for one in self.all if one.owner == new.owner]
        return next((one.blob for one in mine if one.sha256 == new.sha256), new.blob)

    def totals(self) -> dict[str, tuple[int, int]]:
        owners = {one.owner for one in self.all}
        sizes = {owner: [one.size for one in self.all if one.owner == owner] for owner in owners}
        return {owner: (sum(result), len(result)) for owner, result in sizes.items()}

    def remove(self, attachments: list[Attachment]) -> list[str]:
        self.all = [one for one in self.all if one not in attachments]
        return sorted({one.blob for one in attachments} - {one.blob for one in self.all})


@given(steps=st.lists(st.one_of(ADD, ADD, ADD, DELETE, CLEAN, LEAVE), max_size=14))
def test_P9_blobs_and_totals_match_the_attachments_after_any_changes(steps: list[tuple[str, str, str]]):
    model = Model()
    with tables() as connection:
        for place, (step, owner, which) in enumerate(steps):
            if step == "add":
                new = replace(attachment(owner, which, created=at(place)), size=SIZE + CONTENTS.index(which))
                add_to_both(connection, model, new)
            elif step == "delete":
                delete_from_both(connection, model, owner, int(which))
            elif step == "leave":
                removed = [one for one in model.all if one.owner == owner]
                assert files.delete_batch(connection, owner) == (len(removed), tuple(model.remove(removed)))
            else:
                ids = [one.id for one in files.find_unused(connection, at(place), int(which), AttachmentCursor())]
                removed = [one for one in model.all if one.created < at(place)][: int(which)]
                assert ids == [one.id for one in removed]
                assert files.delete_if_unused(connection, ids) == (len(ids), tuple(model.remove(removed)))
            rows = connection.execute(select(BLOBS.c.name)).scalars().all()
            assert sorted(rows) == sorted({one.blob for one in model.all})
            totals = connection.execute(select(FILE_TOTALS)).all()
            assert {row.owner: (row.bytes, row.files) for row in totals} == model.totals()
        for owner in OWNERS:
            mine = [one for one in model.all if one.owner == owner]
            assert complete(store_in(connection).files.list_page(owner, None, 99)).attachments == tuple(mine[::-1])


def add_to_both(connection: Connection, model: Model, new: Attachment) -> None:
    blob, rows = model.blob_of(new), store_in(connection).files
    if blob is None:
        with pytest.raises(FileRefused):
            complete(rows.add(new, MOST, MOST_FILES))
        return
    entries = complete(rows.add(new, MOST, MOST_FILES))
    assert entries.blob == blob
    model.all.append(entries)


def delete_from_both(connection: Connection, model: Model, owner: str, place: int) -> None:
    mine, rows = [one for one in model.all if one.owner == owner], store_in(connection).files
    if place >= len(mine):
        with pytest.raises(NotFound):
            complete(rows.delete(owner, f"{place}"))
        return
    assert list(complete(rows.delete(owner, mine[place].id))) == model.remove([mine[place]])


async def test_P9_many_files_of_a_user_are_deleted_in_batches(tmp_path: Path):
    store = await open_store(f"sqlite:///{tmp_path / 'recto.db'}")
    many = 2 * BATCH_SIZE + 3
    await asyncio.gather(*[add(store, content=str(number)) for number in range(many)])
    assert len(set((await store.users.delete("ann")).blobs)) == many
    assert await store.files.total_bytes("ann") == 0
    await store.close()


# Concurrent transactions. Each test stops one before its commit until the other waits for it.


@pytest.fixture
def store(postgres_store: Store) -> Store:
    return postgres_store


class Meeting:
    """Two concurrent transactions: one that has not committed, and one that starts then."""

    def __init__(self, url: str) -> None:
        self._engine = create_async_engine(url.replace("://", "+asyncpg://", 1))

    async def of(self, first: Callable[[Connection], object], second: Awaitable[object]) -> object:
        """Return the result of the second, once the first is committed."""
        async with asyncio.timeout(PATIENCE), self._engine.connect() as connection:
            await connection.run_sync(first)
            coming = asyncio.ensure_future(second)
            while not coming.done() and not await self._somebody_waits():
                await settle(1)
            assert not coming.done(), "the second did not wait for the first"
            await connection.commit()
            results = await asyncio.gather(coming, return_exceptions=True)
        return results[0]

    async def _somebody_waits(self) -> bool:
        async with self._engine.connect() as connection:
            result = await connection.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted"))
            return result.scalar_one() > 0

    async def close(self) -> None:
        await self._engine.dispose()


@pytest.fixture
async def meeting(postgres_url: str) -> AsyncIterator[Meeting]:
    store = Meeting(postgres_url)
    yield store
    await store.close()


@pytest.mark.full
async def test_P9_a_concurrent_upload_of_the_same_bytes_shares_the_blob(store: Store, meeting: Meeting):
    same = attachment()
    result = await meeting.of(lambda connection: add_to(connection, same), store.files.add(attachment(), NO_LIMIT))
    assert isinstance(result, Attachment)
    assert result.blob == same.blob
    assert await meeting.of(
        lambda connection: complete(store_in(connection).files.delete("ann", same.id)),
        store.files.delete("ann", result.id),
    ) == (same.blob,)


def add_to(connection: Connection, new: Attachment) -> None:
    complete(store_in(connection).files.add(new, NO_LIMIT))


CHANGES: Mapping[str, Callable[[Store, Attachment], Awaitable[object]]] = {
    "add": lambda store, _: store.files.add(attachment(), NO_LIMIT),
    "delete": lambda store, one: store.files.delete(one.owner, one.id),
    "delete user": lambda store, one: store.users.delete(one.owner),
    "clean": lambda store, _: store.files.delete_unused(at(9), 9),
    "mend": lambda store, one: store.files.rename_blob(one.blob, "new"),
}


@pytest.mark.full
@pytest.mark.parametrize("change", CHANGES)
async def test_P9_changes_of_one_users_files_wait_for_each_other(store: Store, meeting: Meeting, change: str):
    # The first lock: two transactions that each hold a lock of the other would both have to retry.
    one = await add(store)
    result = await meeting.of(lambda connection: lock_files(connection, "ann"), CHANGES[change](store, one))
    assert not isinstance(result, BaseException)
    assert await is_there(store, one) == (change == "add")


@pytest.mark.full
async def test_P9_files_of_one_user_do_not_wait_for_those_of_another(store: Store, postgres_url: str):
    new = attachment("bob")
    engine = create_async_engine(postgres_url.replace("://", "+asyncpg://", 1))
    async with asyncio.timeout(PATIENCE), engine.connect() as connection:
        await connection.run_sync(add_to, attachment("ann"))
        assert await store.files.add(new, NO_LIMIT) == new
    await engine.dispose()


@pytest.mark.full
@pytest.mark.parametrize("who", ["user", "cleaner"])
async def test_P10_a_file_of_a_new_run_can_be_deleted_by_its_user_but_not_by_cleanup(
    store: Store, meeting: Meeting, who: str
):
    one = await add(store)
    result = with_files(admission("r1"), one)
    cleaning = who == "cleaner"
    deleting = store.files.delete_unused(at(9), 9) if cleaning else store.files.delete("ann", one.id)
    results = await meeting.of(lambda connection: complete(store_in(connection).runs.admit(result)), deleting)
    assert results == ((0, ()) if cleaning else (one.blob,))
    assert [ref.is_there for ref in await store.files.list_refs("thread-1")] == [cleaning]


@pytest.mark.full
async def test_P10_a_run_with_a_file_in_deletion_is_rejected(store: Store, meeting: Meeting):
    one = await add(store)
    result = await meeting.of(
        partial(files.delete_if_unused, ids=[one.id]), store.runs.admit(with_files(admission("r1"), one))
    )
    assert isinstance(result, InvalidRequest)
    assert not await has_run(store, "ann", "r1")


@pytest.mark.full
async def test_F4_a_deletion_waits_for_a_fork_and_keeps_its_files(store: Store, meeting: Meeting):
    one = await add(store)
    await store.runs.admit(with_files(admission("r1"), one))
    options = ForkOptions(thread="thread-1", id="fork", now=at(9))
    await meeting.of(
        lambda connection: complete(store_in(connection).threads.fork("ann", options)),
        store.threads.delete("ann", "thread-1"),
    )
    assert await store.files.delete_unused(at(9), 9) == (0, ())
    assert await is_there(store, one)
