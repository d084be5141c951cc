"""The part of the store that has files, datasets and notes: every method one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from recto.page.attachment import Attachment, FileRef
from recto.page.reminder import Dataset
from recto.store import attachments, datasets, file_refs, notes
from recto.store.database import Database
from recto.store.datasets import DatasetChange, DatasetList, StoredDataset


class FiledStore:
    """Attachments, file ids, datasets and notes, in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._unused_from = attachments.Place()

    # Files

    async def add_attachment(self, attachment: Attachment, user_bytes: int, user_files: int = 0) -> Attachment:
        """Store an attachment, on an older blob of its owner if that has the same bytes.

        More than so many bytes or files of a user: FileRefused. 0 sets no limit.
        """
        adding = partial(attachments.add, attachment=attachment, user_bytes=user_bytes, user_files=user_files)
        return await self._database.write(adding)

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
        """Delete an attachment. Returns its blob, if no other attachment stands on it."""
        return await self._database.write(partial(attachments.delete_one, owner=owner, id=id))

    async def delete_unused_attachments(self, before: datetime, limit: int) -> tuple[int, Sequence[str]]:
        """Delete attachments made before a time that no thread refers to: how many, and the blobs nobody has.

        Each call goes on where the last one ended; one that finds fewer than `limit` has come to the end.
        """
        found = await attachments.delete_unused(self._database, before, limit, self._unused_from)
        count, blobs, self._unused_from = found
        return count, blobs

    async def delete_unused_of(self, owner: str, ids: Sequence[str]) -> Sequence[str]:
        """Delete those of some attachments of an owner that no thread refers to. Returns the blobs nobody has."""
        work = partial(attachments.delete_unused_of, owner=owner, ids=ids)
        return (await self._database.write(work))[1] if ids else ()

    async def delete_attachments_of(self, owner: str) -> Sequence[str]:
        """Delete all attachments of an owner. Returns the blobs nobody has any more."""
        return (await attachments.delete_all_of(self._database, owner))[1]

    async def known_blobs(self, names: Sequence[str]) -> frozenset[str]:
        """Those of these blobs that somebody has."""
        return await self._database.read(partial(attachments.known_blobs, names=names))

    async def mend_blob(self, old: str, new: str) -> None:
        """Have a blob, and all attachments that stand on it, go by a new name. No such blob: nothing happens."""
        await self._database.write(partial(attachments.rename_blob, old=old, new=new))

    async def file_refs(self, thread: str) -> Sequence[FileRef]:
        """What each file id ever shown in a thread stands for (F4)."""
        return await self._database.read(partial(file_refs.refs_of, thread=thread))

    async def forget_refs(self, thread: str, response_id: str) -> None:
        """Take back the ids of a turn that never was: its message went on with an earlier one."""
        await self._database.write(partial(file_refs.forget, thread=thread, response_id=response_id))

    # Datasets

    async def make_dataset(self, dataset: StoredDataset, most: int = 0) -> StoredDataset:
        """Store a dataset. An id that is taken: Conflict; more than `most` of an owner: LimitReached. 0: no limit."""
        return await self._database.write(partial(datasets.make, dataset=dataset, most=most))

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
        """Those of these datasets a user may use, in this order, each once (F10). Upper case means the same."""
        return await self._database.read(partial(datasets.usable, user=user, ids=ids))

    # Notes

    async def note(self, name: str) -> str | None:
        """What a note says; None where there is none."""
        return await self._database.read(partial(notes.find, name=name))

    async def take_note(self, name: str, value: str) -> str:
        """Write a note unless there is one. Returns what it says then: whoever asks, it is the same."""
        return await self._database.write(partial(notes.take, name=name, value=value))

    async def change_note(self, name: str, value: str) -> None:
        """Have a note say this from now on."""
        await self._database.write(partial(notes.change, name=name, value=value))
