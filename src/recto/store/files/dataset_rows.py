"""Datasets and their shares."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from recto.page.prompt.reminder import Dataset
from recto.store.database.database import Database
from recto.store.files import datasets
from recto.store.files.datasets import DatasetChange, DatasetList, StoredDataset


class Datasets:
    """Datasets and their shares."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, dataset: StoredDataset, most: int = 0) -> StoredDataset:
        """Store a dataset. An id that is taken: Conflict; more than `most` of an owner: LimitReached. 0: no limit."""
        return await self._database.write(partial(datasets.create, dataset=dataset, limit=most))

    async def list_page(self, user: str, cursor: str | None, limit: int) -> DatasetList:
        """Datasets a user may use, newest first: their own, and those shared with them."""
        return await self._database.read(partial(datasets.list_page, user=user, cursor=cursor, limit=limit))

    async def get(self, user: str, id: str) -> StoredDataset:
        """A dataset a user may use; any other: NotFound."""
        return await self._database.read(partial(datasets.get, user=user, id=id))

    async def change(self, owner: str, id: str, change: DatasetChange) -> StoredDataset:
        """Change a dataset. Whoever does not own it: NotFound."""
        return await self._database.write(partial(datasets.change, owner=owner, id=id, change=change))

    async def delete(self, owner: str, id: str) -> None:
        """Delete a dataset. Whoever does not own it: NotFound."""
        await self._database.write(partial(datasets.delete_one, owner=owner, id=id))

    async def find_usable(self, user: str, ids: Sequence[str]) -> tuple[Dataset, ...]:
        """Those of these datasets a user may use, in this order, each once (F10). Upper case means the same."""
        return await self._database.read(partial(datasets.find_usable, user=user, ids=ids))
