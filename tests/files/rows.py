"""Rows of attachments in memory. Each method is one transaction."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from recto.conversation.message_files import Attachment
from recto.errors import FileRefused, NotFound


class MemoryRows:
    """Attachment rows without a database. `named` are the attachments that threads refer to."""

    def __init__(self) -> None:
        self.attachments: dict[str, Attachment] = {}
        self.named: set[str] = set()

    async def add(self, attachment: Attachment, user_bytes: int, user_files: int = 0) -> Attachment:
        mine = [one for one in self.attachments.values() if one.owner == attachment.owner]
        has = sum(one.size for one in mine)
        if user_bytes and has + attachment.size > user_bytes:
            raise FileRefused(f"you have {has:,} bytes of files; delete some", code="quota")
        if user_files and len(mine) >= user_files:
            raise FileRefused(f"you have {len(mine):,} files; delete some", code="quota")
        same = [one.blob for one in mine if one.sha256 == attachment.sha256]
        row = replace(attachment, blob=same[0] if same else attachment.blob)
        self.attachments[row.id] = row
        return row

    async def find(self, id: str, owner: str | None = None) -> Attachment:
        row = self.attachments.get(id)
        if row is None or (owner is not None and row.owner != owner):
            raise NotFound(what="attachment", id=id)
        return row

    async def find_same(self, owner: str, sha256: str, name: str) -> Attachment | None:
        identity = (owner, sha256, name)
        return next((one for one in self.attachments.values() if (one.owner, one.sha256, one.name) == identity), None)

    async def delete(self, owner: str, id: str) -> Sequence[str]:
        return self._delete([await self.find(id, owner)])

    async def delete_unused(self, before: datetime, limit: int) -> tuple[int, Sequence[str]]:
        rows = [one for one in self.attachments.values() if one.created < before and one.id not in self.named][:limit]
        return len(rows), self._delete(rows)

    async def find_blobs(self, names: Sequence[str]) -> frozenset[str]:
        return frozenset(names) & {one.blob for one in self.attachments.values()}

    async def rename_blob(self, old: str, new: str) -> None:
        for one in [one for one in self.attachments.values() if one.blob == old]:
            self.attachments[one.id] = replace(one, blob=new)

    def _delete(self, rows: Sequence[Attachment]) -> list[str]:
        for one in rows:
            del self.attachments[one.id]
        remaining = {one.blob for one in self.attachments.values()}
        return sorted({one.blob for one in rows} - remaining)
