"""The part of the store that has files and datasets: every method one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from recto.page.attachment import Attachment, FileRef
from recto.page.reminder import Dataset
from recto.store import attachments, datasets, file_refs
from recto.store.database import Database
from recto.store.datasets import DatasetChange, DatasetList, StoredDataset


class FiledStore:
    """Attachments, file ids and datasets, in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Files

    async def add_attachment(self, attachment: Attachment, user_bytes: int) -> Attachment:
        """Store an attachment, on an older blob if that has the same bytes. More than may be: FileRefused."""
        return await self._database.write(partial(attachments.add, attachment=attachment, user_bytes=user_bytes))

    async def find_attachment(self, id: str, owner: str | None = None) -> Attachment:
        """An attachment. Where an owner is named, somebody else's is not there: NotFound."""
        return await self._database.read(partial(attachments.find, id=id, owner=owner))

    async def same_attachment(self, owner: str, sha256: str, name: str) -> Attachment | None:
        """The owner's attachment with these bytes and this name."""
        return await self._database.read(partial(attachments.same, owner=owner, sha256=sha256, name=name))

    async def list_attachments(self, owner: str, cursor: str | None, limit: int) -> attachments.AttachmentList:
        """Attachments of an owner, newest first."""
        return await self._database.read(partial(attachments.list_of, owner=owner, cursor=cursor, limit=limit))

    async def attachment_bytes(self, owner: str) -> int:
        """The bytes of all a user's attachments."""
        return await self._database.read(partial(attachments.used, owner=owner))

    async def delete_attachment(self, owner: str, id: str) -> Sequence[str]:
        """Delete an attachment. Returns the blobs nobody has any more."""
        return await self._database.write(partial(attachments.delete_one, owner=owner, id=id))

    async def delete_unused_attachments(self, before: datetime, limit: int) -> tuple[int, Sequence[str]]:
        """Delete attachments made before a time that no thread refers to: how many, and the blobs nobody has."""
        return await attachments.delete_unused(self._database, before, limit)

    async def delete_attachments_of(self, owner: str) -> Sequence[str]:
        """Delete all attachments of an owner. Returns the blobs nobody has any more."""
        return (await attachments.delete_all_of(self._database, owner))[1]

    async def known_blobs(self, names: Sequence[str]) -> frozenset[str]:
        """Those of these blobs that somebody has."""
        return await self._database.read(partial(attachments.known_blobs, names=names))

    async def file_refs(self, thread: str) -> Sequence[FileRef]:
        """What each file id ever shown in a thread stands for (F4)."""
        return await self._database.read(partial(file_refs.refs_of, thread=thread))

    async def forget_refs(self, thread: str, response_id: str) -> None:
        """Take back the ids of a turn that never was: its message went on with an earlier one."""
        await self._database.write(partial(file_refs.forget, thread=thread, response_id=response_id))

    # Datasets

    async def make_dataset(self, dataset: StoredDataset) -> StoredDataset:
        """Store a dataset. An id that is taken: Conflict."""
        return await self._database.write(partial(datasets.make, dataset=dataset))

    async def list_datasets(self, user: str, cursor: str | None, limit: int) -> DatasetList:
        """Datasets a user may use, newest first: their own, and those shared with them."""
        return await self._database.read(partial(datasets.list_for, user=user, cursor=cursor, limit=limit))

    async def get_dataset(self, user: str, id: str) -> StoredDataset:
        """A dataset a user may use; any other: NotFound."""
        return await self._database.read(partial(datasets.get, user=user, id=id))

    async def change_dataset(self, owner: str, id: str, change: DatasetChange) -> StoredDataset:
        """Change a dataset. Whoever does not own it: NotFound."""
        return await self._database.write(partial(datasets.change, owner=owner, id=id, wish=change))

    async def delete_dataset(self, owner: str, id: str) -> None:
        """Delete a dataset. Whoever does not own it: NotFound."""
        await self._database.write(partial(datasets.delete_one, owner=owner, id=id))

    async def usable_datasets(self, user: str, ids: Sequence[str]) -> tuple[Dataset, ...]:
        """Those of these datasets a user may use, in this order, each once (F10)."""
        return await self._database.read(partial(datasets.usable, user=user, ids=ids))
