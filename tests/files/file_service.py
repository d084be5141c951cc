"""Attachments with a folder as storage and rows in memory."""

from collections.abc import AsyncGenerator, AsyncIterable
from datetime import UTC, datetime
from pathlib import Path

from recto.agents.file_input import FileInput
from recto.config.file_settings import FileSettings
from recto.conversation.message_files import Attachment
from recto.files.attachments import Attachments
from recto.files.ports import Upload
from recto.files.storage.local_storage import LocalStorage
from tests.files.blob_names import make_counter
from tests.files.rows import MemoryRows

ANY = FileInput(is_on=True, audio=True, video=True, endings=("bin",))


class FileService:
    """Attachments in a folder, with rows in memory and a manual clock."""

    def __init__(self, folder: Path, settings: FileSettings | None = None, rows: MemoryRows | None = None) -> None:
        self.folder = folder
        self.now = datetime.now(UTC)
        self.rows = rows or MemoryRows()
        self.storage = LocalStorage(folder)
        self.files = self.over(self.storage, settings, first=1)

    def over(self, storage: LocalStorage, settings: FileSettings | None = None, first: int = 100) -> Attachments:
        """Return a second server with the same rows and clock."""
        file_settings = settings or FileSettings()
        return Attachments(storage, self.rows, file_settings, clock=lambda: self.now, new_id=make_counter(first))

    async def receive(self, name: str, *pieces: bytes, owner: str = "ada", allowed: FileInput = ANY) -> Attachment:
        return await self.files.receive(Upload(owner=owner, name=name, allowed=allowed), byte_stream(*pieces))

    def stored_names(self) -> list[str]:
        """Return the names of all files in the folder, staged ones included."""
        return sorted(path.name for path in self.folder.rglob("*") if path.is_file())


async def byte_stream(*pieces: bytes) -> AsyncGenerator[bytes]:
    for piece in pieces:
        yield piece


async def read(pieces: AsyncIterable[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])
