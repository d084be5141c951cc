"""The files of a run's thread: what their ids stand for, their urls, their bytes. Looked up once in a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from recto.conversation.log import Entry, View, view
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

# A url that a page shows is good for at least this long; else all are signed anew.
SOON = timedelta(hours=1)
NOT_READ = "documents are not read here. Tell the user so."
GONE = "{name} was deleted, so it cannot be read. Say so, and ask for it again if it is needed."


@dataclass(frozen=True, kw_only=True)
class FileServices:
    """Where files are and how they are named to others. Without `pictures` none are chosen: for who sees none.

    Without `documents` none is read: for who only shows what there is.
    """

    attachments: Attachments
    signer: Signer
    pictures: Pictures | None = None
    documents: DocumentCache | None = None


@dataclass(frozen=True, kw_only=True)
class ThreadFiles:
    """The files of one thread. `urls` and `pictures` are what pages show, by storage key."""

    services: FileServices | None = None
    refs: Mapping[str, FileRef] = field(default_factory=dict[str, FileRef])
    urls: Mapping[str, str] = field(default_factory=dict[str, str])
    pictures: Mapping[str, Url | Data] | None = None

    @property
    def has_bytes(self) -> bool:
        """Whether pages carry pictures as bytes."""
        return any(isinstance(source, Data) for source in (self.pictures or {}).values())

    def fresh_urls(self, now: datetime) -> Mapping[str, str]:
        """A url for each file id, signed now, for tools that act elsewhere (F8)."""
        if self.services is None:
            return {}
        sign = self.services.signer.page_url
        return {id: sign(ref.attachment, ref.name, now) for id, ref in self.refs.items() if ref.is_there}


NO_FILES = ThreadFiles()


def has_files(log: Sequence[Entry]) -> bool:
    """Whether any message of a log, or of a request, has a file in it."""
    return any(
        isinstance(part, File) for entry in log if isinstance(entry, (UserMessage, ToolMessage)) for part in entry.parts
    )


async def load_thread_files(
    services: FileServices, refs: Sequence[FileRef], log: Sequence[Entry], now: datetime
) -> ThreadFiles:
    """The files of a thread. `log` has everything the run begins with, its own input included."""
    seen = view(log)
    at = _time_of_urls(seen, now)
    there = [ref for ref in refs if ref.is_there]
    urls = {ref.attachment: services.signer.page_url(ref.attachment, ref.name, at) for ref in there}
    pictures = None
    if services.pictures is not None:
        pictures = await services.pictures.choose(wanted_pictures(seen, refs), urls, services.attachments)
    return ThreadFiles(services=services, refs={ref.id: ref for ref in refs}, urls=urls, pictures=pictures)


def _time_of_urls(seen: View, now: datetime) -> datetime:
    """When the turn was admitted, so that all its pages show the same urls; now, where those would soon expire."""
    admitted = seen.messages[seen.turn_start].time if seen.turn_start < len(seen.messages) else None
    if admitted is None or now + SOON > admitted + timedelta(days=1):
        return now
    return admitted


@dataclass(frozen=True, kw_only=True)
class ToolFiles:
    """The files of a thread as tools see them. Worked out when a tool asks: most never do."""

    files: ThreadFiles
    services: FileServices
    log: Sequence[Entry]
    max_files: int

    @property
    def maps(self) -> FileMaps:
        """What each file id ever shown stands for (F7)."""
        return self._maps

    @property
    def turns(self) -> Sequence[Sequence[InputFile]]:
        """The files of each user message in view, oldest first."""
        return self._turns

    @cached_property
    def _maps(self) -> FileMaps:
        return _with_refs(maps_of(self._facts), self.files)

    @cached_property
    def _turns(self) -> Sequence[Sequence[InputFile]]:
        shown = files_shown(self._facts)
        return [shown.get(id(message), ()) for message in view(self.log).messages if isinstance(message, UserMessage)]

    @property
    def _facts(self) -> Facts:
        # Users' messages have the response ids they were admitted with, so the turn need not say it.
        return Facts(log=self.log, turn=Turn(), urls=self.files.urls, max_files=self.max_files)

    async def document(self, file: InputFile) -> Document:
        """A file as a document, read once for all threads of its owner (D3)."""
        # Asked for each time: who may not read the file any more is told so, whatever is kept of it.
        attachment, documents = await self._open(file), self.services.documents
        if documents is None:
            raise FileRefused(NOT_READ, code="not_read")
        return await documents.open(attachment, lambda: self.services.attachments.read(attachment))

    async def read(self, file: InputFile) -> AsyncGenerator[bytes]:
        """The bytes of a file, in pieces."""
        async for piece in self.services.attachments.read(await self._open(file)):
            yield piece

    async def _open(self, file: InputFile) -> Attachment:
        source = file.file.source
        try:
            return await self.services.attachments.open(source.key if isinstance(source, Key) else "")
        except NotFound as error:
            raise FileRefused(GONE.format(name=file.name), code="gone") from error


def tool_files(files: ThreadFiles, log: Sequence[Entry], max_files: int) -> ToolFiles | None:
    """What tools may work with; None where the server keeps no files."""
    if files.services is None:
        return None
    return ToolFiles(files=files, services=files.services, log=log, max_files=max_files)


def _with_refs(maps: FileMaps, files: ThreadFiles) -> FileMaps:
    """The maps with every id that was ever shown, whatever the agent's limits are now (F4)."""
    older = {id: _input_file(ref, files.urls) for id, ref in files.refs.items() if id not in maps.files}
    known = {**older, **maps.files}
    documents = {id: one for id, one in known.items() if one.kind == "document"}
    urls = {id: one.url for id, one in known.items() if one.url}
    return replace(maps, documents=documents, files=known, urls=urls)


def _input_file(ref: FileRef, urls: Mapping[str, str]) -> InputFile:
    file, url = file_of(ref), urls.get(ref.attachment, "")
    return InputFile(id=ref.id, name=display_name(file, url), kind=ref.kind, url=url, file=file)
