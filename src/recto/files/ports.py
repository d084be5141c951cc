"""Values and protocols between files and other packages."""

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
    """A file that a user sends. `room` is the user's remaining quota in bytes.

    With `once`, a file with the bytes and name of a stored one reuses its attachment.
    """

    owner: str
    name: str
    allowed: FileInput
    declared_type: str | None = None
    room: int | None = None
    once: bool = False


@dataclass(frozen=True, kw_only=True)
class StoredBlob:
    """A blob as the storage lists it."""

    name: str
    size: int
    modified: datetime


@dataclass(frozen=True, kw_only=True)
class ServedAs:
    """Headers for a storage that serves bytes itself: media type and disposition."""

    mime_type: str
    disposition: str


class Storage(Protocol):
    """Bytes by name. A name is written once, completely or not at all, and never changes."""

    async def write(self, name: str, pieces: AsyncIterable[bytes]) -> None:
        """Store bytes as they arrive. An error leaves no partial blob."""
        ...

    def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
        """Yield the bytes from `start` up to but not including `end`. Raise NotFound if the blob does not exist."""
        ...

    async def delete(self, names: Sequence[str]) -> None:
        """Delete blobs. Ignore missing ones."""
        ...

    def list_all(self) -> AsyncGenerator[Sequence[StoredBlob]]:
        """Yield all our blobs in batches. Skip other files in the same place."""
        ...

    async def link(self, name: str, seconds: float, served: ServedAs | None = None) -> str | None:
        """Return a storage URL that works without credentials for `seconds`; None if the storage has no URLs."""
        ...

    async def probe(self) -> None:
        """Write, read and delete a few bytes. Raise StorageDown."""
        ...


class LabelledStorage(Storage, Protocol):
    """A storage with a label of its owner."""

    async def read_label(self) -> bytes | None:
        """Return the label, or None. `list_all` omits it, and a sweep never deletes it."""
        ...

    async def write_label(self, label: bytes) -> None:
        """Replace the label, completely or not at all."""
        ...

    async def remove_leftovers(self) -> None:
        """Delete unfinished files of killed processes.

        Called when a server starts, possibly while others are running.
        """
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
        """Return the blobs among `names` that have a row."""
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
        """Store a row, with the owner's existing blob if it has the same bytes.

        Raise FileRefused if the owner would exceed a limit. 0 sets no limit.
        """
        ...

    async def find(self, id: str, owner: str | None = None) -> Attachment:
        """Return an attachment. Raise NotFound if it does not exist or belongs to another user than `owner`."""
        ...

    async def find_same(self, owner: str, sha256: str, name: str) -> Attachment | None:
        """Return the attachment of an owner with these bytes and this name."""
        ...

    async def delete(self, owner: str, id: str) -> Sequence[str]:
        """Delete an attachment. Return its blob if no other attachment uses it; the blob's row is deleted too."""
        ...

    async def delete_unused(self, before: datetime, limit: int) -> tuple[int, Sequence[str]]:
        """Delete at most `limit` attachments older than `before` that no thread uses.

        Return their number, and the blobs that no other attachment uses.
        """
        ...

    async def find_blobs(self, names: Sequence[str]) -> frozenset[str]:
        """Return the blobs among `names` that have a row."""
        ...

    async def rename_blob(self, old: str, new: str) -> None:
        """Replace blob `old` by `new` in all attachments that use it."""
        ...


class WebSession(Protocol):
    """HTTP to hosts that an operator has named. It checks each address before it connects."""

    @property
    def has_refused(self) -> bool:
        """Return True if an address was rejected because it is not public."""
        ...

    async def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> HttpConnection:
        """Send a request and return the head of the response, which the caller closes.

        Raise OSError if none arrives.
        """
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
