"""Attachments on SQLite against a model, in pieces, by their indexes; and what meets on PostgreSQL, one by one."""

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
    """What attachments are, in a few lines of Python."""

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
        return {owner: (sum(found), len(found)) for owner, found in sizes.items()}

    def remove(self, gone: list[Attachment]) -> list[str]:
        self.all = [one for one in self.all if one not in gone]
        return sorted({one.blob for one in gone} - {one.blob for one in self.all})


@given(steps=st.lists(st.one_of(ADD, ADD, ADD, DELETE, CLEAN, LEAVE), max_size=14))
def test_P9_whatever_comes_and_goes_there_is_a_blob_for_every_attachment_and_all_are_added_up(
    steps: list[tuple[str, str, str]],
):
    model = Model()
    with tables() as connection:
        for place, (step, owner, which) in enumerate(steps):
            if step == "add":
                new = replace(attachment(owner, which, created=at(place)), size=SIZE + CONTENTS.index(which))
                add_to_both(connection, model, new)
            elif step == "delete":
                delete_from_both(connection, model, owner, int(which))
            elif step == "leave":
                gone = [one for one in model.all if one.owner == owner]
                assert files.delete_batch(connection, owner) == (len(gone), tuple(model.remove(gone)))
            else:
                ids = [one.id for one in files.find_unused(connection, at(place), int(which), AttachmentCursor())]
                gone = [one for one in model.all if one.created < at(place)][: int(which)]
                assert ids == [one.id for one in gone]
                assert files.delete_if_unused(connection, ids) == (len(ids), tuple(model.remove(gone)))
            stored = connection.execute(select(BLOBS.c.name)).scalars().all()
            assert sorted(stored) == sorted({one.blob for one in model.all})
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
    stored = complete(rows.add(new, MOST, MOST_FILES))
    assert stored.blob == blob
    model.all.append(stored)


def delete_from_both(connection: Connection, model: Model, owner: str, place: int) -> None:
    mine, rows = [one for one in model.all if one.owner == owner], store_in(connection).files
    if place >= len(mine):
        with pytest.raises(NotFound):
            complete(rows.delete(owner, f"{place}"))
        return
    assert list(complete(rows.delete(owner, mine[place].id))) == model.remove([mine[place]])


async def test_P9_all_of_a_user_with_many_files_go_in_pieces(tmp_path: Path):
    store = await open_store(f"sqlite:///{tmp_path / 'recto.db'}")
    many = 2 * BATCH_SIZE + 3
    await asyncio.gather(*[add(store, content=str(number)) for number in range(many)])
    assert len(set((await store.users.delete("ann")).blobs)) == many
    assert await store.files.total_bytes("ann") == 0
    await store.close()


# What meets on a server. Each test stops one transaction before its commit, until the other waits for it.


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    opened = await open_store(postgres_url)
    yield opened
    await opened.close()


class Meeting:
    """Two at the same time: one that has done its work and not committed, and one that comes then."""

    def __init__(self, url: str) -> None:
        self._engine = create_async_engine(url.replace("://", "+asyncpg://", 1))

    async def of(self, first: Callable[[Connection], object], second: Awaitable[object]) -> object:
        """What the second finds, once the first is committed."""
        async with asyncio.timeout(PATIENCE), self._engine.connect() as connection:
            await connection.run_sync(first)
            coming = asyncio.ensure_future(second)
            while not coming.done() and not await self._somebody_waits():
                await settle(1)
            assert not coming.done(), "the second did not wait for the first"
            await connection.commit()
            found = await asyncio.gather(coming, return_exceptions=True)
        return found[0]

    async def _somebody_waits(self) -> bool:
        async with self._engine.connect() as connection:
            found = await connection.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted"))
            return found.scalar_one() > 0

    async def close(self) -> None:
        await self._engine.dispose()


@pytest.fixture
async def meeting(postgres_url: str) -> AsyncIterator[Meeting]:
    opened = Meeting(postgres_url)
    yield opened
    await opened.close()


@pytest.mark.full
async def test_P9_the_second_of_two_with_the_same_bytes_gets_the_blob_of_the_first_and_keeps_it(
    store: Store, meeting: Meeting
):
    same = attachment()
    found = await meeting.of(lambda connection: add_to(connection, same), store.files.add(attachment(), NO_LIMIT))
    assert isinstance(found, Attachment)
    assert found.blob == same.blob
    assert await meeting.of(
        lambda connection: complete(store_in(connection).files.delete("ann", same.id)),
        store.files.delete("ann", found.id),
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
async def test_P9_whoever_changes_files_of_a_user_waits_for_who_is_at_it_and_then_does(
    store: Store, meeting: Meeting, change: str
):
    # Before anything else: two who each hold what the other needs would both have to begin anew.
    one = await add(store)
    found = await meeting.of(lambda connection: lock_files(connection, "ann"), CHANGES[change](store, one))
    assert not isinstance(found, BaseException)
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
async def test_P10_a_file_named_by_a_run_is_deleted_after_it_by_its_user_and_not_by_cleaning(
    store: Store, meeting: Meeting, who: str
):
    one = await add(store)
    admitted = with_files(admission("r1"), one)
    cleaning = who == "cleaner"
    deleting = store.files.delete_unused(at(9), 9) if cleaning else store.files.delete("ann", one.id)
    found = await meeting.of(lambda connection: complete(store_in(connection).runs.admit(admitted)), deleting)
    assert found == ((0, ()) if cleaning else (one.blob,))
    assert [ref.is_there for ref in await store.files.list_refs("thread-1")] == [cleaning]


@pytest.mark.full
async def test_P10_a_run_that_names_a_file_that_is_being_deleted_is_refused(store: Store, meeting: Meeting):
    one = await add(store)
    found = await meeting.of(
        partial(files.delete_if_unused, ids=[one.id]), store.runs.admit(with_files(admission("r1"), one))
    )
    assert isinstance(found, InvalidRequest)
    assert not await has_run(store, "ann", "r1")


@pytest.mark.full
async def test_F4_a_thread_that_is_forked_is_deleted_after_it_and_its_files_stay(store: Store, meeting: Meeting):
    one = await add(store)
    await store.runs.admit(with_files(admission("r1"), one))
    options = ForkOptions(thread="thread-1", id="fork", now=at(9))
    await meeting.of(
        lambda connection: complete(store_in(connection).threads.fork("ann", options)),
        store.threads.delete("ann", "thread-1"),
    )
    assert await store.files.delete_unused(at(9), 9) == (0, ())
    assert await is_there(store, one)
