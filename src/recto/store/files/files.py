"""Attachments of users and the file ids that refer to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from recto.conversation.message_files import Attachment, FileRef
from recto.store.database.database import Database
from recto.store.files import attachments, file_refs


class Files:
    """Attachments of users and the file ids that refer to them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._unused_from = attachments.AttachmentCursor()

    async def add(self, attachment: Attachment, user_bytes: int, user_files: int = 0) -> Attachment:
        """Store an attachment, on an older blob of its owner if that has the same bytes.

        More than so many bytes or files of a user: FileRefused. 0 sets no limit.
        """
        adding = partial(attachments.add, attachment=attachment, user_bytes=user_bytes, user_files=user_files)
        return await self._database.write(adding)

    async def find(self, id: str, owner: str | None = None) -> Attachment:
        """An attachment. Where an owner is named, somebody else's is not there: NotFound."""
        return await self._database.read(partial(attachments.find, id=id, owner=owner))

    async def find_same(self, owner: str, sha256: str, name: str) -> Attachment | None:
        """The owner's attachment with these bytes and this name."""
        return await self._database.read(partial(attachments.find_same, owner=owner, sha256=sha256, name=name))

    async def list_page(self, owner: str, cursor: str | None, limit: int) -> attachments.AttachmentList:
        """Attachments of an owner, newest first."""
        return await self._database.read(partial(attachments.list_page, owner=owner, cursor=cursor, limit=limit))

    async def total_bytes(self, owner: str) -> int:
        """The bytes of all a user's attachments."""
        return await self._database.read(partial(attachments.total_bytes, owner=owner))

    async def delete(self, owner: str, id: str) -> Sequence[str]:
        """Delete an attachment. Returns its blob, if no other attachment stands on it."""
        return await self._database.write(partial(attachments.delete_one, owner=owner, id=id))

    async def delete_unused(self, before: datetime, limit: int) -> tuple[int, Sequence[str]]:
        """Delete attachments made before a time that no thread refers to: how many, and the blobs nobody has.

        Each call goes on where the last one ended; one that finds fewer than `limit` has come to the end.
        """
        found = await attachments.delete_unused(self._database, before, limit, self._unused_from)
        count, blobs, self._unused_from = found
        return count, blobs

    async def delete_owner_unused(self, owner: str, ids: Sequence[str]) -> Sequence[str]:
        """Delete those of some attachments of an owner that no thread refers to. Returns the blobs nobody has."""
        work = partial(attachments.delete_owner_unused, owner=owner, ids=ids)
        return (await self._database.write(work))[1] if ids else ()

    async def find_blobs(self, names: Sequence[str]) -> frozenset[str]:
        """Those of these blobs that somebody has."""
        return await self._database.read(partial(attachments.existing_blobs, names=names))

    async def rename_blob(self, old: str, new: str) -> None:
        """Have a blob, and all attachments that stand on it, go by a new name. No such blob: nothing happens."""
        await self._database.write(partial(attachments.rename_blob, old=old, new=new))

    async def list_refs(self, thread: str) -> Sequence[FileRef]:
        """What each file id ever shown in a thread stands for (F4)."""
        return await self._database.read(partial(file_refs.list_refs, thread=thread), few=True)

    async def delete_refs(self, thread: str, response_id: str) -> None:
        """Take back the ids of a turn that never was: its message went on with an earlier one."""
        await self._database.write(partial(file_refs.delete_unused, thread=thread, response_id=response_id))
