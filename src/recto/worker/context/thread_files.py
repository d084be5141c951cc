"""Files of a run's thread: their ids, urls and bytes. Each run loads them once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from recto.conversation.log import Entry, view
from recto.conversation.message_files import Attachment, FileMaps, FileRef, InputFile, display_name, file_of
from recto.conversation.messages import Data, File, Key, ToolMessage, Url, UserMessage
from recto.errors import FileRefused, NotFound
from recto.files.attachments import Attachments
from recto.files.documents.document_cache import DocumentCache
from recto.files.signing import Signer
from recto.page.facts import Facts, Turn
from recto.page.steps.remind import files_shown, maps_of
from recto.tools.ports import Document
from recto.worker.context.pictures import Pictures, wanted_pictures

# Signed urls of a page are valid for at least this long.
MIN_VALIDITY = timedelta(hours=1)
NOT_READ = "documents are not read here. Tell the user so."
DELETED = "{name} was deleted, so it cannot be read. Say so, and ask for it again if it is needed."


@dataclass(frozen=True, kw_only=True)
class FileServices:
    """Storage, signed urls, pictures and parsed documents of a server.

    Without `pictures`, pages show none. Without `documents`, tools cannot read any.
    """

    attachments: Attachments
    signer: Signer
    pictures: Pictures | None = None
    documents: DocumentCache | None = None


@dataclass(frozen=True, kw_only=True)
class ThreadFiles:
    """The files of one thread. Pages show `urls` and `pictures`, which are keyed by storage key."""

    services: FileServices | None = None
    refs: Mapping[str, FileRef] = field(default_factory=dict[str, FileRef])
    urls: Mapping[str, str] = field(default_factory=dict[str, str])
    pictures: Mapping[str, Url | Data] | None = None

    @property
    def has_bytes(self) -> bool:
        """True if pages contain pictures as bytes."""
        return any(isinstance(source, Data) for source in (self.pictures or {}).values())

    def fresh_urls(self, now: datetime) -> Mapping[str, str]:
        """Return a newly signed url for each file id, for external tools (F8)."""
        if self.services is None:
            return {}
        sign = self.services.signer.page_url
        return {id: sign(ref.attachment, ref.name, now) for id, ref in self.refs.items() if ref.is_there}


NO_FILES = ThreadFiles()


def has_files(log: Sequence[Entry]) -> bool:
    """Return True if any message of a log or of a request has a file."""
    return any(
        isinstance(part, File) for entry in log if isinstance(entry, (UserMessage, ToolMessage)) for part in entry.parts
    )


async def load_thread_files(
    services: FileServices, refs: Sequence[FileRef], log: Sequence[Entry], now: datetime
) -> ThreadFiles:
    """Return the files of a thread. `log` includes the input of the run."""
    log_view = view(log)
    turn_start = log_view.messages[log_view.turn_start : log_view.turn_start + 1]
    # Use the time of the turn's admission, so that all pages of the turn have the same urls, unless the urls would
    # expire soon.
    signed_at = (turn_start[0].time if turn_start else None) or now
    if now + MIN_VALIDITY > signed_at + timedelta(days=1):
        signed_at = now
    existing = [ref for ref in refs if ref.is_there]
    urls = {ref.attachment: services.signer.page_url(ref.attachment, ref.name, signed_at) for ref in existing}
    pictures = None
    if services.pictures is not None:
        pictures = await services.pictures.choose(wanted_pictures(log_view, refs), urls, services.attachments)
    return ThreadFiles(services=services, refs={ref.id: ref for ref in refs}, urls=urls, pictures=pictures)


@dataclass(frozen=True, kw_only=True)
class ThreadToolFiles:
    """The files of a thread for tools. They are computed on first use, because most tools need none."""

    files: ThreadFiles
    services: FileServices
    log: Sequence[Entry]
    max_files: int

    @property
    def maps(self) -> FileMaps:
        """The file of each id that was ever shown in the thread (F7), regardless of the agent's current limits (F4)."""
        return self._maps

    @property
    def turns(self) -> Sequence[Sequence[InputFile]]:
        """The files of each visible user message, oldest first."""
        return self._turns

    @cached_property
    def _turns(self) -> Sequence[Sequence[InputFile]]:
        files = files_shown(self._facts)
        return [files.get(id(message), ()) for message in view(self.log).messages if isinstance(message, UserMessage)]

    @cached_property
    def _maps(self) -> FileMaps:
        maps, urls = maps_of(self._facts), self.files.urls
        older = dict[str, InputFile]()
        for id, ref in self.files.refs.items():
            if id not in maps.files:
                file, url = file_of(ref), urls.get(ref.attachment, "")
                older[id] = InputFile(id=ref.id, name=display_name(file, url), kind=ref.kind, url=url, file=file)
        files = {**older, **maps.files}
        documents = {id: one for id, one in files.items() if one.kind == "document"}
        return replace(
            maps, documents=documents, files=files, urls={id: one.url for id, one in files.items() if one.url}
        )

    @property
    def _facts(self) -> Facts:
        # User messages already have the response ids of their admission, so the turn can be empty.
        return Facts(log=self.log, turn=Turn(), urls=self.files.urls, max_files=self.max_files)

    async def document(self, file: InputFile) -> Document:
        """Open a file as a document. All threads of the owner share the document (D3)."""
        # Open the attachment each time, because a cached document must not outlive the permission to read it.
        attachment, documents = await self._open(file), self.services.documents
        if documents is None:
            raise FileRefused(NOT_READ, code="not_read")
        return await documents.open(attachment, lambda: self.services.attachments.read(attachment))

    async def read(self, file: InputFile) -> AsyncGenerator[bytes]:
        """Stream the bytes of a file."""
        async for piece in self.services.attachments.read(await self._open(file)):
            yield piece

    async def _open(self, file: InputFile) -> Attachment:
        source = file.file.source
        try:
            return await self.services.attachments.get(source.key if isinstance(source, Key) else "")
        except NotFound as error:
            raise FileRefused(DELETED.format(name=file.name), code="gone") from error


def open_tool_files(files: ThreadFiles, log: Sequence[Entry], max_files: int) -> ThreadToolFiles | None:
    """Return the files for tools, or None if the server stores no files."""
    if files.services is None:
        return None
    return ThreadToolFiles(files=files, services=files.services, log=log, max_files=max_files)
