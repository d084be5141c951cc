"""What a store promises of datasets: their owner has them, who they are shared with uses them, nobody else knows."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace

import pytest

from recto.errors import Conflict, LimitReached, NotFound
from recto.page.prompt.reminder import Dataset
from recto.store.files.datasets import DatasetChange, StoredDataset
from recto.store.store import Store
from tests.store.suite.samples import START, at

TOGETHER = 12
EVERYBODY = ("*",)


def dataset(id: str = "d1", *shared_with: str, owner: str = "ann", seconds: float = 0) -> StoredDataset:
    return StoredDataset(
        id=id, owner=owner, name=f"Name of {id} 四", shared_with=shared_with, created=at(seconds), updated=at(seconds)
    )


async def listed(store: Store, user: str = "ann", size: int = 99) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.datasets.list_page(user, cursor, size)
        found += [one.id for one in page.datasets]
        cursor = page.next
        if cursor is None:
            return found


async def usable(store: Store, user: str, *ids: str) -> list[str]:
    return [one.id for one in await store.datasets.find_usable(user, ids)]


class DatasetSuite:
    async def test_F10_a_dataset_is_found_as_it_was_made(self, store: Store):
        new = replace(dataset("d1", "carl", "bob", "carl"), description="All there is")
        made = replace(new, shared_with=("bob", "carl"))
        assert await store.datasets.create(new) == made
        assert await store.datasets.get("ann", "d1") == made
        assert (await store.datasets.list_page("ann", None, 9)).datasets == (made,)
        shown = (Dataset(id="d1", name="Name of d1 四", description="All there is"),)
        assert await store.datasets.find_usable("ann", ["d1"]) == shown

    async def test_F10_a_dataset_that_is_not_shared_with_a_user_is_nowhere_for_them(self, store: Store):
        await store.datasets.create(dataset("d1", "carl"))
        for id in ("d1", "unknown"):
            asked: Sequence[Awaitable[object]] = (
                store.datasets.get("bob", id),
                store.datasets.change("bob", id, DatasetChange(now=at(1), name="x")),
                store.datasets.delete("bob", id),
            )
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert [type(one) for one in found] == [NotFound] * 3
            assert {str(one) for one in found} == {f"There is no dataset {id!r}."}
        assert await listed(store, "bob") == []
        assert await usable(store, "bob", "d1", "unknown") == []
        assert (await store.datasets.get("ann", "d1")).name == "Name of d1 四"

    @pytest.mark.parametrize("shared", [("bob", "carl"), EVERYBODY, ("*", "bob")])
    async def test_F10_who_it_is_shared_with_uses_it_for_that_long_and_cannot_change_it(
        self, store: Store, shared: tuple[str, ...]
    ):
        await store.datasets.create(dataset("d1", *shared))
        assert (await listed(store, "bob"), await usable(store, "bob", "d1")) == (["d1"], ["d1"])
        # Who else may use it is their own affair.
        wanted = tuple(one for one in shared if one != "carl")
        assert (await store.datasets.get("bob", "d1")).shared_with == wanted
        for asked in (
            store.datasets.change("bob", "d1", DatasetChange(now=at(1), name="x")),
            store.datasets.delete("bob", "d1"),
        ):
            with pytest.raises(NotFound, match="There is no dataset 'd1'"):
                await asked
        assert (await store.datasets.get("ann", "d1")).name == "Name of d1 四"
        for users, wanted in ((("bob",), ["d1"]), (("carl",), list[str]()), ((), list[str]())):
            changed = await store.datasets.change("ann", "d1", DatasetChange(now=at(1), shared_with=users))
            assert changed.shared_with == users
            assert (await listed(store, "bob"), await usable(store, "bob", "d1")) == (wanted, wanted)

    async def test_F10_a_change_leaves_what_it_does_not_name(self, store: Store):
        made = await store.datasets.create(replace(dataset("d1", "bob"), description="Old"))
        other = await store.datasets.create(dataset("d2", "bob"))
        renamed = await store.datasets.change("ann", "d1", DatasetChange(now=at(1), name="New"))
        assert renamed == replace(made, name="New", updated=at(1))
        emptied = await store.datasets.change("ann", "d1", DatasetChange(now=at(2), description=""))
        assert emptied == replace(renamed, description="", updated=at(2))
        assert await store.datasets.change("ann", "d1", DatasetChange(now=at(3))) == replace(emptied, updated=at(3))
        assert await store.datasets.get("ann", "d2") == other

    async def test_F10_usable_datasets_come_in_the_order_asked_for_and_once(self, store: Store):
        for id, owner in (("d1", "ann"), ("d2", "bob"), ("d3", "bob")):
            await store.datasets.create(dataset(id, *(["ann"] if id == "d2" else []), owner=owner))
        assert await usable(store, "ann", "d2", "d1", "d3", "d2", "x") == ["d2", "d1"]
        # An id in upper case means the same.
        assert await usable(store, "ann", "D2", "d1", "d2", "D3") == ["d2", "d1"]
        assert await usable(store, "ann", "d2", *[f"x{number}" for number in range(1200)], "d1") == ["d2", "d1"]
        assert await usable(store, "ann") == []

    async def test_F10_a_user_has_so_many_datasets_and_no_more_however_many_are_shared_with_them(self, store: Store):
        for id, owner in (("d1", "bob"), ("d2", "ann"), ("d3", "ann")):
            await store.datasets.create(dataset(id, "*", owner=owner), 2)
        with pytest.raises(LimitReached, match="You have 2 datasets; you may have 2") as refused:
            await store.datasets.create(dataset("d4"), 2)
        assert refused.value.retry > 0
        assert sorted(await listed(store)) == ["d1", "d2", "d3"]
        await store.datasets.delete("ann", "d2")
        await store.datasets.create(dataset("d4"), 2)
        await store.datasets.create(dataset("d5"))

    async def test_F10_of_many_datasets_at_once_no_more_are_made_than_there_is_room_for(self, store: Store):
        making = [store.datasets.create(dataset(f"d{number}"), 3) for number in range(TOGETHER)]
        done = await asyncio.gather(*making, return_exceptions=True)
        assert [type(one) for one in done].count(LimitReached) == TOGETHER - 3
        assert len(await listed(store)) == 3

    async def test_F10_datasets_come_newest_first_page_by_page(self, store: Store):
        for number in range(5):
            owner, shared = ("ann", ()) if number % 2 else ("bob", EVERYBODY)
            await store.datasets.create(dataset(f"d{number}", *shared, owner=owner, seconds=number // 2))
        await store.datasets.create(dataset("x", owner="bob"))
        wanted = ["d4", "d3", "d2", "d1", "d0"]
        for size in (1, 2, 5, 9):
            assert await listed(store, "ann", size) == wanted

    async def test_F10_an_id_that_is_taken_is_refused_and_changes_nothing(self, store: Store):
        made = await store.datasets.create(dataset("d1", "carl"))
        with pytest.raises(Conflict):
            await store.datasets.create(dataset("d1", "dora", owner="bob"))
        assert await store.datasets.get("ann", "d1") == made

    async def test_F10_a_deleted_dataset_is_gone_for_everybody(self, store: Store):
        for id in ("d1", "d2"):
            await store.datasets.create(dataset(id, "*", "bob"))
        await store.datasets.delete("ann", "d1")
        assert [await listed(store, user) for user in ("ann", "bob", "carl")] == [["d2"]] * 3
        with pytest.raises(NotFound):
            await store.datasets.delete("ann", "d1")
        # Whom it was shared with is forgotten with it.
        assert (await store.datasets.create(replace(dataset("d1"), created=START))).shared_with == ()

    async def test_F10_of_changes_that_come_at_once_one_is_left_whole(self, store: Store):
        await store.datasets.create(dataset("d1"))
        changes = [
            DatasetChange(now=at(1), name=f"n{number}", shared_with=(f"a{number}", f"b{number}"))
            for number in range(TOGETHER)
        ]
        await asyncio.gather(*[store.datasets.change("ann", "d1", change) for change in changes])
        found = await store.datasets.get("ann", "d1")
        assert (found.name, found.shared_with) in [(change.name, change.shared_with) for change in changes]
