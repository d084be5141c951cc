"""The files of a run's thread: what their ids stand for, their urls, their bytes. Looked up once in a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from recto.errors import FileRefused, NotFound
from recto.files.attachments import Attachments
from recto.files.signing import Signer
from recto.page import Entry, Facts, FileMaps, InputFile, Key, UserMessage, maps_of, view
from recto.page.attachment import FileRef, file_of
from recto.page.input_files import display_name
from recto.page.log import messages_of
from recto.page.messages import File, ToolMessage
from recto.page.remind import files_shown
from recto.worker.pictures import Pictures

# A url that a page shows is good for at least this long; else all are signed anew.
SOON = timedelta(hours=1)
GONE = "{name} was deleted, so it cannot be read. Say so, and ask for it again if it is needed."


@dataclass(frozen=True, kw_only=True)
class Cabinet:
    """Where files are and how they are named to others. `pictures` is set where providers cannot reach our urls."""

    attachments: Attachments
    signer: Signer
    pictures: Pictures | None = None


@dataclass(frozen=True, kw_only=True)
class Filing:
    """The files of one thread. `urls` and `images` are what pages show, by storage key; `images` None: the urls are."""

    cabinet: Cabinet | None = None
    refs: Mapping[str, FileRef] = field(default_factory=dict[str, FileRef])
    urls: Mapping[str, str] = field(default_factory=dict[str, str])
    images: Mapping[str, str] | None = None

    def fresh_urls(self, now: datetime) -> Mapping[str, str]:
        """A url for each file id, signed now, for tools that act elsewhere (F8)."""
        if self.cabinet is None:
            return {}
        sign = self.cabinet.signer.page_url
        return {id: sign(ref.attachment, ref.name, now) for id, ref in self.refs.items() if ref.is_there}


NO_FILES = Filing()


def has_files(log: Sequence[Entry]) -> bool:
    """Whether any message of a log, or of a request, has a file in it."""
    return any(
        isinstance(part, File) for entry in log if isinstance(entry, (UserMessage, ToolMessage)) for part in entry.parts
    )


async def open_filing(cabinet: Cabinet, refs: Sequence[FileRef], log: Sequence[Entry], now: datetime) -> Filing:
    """The files of a thread. `log` has everything the run begins with, its own input included."""
    at = _time_of_urls(log, now)
    there = [ref for ref in refs if ref.is_there]
    urls = {ref.attachment: cabinet.signer.page_url(ref.attachment, ref.name, at) for ref in there}
    images = None
    if cabinet.pictures is not None:
        # Those that are kept in memory are not asked for again: one that was deleted must not come from there.
        shown = [key for key in _newest_images(log) if key in urls]
        images = await cabinet.pictures.load(shown, cabinet.attachments)
    return Filing(cabinet=cabinet, refs={ref.id: ref for ref in refs}, urls=urls, images=images)


def _time_of_urls(log: Sequence[Entry], now: datetime) -> datetime:
    """When the turn was admitted, so that all its pages show the same urls; now, where those would soon expire."""
    seen = view(log)
    admitted = seen.messages[seen.turn_start].time if seen.turn_start < len(seen.messages) else None
    if admitted is None or now + SOON > admitted + timedelta(days=1):
        return now
    return admitted


def _newest_images(log: Sequence[Entry]) -> Sequence[str]:
    """The storage keys of all images, those said last first."""
    holders = [one for one in reversed(messages_of(log)) if isinstance(one, (UserMessage, ToolMessage))]
    files = [part for one in holders for part in one.parts if isinstance(part, File) and part.kind == "image"]
    return list(dict.fromkeys([file.source.key for file in files if isinstance(file.source, Key)]))


@dataclass(frozen=True, kw_only=True)
class AtHand:
    """The files of a thread as tools see them."""

    maps: FileMaps
    turns: Sequence[Sequence[InputFile]]
    attachments: Attachments

    async def read(self, file: InputFile) -> AsyncGenerator[bytes]:
        """The bytes of a file, in pieces."""
        source = file.file.source
        try:
            attachment = await self.attachments.open(source.key if isinstance(source, Key) else "")
        except NotFound as error:
            raise FileRefused(GONE.format(name=file.name), code="gone") from error
        async for piece in self.attachments.read(attachment):
            yield piece


def at_hand(filing: Filing, facts: Facts) -> AtHand | None:
    """What tools may work with; None in a thread without files."""
    if filing.cabinet is None:
        return None
    shown = files_shown(facts)
    turns = [shown.get(id(message), ()) for message in view(facts.log).messages if isinstance(message, UserMessage)]
    maps = _with_refs(maps_of(facts), filing)
    return AtHand(maps=maps, turns=turns, attachments=filing.cabinet.attachments)


def _with_refs(maps: FileMaps, filing: Filing) -> FileMaps:
    """The maps with every id that was ever shown, whatever the agent's limits are now (F4)."""
    older = {id: _input_file(ref, filing.urls) for id, ref in filing.refs.items() if id not in maps.files}
    files = {**older, **maps.files}
    documents = {id: one for id, one in files.items() if one.kind == "document"}
    urls = {id: one.url for id, one in files.items() if one.url}
    return replace(maps, documents=documents, files=files, urls=urls)


def _input_file(ref: FileRef, urls: Mapping[str, str]) -> InputFile:
    file, url = file_of(ref), urls.get(ref.attachment, "")
    return InputFile(id=ref.id, name=display_name(file, url), kind=ref.kind, url=url, file=file)
