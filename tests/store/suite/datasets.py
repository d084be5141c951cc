"""Datasets: owners, shares and limits."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace

import pytest

from recto.errors import Conflict, LimitReached, NotFound
from recto.page.prompt.reminder import Dataset
from recto.store.files.datasets import DatasetChange, StoredDataset
from recto.store.store import Store
from tests.store.suite.samples import START, all_pages, at

TOGETHER = 12
EVERYBODY = ("*",)


def dataset(id: str = "d1", *shared_with: str, owner: str = "ann", seconds: float = 0) -> StoredDataset:
    return StoredDataset(
        id=id, owner=owner, name=f"Name of {id} 四", shared_with=shared_with, created=at(seconds), updated=at(seconds)
    )


async def list_datasets(store: Store, user: str = "ann", size: int = 99) -> list[str]:
    pages = await all_pages(lambda cursor: store.datasets.list_page(user, cursor, size))
    return [one.id for page in pages for one in page.datasets]


async def usable(store: Store, user: str, *ids: str) -> list[str]:
    return [one.id for one in await store.datasets.find_usable(user, ids)]


class DatasetSuite:
    async def test_F10_a_dataset_survives_a_round_trip(self, store: Store):
        new = replace(dataset("d1", "carl", "bob", "carl"), description="All there is")
        copy = replace(new, shared_with=("bob", "carl"))
        assert await store.datasets.create(new) == copy
        assert await store.datasets.get("ann", "d1") == copy
        assert (await store.datasets.list_page("ann", None, 9)).datasets == (copy,)
        visible = (Dataset(id="d1", name="Name of d1 四", description="All there is"),)
        assert await store.datasets.find_usable("ann", ["d1"]) == visible

    async def test_F10_a_dataset_without_a_share_does_not_exist_for_a_user(self, store: Store):
        await store.datasets.create(dataset("d1", "carl"))
        for id in ("d1", "unknown"):
            requests: Sequence[Awaitable[object]] = (
                store.datasets.get("bob", id),
                store.datasets.change("bob", id, DatasetChange(now=at(1), name="x")),
                store.datasets.delete("bob", id),
            )
            results = await asyncio.gather(*requests, return_exceptions=True)
            assert [type(one) for one in results] == [NotFound] * 3
            assert {str(one) for one in results} == {f"There is no dataset {id!r}."}
        assert await list_datasets(store, "bob") == []
        assert await usable(store, "bob", "d1", "unknown") == []
        assert (await store.datasets.get("ann", "d1")).name == "Name of d1 四"

    @pytest.mark.parametrize("shared", [("bob", "carl"), EVERYBODY, ("*", "bob")])
    async def test_F10_a_share_allows_use_but_no_change(self, store: Store, shared: tuple[str, ...]):
        await store.datasets.create(dataset("d1", *shared))
        assert (await list_datasets(store, "bob"), await usable(store, "bob", "d1")) == (["d1"], ["d1"])
        # Other shares stay private.
        expected = tuple(one for one in shared if one != "carl")
        assert (await store.datasets.get("bob", "d1")).shared_with == expected
        for request in (
            store.datasets.change("bob", "d1", DatasetChange(now=at(1), name="x")),
            store.datasets.delete("bob", "d1"),
        ):
            with pytest.raises(NotFound, match="There is no dataset 'd1'"):
                await request
        assert (await store.datasets.get("ann", "d1")).name == "Name of d1 四"
        for users, expected in ((("bob",), ["d1"]), (("carl",), list[str]()), ((), list[str]())):
            changed = await store.datasets.change("ann", "d1", DatasetChange(now=at(1), shared_with=users))
            assert changed.shared_with == users
            assert (await list_datasets(store, "bob"), await usable(store, "bob", "d1")) == (expected, expected)

    async def test_F10_a_change_leaves_other_fields_as_they_are(self, store: Store):
        new = await store.datasets.create(replace(dataset("d1", "bob"), description="Old"))
        other = await store.datasets.create(dataset("d2", "bob"))
        renamed = await store.datasets.change("ann", "d1", DatasetChange(now=at(1), name="New"))
        assert renamed == replace(new, name="New", updated=at(1))
        emptied = await store.datasets.change("ann", "d1", DatasetChange(now=at(2), description=""))
        assert emptied == replace(renamed, description="", updated=at(2))
        assert await store.datasets.change("ann", "d1", DatasetChange(now=at(3))) == replace(emptied, updated=at(3))
        assert await store.datasets.get("ann", "d2") == other

    async def test_F10_usable_datasets_have_the_requested_order_without_duplicates(self, store: Store):
        for id, owner in (("d1", "ann"), ("d2", "bob"), ("d3", "bob")):
            await store.datasets.create(dataset(id, *(["ann"] if id == "d2" else []), owner=owner))
        assert await usable(store, "ann", "d2", "d1", "d3", "d2", "x") == ["d2", "d1"]
        # Ids ignore case.
        assert await usable(store, "ann", "D2", "d1", "d2", "D3") == ["d2", "d1"]
        assert await usable(store, "ann", "d2", *[f"x{number}" for number in range(1200)], "d1") == ["d2", "d1"]
        assert await usable(store, "ann") == []

    async def test_F10_the_limit_of_datasets_ignores_shares(self, store: Store):
        for id, owner in (("d1", "bob"), ("d2", "ann"), ("d3", "ann")):
            await store.datasets.create(dataset(id, "*", owner=owner), 2)
        with pytest.raises(LimitReached, match="You have 2 datasets; you may have 2") as error:
            await store.datasets.create(dataset("d4"), 2)
        assert error.value.retry > 0
        assert sorted(await list_datasets(store)) == ["d1", "d2", "d3"]
        await store.datasets.delete("ann", "d2")
        await store.datasets.create(dataset("d4"), 2)
        await store.datasets.create(dataset("d5"))

    async def test_F10_concurrent_creations_respect_the_limit(self, store: Store):
        making = [store.datasets.create(dataset(f"d{number}"), 3) for number in range(TOGETHER)]
        done = await asyncio.gather(*making, return_exceptions=True)
        assert [type(one) for one in done].count(LimitReached) == TOGETHER - 3
        assert len(await list_datasets(store)) == 3

    async def test_F10_datasets_are_listed_newest_first(self, store: Store):
        for number in range(5):
            owner, shared = ("ann", ()) if number % 2 else ("bob", EVERYBODY)
            await store.datasets.create(dataset(f"d{number}", *shared, owner=owner, seconds=number // 2))
        await store.datasets.create(dataset("x", owner="bob"))
        expected = ["d4", "d3", "d2", "d1", "d0"]
        for size in (1, 2, 5, 9):
            assert await list_datasets(store, "ann", size) == expected

    async def test_F10_an_existing_id_is_rejected_and_changes_nothing(self, store: Store):
        new = await store.datasets.create(dataset("d1", "carl"))
        with pytest.raises(Conflict):
            await store.datasets.create(dataset("d1", "dora", owner="bob"))
        assert await store.datasets.get("ann", "d1") == new

    async def test_F10_a_deleted_dataset_exists_for_nobody(self, store: Store):
        for id in ("d1", "d2"):
            await store.datasets.create(dataset(id, "*", "bob"))
        await store.datasets.delete("ann", "d1")
        assert [await list_datasets(store, user) for user in ("ann", "bob", "carl")] == [["d2"]] * 3
        with pytest.raises(NotFound):
            await store.datasets.delete("ann", "d1")
        # Its shares are deleted with it.
        assert (await store.datasets.create(replace(dataset("d1"), created=START))).shared_with == ()

    async def test_F10_concurrent_changes_do_not_mix(self, store: Store):
        await store.datasets.create(dataset("d1"))
        changes = [
            DatasetChange(now=at(1), name=f"n{number}", shared_with=(f"a{number}", f"b{number}"))
            for number in range(TOGETHER)
        ]
        await asyncio.gather(*[store.datasets.change("ann", "d1", change) for change in changes])
        result = await store.datasets.get("ann", "d1")
        assert (result.name, result.shared_with) in [(change.name, change.shared_with) for change in changes]
