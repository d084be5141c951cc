"""Complete reading of documents from a path or bytes, for programs and the command line. Nothing is cached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from recto.config.file_settings import ParseLimits
from recto.conversation.document import Element, Extent, Unit, text_of
from recto.conversation.file_formats import format_of
from recto.errors import FileRefused
from recto.files.documents.cached_document import REST_UNREAD
from recto.files.documents.document_cache import CUT_OFF, Parsing
from recto.files.file_names import safe_name
from recto.files.file_type import HEAD_BYTES, detect_type
from recto.files.parsing.ports import DocumentEnd, DocumentStart, Failed, FoundElements, Task

PIECE_BYTES = 2**20
# Owner in the parser queue, so that these documents take turns with those of users.
OWNER = "reader"
MISSING = "there is no such file; check its name"
FOLDER = "it is a folder; name the files in it"
FORBIDDEN = "it cannot be read ({why}); check who may read it"
EMPTY = "it is empty; give a file with something in it"
NO_DOCUMENT = "it is {kind}, and only documents are read; give a document"
KINDS = {"image": "an image", "audio": "sound", "video": "a video"}

OnExtent: TypeAlias = Callable[[Extent], None]


@dataclass(frozen=True, kw_only=True)
class ReadDocument:
    """A document. If it could not be read to its end, `incomplete` and the last element contain the reason."""

    name: str
    elements: tuple[Element, ...]
    unit: Unit | None = None
    page_count: int | None = None
    incomplete: str = ""

    @cached_property
    def text(self) -> str:
        """All text, as a model gets it."""
        return text_of(self.elements)

    def pages(self, first: int, last: int | None) -> tuple[Element, ...]:
        """Return the elements of pages `first` to `last`, counted from 1.

        The first page includes elements before it.
        """
        elements: list[Element] = []
        page = 1
        for element in self.elements:
            if element.kind == "page":
                page = element.page or page + 1
            if page >= first and (last is None or page <= last):
                elements.append(element)
        return tuple(elements)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A document to read, and its options. `name` names bytes. With `last_page`, reading may stop after that page."""

    source: Path | bytes
    name: str = ""
    limits: ParseLimits = ParseLimits()
    ocr: str = ""
    last_page: int | None = None


async def read_document(
    source: str | Path | bytes, *, name: str = "", limits: ParseLimits | None = None, ocr: str = ""
) -> ReadDocument:
    """Read a file, or bytes under a name. `ocr` lists languages of scans (`eng+deu`). Raise FileRefused."""
    from recto.files.parsing.parser_pool import Parsers, PoolSettings

    parsers = Parsers(PoolSettings(children=1, of_user=1))
    path = Path(source) if isinstance(source, str) else source
    try:
        return await read_with(parsers, Reading(source=path, name=name, limits=limits or ParseLimits(), ocr=ocr))
    finally:
        await parsers.close()


async def read_with(parsing: Parsing, reading: Reading, on_extent: OnExtent = lambda _: None) -> ReadDocument:
    """Read a complete document with running parsers. Raise FileRefused if nothing of it can be read."""
    name = safe_name(reading.name or (reading.source.name if isinstance(reading.source, Path) else ""))
    start, elements, incomplete, pages = DocumentStart(), list[Element](), "", 0
    try:
        async with aclosing(_frames(parsing, reading, name)) as frames:
            async for frame in frames:
                if isinstance(frame, DocumentStart):
                    start = frame
                else:
                    elements += frame.elements
                    pages = frame.pages
                on_extent(Extent(elements=len(elements), unit=start.unit, pages=pages, page_count=start.page_count))
                if reading.last_page is not None and start.unit and pages >= reading.last_page:
                    break
    except FileRefused as error:
        if not elements:
            raise
        incomplete = str(error)
        elements.append(Element(kind="note", text=REST_UNREAD.format(reason=error)))
    return ReadDocument(
        name=name, elements=tuple(elements), unit=start.unit, page_count=start.page_count, incomplete=incomplete
    )


async def _frames(parsing: Parsing, reading: Reading, name: str) -> AsyncGenerator[DocumentStart | FoundElements]:
    """Yield the start and the elements of a document. Raise FileRefused if it cannot be read to its end."""
    async with aclosing(_pieces(reading.source)) as pieces:
        head = await anext(pieces, b"")
        if not head:
            raise FileRefused(EMPTY, code="empty")
        type = detect_type(head[:HEAD_BYTES], name, None)
        if type.kind != "document":
            raise FileRefused(NO_DOCUMENT.format(kind=KINDS[type.kind]), code="not_a_document")
        task = Task(format=format_of(type.mime_type, name), name=name, limits=reading.limits, ocr=reading.ocr)
        async with aclosing(_chain(head, pieces)) as all, aclosing(parsing.parse(OWNER, task, all)) as frames:
            async for frame in frames:
                match frame:
                    case Failed(code=code, reason=reason):
                        raise FileRefused(reason, code=code)
                    case DocumentEnd():
                        return
                    case _:
                        yield frame
    raise FileRefused(CUT_OFF, code="cut_off")


async def _pieces(source: Path | bytes) -> AsyncGenerator[bytes]:
    """Yield the bytes of a file. The first piece is large enough to detect the type."""
    if isinstance(source, bytes):
        yield source
        return
    try:
        with await asyncio.to_thread(lambda: source.open("rb")) as file:
            while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
                yield piece
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileRefused(MISSING, code="missing") from error
    except IsADirectoryError as error:
        raise FileRefused(FOLDER, code="folder") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise FileRefused(FORBIDDEN.format(why=why), code="unreadable") from error


async def _chain(head: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield head
    async for piece in rest:
        yield piece
