"""Attachments on SQLite against a model, in pieces, by their indexes; and what meets on PostgreSQL, one by one."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, select, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import StaticPool

from recto.errors import FileRefused, NotFound, Refused
from recto.page.attachment import Attachment
from recto.store import attachments, file_refs
from recto.store.forks import ForkWish, fork
from recto.store.reads import AT_ONCE
from recto.store.runs import admit
from recto.store.schema import BLOBS, METADATA
from recto.store.store import Store, open_store
from recto.testing.store_suite.attachments import NO_LIMIT, SIZE, add, attachment, is_there, with_files
from recto.testing.store_suite.samples import START, admission, at, expect, has_run

PATIENCE = 20
MOST = 4 * SIZE
OWNERS, CONTENTS = ("ann", "bob"), ("a", "b", "c")
ADD = st.tuples(st.just("add"), st.sampled_from(OWNERS), st.sampled_from(CONTENTS))
DELETE = st.tuples(st.just("delete"), st.sampled_from(OWNERS), st.integers(0, 6).map(str))
CLEAN = st.tuples(st.just("clean"), st.just(""), st.integers(0, 4).map(str))


class Model:
    """What attachments are, in a few lines of Python."""

    def __init__(self) -> None:
        self.all: list[Attachment] = []

    def blob_of(self, wish: Attachment) -> str | None:
        """The name its bytes are stored under; None where there is no room."""
        if sum(one.size for one in self.all if one.owner == wish.owner) + wish.size > MOST:
            return None
        return next((one.blob for one in self.all if one.sha256 == wish.sha256), wish.blob)

    def remove(self, gone: list[Attachment]) -> list[str]:
        """The blobs nobody has any more."""
        self.all = [one for one in self.all if one not in gone]
        return sorted({one.blob for one in gone} - {one.blob for one in self.all})


@settings(max_examples=60)
@given(steps=st.lists(st.one_of(ADD, ADD, DELETE, CLEAN), max_size=14))
def test_P9_whatever_comes_and_goes_there_is_a_blob_for_every_attachment_and_no_other(
    steps: list[tuple[str, str, str]],
):
    model = Model()
    with tables() as connection:
        for place, (step, owner, which) in enumerate(steps):
            if step == "add":
                add_to_both(connection, model, attachment(owner, which, created=at(place)))
            elif step == "delete":
                delete_from_both(connection, model, owner, int(which))
            else:
                ids = attachments.unused(connection, at(place), int(which))
                gone = [one for one in model.all if one.created < at(place)][: int(which)]
                assert list(ids) == [one.id for one in gone]
                assert attachments.delete_if_unused(connection, ids) == (len(ids), tuple(model.remove(gone)))
            stored = connection.execute(select(BLOBS.c.name)).scalars().all()
            assert sorted(stored) == sorted({one.blob for one in model.all})
        for owner in OWNERS:
            mine = [one for one in model.all if one.owner == owner]
            assert attachments.list_of(connection, owner, None, 99).attachments == tuple(mine[::-1])


def add_to_both(connection: Connection, model: Model, wish: Attachment) -> None:
    blob = model.blob_of(wish)
    if blob is None:
        with pytest.raises(FileRefused):
            attachments.add(connection, wish, MOST)
        return
    stored = attachments.add(connection, wish, MOST)
    assert stored.blob == blob
    model.all.append(stored)


def delete_from_both(connection: Connection, model: Model, owner: str, place: int) -> None:
    mine = [one for one in model.all if one.owner == owner]
    if place >= len(mine):
        with pytest.raises(NotFound):
            attachments.delete_one(connection, owner, f"{place}")
        return
    assert list(attachments.delete_one(connection, owner, mine[place].id)) == model.remove([mine[place]])


@contextmanager
def tables() -> Generator[Connection]:
    """All tables, in memory."""
    engine = create_engine("sqlite://", poolclass=StaticPool, isolation_level="AUTOCOMMIT")
    with closing(engine.connect()) as connection:
        connection.execute(text("PRAGMA foreign_keys=ON"))
        METADATA.create_all(connection)
        yield connection
    engine.dispose()


async def test_P9_all_of_a_user_with_many_files_go_in_pieces(tmp_path: Path):
    store = await open_store(f"sqlite:///{tmp_path / 'recto.db'}")
    many = 2 * AT_ONCE + 3
    await asyncio.gather(*[add(store, content=str(number)) for number in range(many)])
    assert len(set(await store.delete_attachments_of("ann"))) == many
    assert await store.attachment_bytes("ann") == 0
    await store.close()


def test_P9_what_is_asked_for_is_found_by_an_index_and_never_sorted():
    with tables() as connection:
        driver, asked = cast("sqlite3.Connection", connection.connection.driver_connection), list[str]()
        one = attachments.add(connection, attachment(), NO_LIMIT)
        driver.set_trace_callback(asked.append)
        attachments.list_of(connection, "ann", None, 9)
        attachments.unused(connection, START, 9)
        attachments.used(connection, "ann")
        assert attachments.delete_if_unused(connection, [one.id]) == (1, (one.blob,))
        file_refs.refs_of(connection, "thread-1")
        driver.set_trace_callback(None)
        plans = str([driver.execute(f"EXPLAIN QUERY PLAN {one}").fetchall() for one in asked])
    assert "COVERING INDEX ix_attachments_owner_created_id_size" in plans
    assert "SCAN" not in plans
    assert "TEMP B-TREE" not in plans


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
                await asyncio.sleep(0)
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
async def test_P9_the_second_of_two_with_the_same_bytes_gets_the_blob_of_the_first(store: Store, meeting: Meeting):
    first, second = attachment("ann"), attachment("bob")
    found = await meeting.of(
        partial(attachments.add, attachment=first, user_bytes=NO_LIMIT), store.add_attachment(second, NO_LIMIT)
    )
    assert isinstance(found, Attachment)
    assert found.blob == first.blob


@pytest.mark.full
async def test_P9_bytes_that_come_while_their_blob_is_deleted_get_a_new_one(store: Store, meeting: Meeting):
    last, new = await add(store, "ann"), attachment("bob")
    found = await meeting.of(
        partial(attachments.delete_one, owner="ann", id=last.id), store.add_attachment(new, NO_LIMIT)
    )
    assert found == new
    assert await store.known_blobs([last.blob, new.blob]) == {new.blob}


@pytest.mark.full
async def test_P9_a_blob_stays_that_somebody_takes_while_its_last_attachment_is_deleted(store: Store, meeting: Meeting):
    last, new = await add(store, "ann"), attachment("bob")
    found = await meeting.of(
        partial(attachments.add, attachment=new, user_bytes=NO_LIMIT), store.delete_attachment("ann", last.id)
    )
    assert found == ()
    assert (await store.find_attachment(new.id)).blob == last.blob


@pytest.mark.full
async def test_P9_the_second_who_deletes_of_two_tells_the_blob(store: Store, meeting: Meeting):
    first, second = await add(store, "ann"), await add(store, "bob")
    found = await meeting.of(
        partial(attachments.delete_one, owner="ann", id=first.id), store.delete_attachment("bob", second.id)
    )
    assert found == (first.blob,)
    assert await store.known_blobs([first.blob]) == frozenset()


@pytest.mark.full
async def test_P9_the_second_who_deletes_the_same_finds_nothing(store: Store, meeting: Meeting):
    one = await add(store)
    found = await meeting.of(
        partial(attachments.delete_one, owner="ann", id=one.id), store.delete_attachment("ann", one.id)
    )
    assert isinstance(found, NotFound)


@pytest.mark.full
async def test_P9_the_second_of_two_for_whom_there_is_no_room_is_refused(store: Store, meeting: Meeting):
    first, second = attachment(), attachment(content="b")
    found = await meeting.of(
        partial(attachments.add, attachment=first, user_bytes=SIZE), store.add_attachment(second, SIZE)
    )
    assert isinstance(found, FileRefused)


@pytest.mark.full
@pytest.mark.parametrize("who", ["user", "cleaner"])
async def test_P10_a_file_named_by_a_run_is_deleted_after_it_by_its_user_and_not_by_cleaning(
    store: Store, meeting: Meeting, who: str
):
    one = await add(store)
    wish = with_files(admission("r1"), one)
    cleaning = who == "cleaner"
    deleting = store.delete_unused_attachments(at(9), 9) if cleaning else store.delete_attachment("ann", one.id)
    found = await meeting.of(partial(admit, admission=wish), deleting)
    assert found == ((0, ()) if cleaning else (one.blob,))
    assert [ref.is_there for ref in await store.file_refs("thread-1")] == [cleaning]


@pytest.mark.full
async def test_P10_a_run_that_names_a_file_that_is_being_deleted_is_refused(store: Store, meeting: Meeting):
    one = await add(store)
    found = await meeting.of(
        partial(attachments.delete_if_unused, ids=[one.id]), store.admit(with_files(admission("r1"), one))
    )
    assert isinstance(found, Refused)
    assert not await has_run(store, "ann", "r1")


@pytest.mark.full
async def test_F4_a_thread_that_is_forked_is_deleted_after_it_and_its_files_stay(store: Store, meeting: Meeting):
    one = await add(store)
    await store.admit(with_files(admission("r1"), one))
    wish = ForkWish(thread="thread-1", id="fork", now=at(9))
    await meeting.of(partial(fork, owner="ann", wish=wish), store.delete_thread("ann", "thread-1"))
    expect(await store.delete_unused_attachments(at(9), 9), (0, ()))
    assert await is_there(store, one)
