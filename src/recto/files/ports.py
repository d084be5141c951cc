"""What files need of others, and what others need of them. Values and small protocols; nothing acts here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from recto.agents.file_input import FileInput
from recto.conversation.message_files import Attachment

if TYPE_CHECKING:
    from recto.http.client import HttpConnection


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A file on its way in: whose, the name and type its sender gives it, and what may come.

    `room` are the bytes its owner may still store, where somebody has looked. `once`: bytes and a name that its owner
    has already are that attachment, and no other.
    """

    owner: str
    name: str
    allowed: FileInput
    declared_type: str | None = None
    room: int | None = None
    once: bool = False


@dataclass(frozen=True, kw_only=True)
class StoredBlob:
    """Bytes as the storage lists them."""

    name: str
    size: int
    modified: datetime


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
        """Everything of ours that is stored, some at a time. What others keep in the same place is passed over."""
        ...

    async def link(self, name: str, seconds: float, served: ServedAs | None = None) -> str | None:
        """A url of the storage's own, for anybody who has it; None where it has none to give."""
        ...

    async def probe(self) -> None:
        """Write, read and delete, as everything else does. Raises StorageDown."""
        ...


class LabelledStorage(Storage, Protocol):
    """A storage as it is opened: it says whose it is, and is tidied up by the server that it belongs to."""

    async def read_label(self) -> bytes | None:
        """What was last written as its label; None where nothing was. The label is not listed, and never deleted."""
        ...

    async def write_label(self, label: bytes) -> None:
        """Write its label, over what is there, whole or not at all."""
        ...

    async def remove_leftovers(self) -> None:
        """Remove what killed processes were writing. For a server at its start: others may be at work here."""
        ...


class BlobNotes(Protocol):
    """Short values that all servers of a database share."""

    async def find(self, name: str) -> str | None:
        """Return the value of a note, or None."""
        ...

    async def add(self, name: str, value: str) -> str:
        """Store a note if there is none. Return the stored value."""
        ...

    async def set(self, name: str, value: str) -> None:
        """Set the value of a note."""
        ...


class BlobRows(Protocol):
    """The rows of blobs in a database."""

    async def find_blobs(self, names: Sequence[str]) -> frozenset[str]:
        """Return those of these blobs that have a row."""
        ...


class OwningDatabase(Protocol):
    """The parts of a database that identify the owner of a storage. `is_shared`: several servers use it."""

    @property
    def is_shared(self) -> bool: ...

    @property
    def notes(self) -> BlobNotes: ...

    @property
    def files(self) -> BlobRows: ...


class AttachmentRows(Protocol):
    """Attachments in a database. Each method is one transaction."""

    async def add(self, attachment: Attachment, user_bytes: int, user_files: int = 0) -> Attachment:
        """Store a row; its owner's same bytes under another blob's name are found, and that is in what is returned.

        More than `user_bytes` or `user_files` of one owner (0: no limit) raises FileRefused.
        """
        ...

    async def find(self, id: str, owner: str | None = None) -> Attachment:
        """An attachment. Where an owner is named, somebody else's is not there: NotFound."""
        ...

    async def find_same(self, owner: str, sha256: str, name: str) -> Attachment | None:
        """The owner's attachment with these bytes and this name."""
        ...

    async def delete(self, owner: str, id: str) -> Sequence[str]:
        """Delete a row. Returns the blobs nobody has any more; their rows are gone too."""
        ...

    async def delete_unused(self, before: datetime, limit: int) -> tuple[int, Sequence[str]]:
        """Delete rows made before a time that no thread refers to: how many, and the blobs nobody has any more."""
        ...

    async def find_blobs(self, names: Sequence[str]) -> frozenset[str]:
        """Those of these blobs that somebody has."""
        ...

    async def rename_blob(self, old: str, new: str) -> None:
        """The bytes of a blob are under a new name from now on, for all attachments that stood on the old one."""
        ...


class WebSession(Protocol):
    """HTTP to hosts that an operator has named. It checks each address before it connects."""

    @property
    def has_refused(self) -> bool:
        """Return True if an address was rejected because it is not public."""
        ...

    async def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> HttpConnection:
        """Send a request and return the head of the response. The caller closes it. Raise OSError without one."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
