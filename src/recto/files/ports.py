"""What files need of others, and what others need of them. Values and small protocols; nothing acts here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from recto.agents.file_input import FileInput
from recto.conversation.attachment import Attachment

if TYPE_CHECKING:
    # Here: few servers ever ask others, and its client is large.
    import aiohttp


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A file on its way in: whose, the name and type its sender gives it, and what may come.

    `room` are the bytes its owner may still store, where somebody has looked. `once`: bytes and a name that its owner
    has already are that attachment, and no other.
    """

    owner: str
    name: str
    allowed: FileInput
    declared: str | None = None
    room: int | None = None
    once: bool = False


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


class OwningDatabase(Protocol):
    """What a database tells of the storage that belongs to it. `is_shared`: several servers use it."""

    @property
    def is_shared(self) -> bool: ...

    async def note(self, name: str) -> str | None: ...

    async def take_note(self, name: str, value: str) -> str:
        """Write a note unless there is one. Returns what is there."""
        ...

    async def change_note(self, name: str, value: str) -> None: ...

    async def known_blobs(self, names: Sequence[str]) -> frozenset[str]: ...


class AttachmentRows(Protocol):
    """Attachments in a database. Each method is one transaction."""

    async def add_attachment(self, attachment: Attachment, user_bytes: int, user_files: int = 0) -> Attachment:
        """Store a row; its owner's same bytes under another blob's name are found, and that is in what is returned.

        More than `user_bytes` or `user_files` of one owner (0: no limit) raises FileRefused.
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

    async def known_blobs(self, names: Sequence[str]) -> frozenset[str]:
        """Those of these blobs that somebody has."""
        ...

    async def mend_blob(self, old: str, new: str) -> None:
        """The bytes of a blob are under a new name from now on, for all attachments that stood on the old one."""
        ...


class WebSession(Protocol):
    """A session with hosts of the web, each of whose sockets is checked before it is connected."""

    @property
    def session(self) -> aiohttp.ClientSession:
        """What sends requests. Whoever asked for it closes it."""
        ...

    @property
    def has_refused(self) -> bool:
        """Whether an address was refused because it is not public."""
        ...
