"""What files need of others, and what others need of them. Values and small protocols; nothing acts here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from recto.agents.file_input import FileInput
from recto.page.attachment import Attachment

GIBIBYTE = 2**30


@dataclass(frozen=True, kw_only=True)
class FileSettings:
    """Bytes of one file and of all a user has, and seconds an upload that no run ever named is kept. 0: no limit."""

    upload_bytes: int = GIBIBYTE
    user_bytes: int = 10 * GIBIBYTE
    unused_seconds: float = 86_400


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A file on its way in: whose, the name and type its sender gives it, and what may come."""

    owner: str
    name: str
    allowed: FileInput
    declared: str | None = None


@dataclass(frozen=True, kw_only=True)
class StoredBlob:
    """Bytes as the storage lists them."""

    name: str
    size: int
    written: datetime


@dataclass(frozen=True, kw_only=True)
class ServedAs:
    """What a storage that serves bytes itself says of them: their type, and the header that names them."""

    mime_type: str
    disposition: str


class Storage(Protocol):
    """Bytes by name. A name is written once, whole or not at all, and never changed."""

    async def write(self, name: str, pieces: AsyncIterable[bytes]) -> None:
        """Store bytes as they come. Where that breaks off, whoever's fault it is, nothing is left of them."""
        ...

    def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
        """The bytes from `start` up to but not including `end`, in pieces. None there: NotFound."""
        ...

    async def delete(self, names: Sequence[str]) -> None:
        """Delete what is there of these."""
        ...

    def list_all(self) -> AsyncGenerator[Sequence[StoredBlob]]:
        """Everything that is stored, some at a time."""
        ...

    async def link(self, name: str, seconds: float, served: ServedAs | None = None) -> str | None:
        """A url of the storage's own, for anybody who has it; None where it has none to give."""
        ...

    async def probe(self) -> None:
        """Write, read and delete, as everything else does. Raises StorageDown."""
        ...


class AttachmentRows(Protocol):
    """Attachments in a database. Each method is one transaction."""

    async def add_attachment(self, attachment: Attachment, user_bytes: int) -> Attachment:
        """Store a row; the same bytes under another blob's name are found, and that name is in what is returned.

        More than `user_bytes` of one owner (0: no limit) raises FileRefused.
        """
        ...

    async def find_attachment(self, id: str, owner: str | None = None) -> Attachment:
        """An attachment. Where an owner is named, somebody else's is not there: NotFound."""
        ...

    async def same_attachment(self, owner: str, sha256: str, name: str) -> Attachment | None:
        """The owner's attachment with these bytes and this name."""
        ...

    async def delete_attachment(self, owner: str, id: str) -> Sequence[str]:
        """Delete a row. Returns the blobs nobody has any more; their rows are gone too."""
        ...

    async def delete_unused_attachments(self, before: datetime, limit: int) -> tuple[int, Sequence[str]]:
        """Delete rows made before a time that no thread refers to: how many, and the blobs nobody has any more."""
        ...

    async def delete_attachments_of(self, owner: str) -> Sequence[str]:
        """Delete all rows of an owner, in pieces. Returns the blobs nobody has any more."""
        ...

    async def known_blobs(self, names: Sequence[str]) -> frozenset[str]:
        """Those of these blobs that somebody has."""
        ...
