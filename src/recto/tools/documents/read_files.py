"""The read_files tool (F5): reads a thread's documents by file id, part by part.

The JSON answer is never cut; if it would be too long, all parts get shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import AfterValidator, Field

from recto.conversation.json import Json, dump
from recto.conversation.message_files import FileMaps, InputFile
from recto.errors import FileRefused, StorageDown, ToolError
from recto.page.prompt.reminder import FRAME_TAGS, neutralise
from recto.tools.documents.document_parts import (
    PAGE_CHARACTERS,
    DocumentPart,
    PageRange,
    PartFormat,
    TextPart,
    WantedPart,
    content_of,
    take_part,
)
from recto.tools.documents.read_many import NAME_SHOWN, REPORT_SECONDS, Unread, failure, files_of, read_each
from recto.tools.mark import tool
from recto.tools.ports import Document, ToolContext

MOST_FILES = 20
KNOWN_SHOWN = 10
PAGES = r"^([1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?)?$"
NO_ROOM = "Even a part of each of these {count} files does not fit into {most} characters. Ask for fewer at a time."


@dataclass(frozen=True, kw_only=True)
class DocumentRequest:
    """A requested document, or the reason why there is none."""

    id: str
    file: InputFile | str


@dataclass(frozen=True, kw_only=True)
class _Taken:
    """A document with its requested part, or with the reason why there is none."""

    document: Document
    part: DocumentPart | str


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A row of the answer. A part has its document beside it; a failure is a text."""

    id: str
    name: str
    read: _Taken | str


def _rising(pages: str) -> str:
    first, _, last = pages.partition("-")
    if last and int(first) > int(last):
        raise ValueError("the first page comes after the last")
    return pages


@tool(safe_to_repeat=True)
async def read_files(
    ids: Annotated[
        list[str],
        Field(description="Ids of documents, as # Input Files has them.", min_length=1, max_length=MOST_FILES),
    ],
    context: ToolContext,
    *,
    offset: Annotated[int, Field(description="How many characters (or elements) of each to leave out.", ge=0)] = 0,
    limit: Annotated[
        int, Field(description="How many characters (or elements) of each to show.", ge=1)
    ] = PAGE_CHARACTERS,
    pages: Annotated[
        str,
        Field(description='Only these pages, slides or sheets: "3" or "3-7".', pattern=PAGES),
        AfterValidator(_rising),
    ] = "",
    format: Annotated[
        PartFormat, Field(description="text, or elements: its pages, headings, tables as JSON, with the cells.")
    ] = "text",
) -> str:
    """Read the text of documents the user attached, in this turn or an earlier one. Read a file before you speak of
    what is in it. Long texts come a part at a time, and say how to get the next.
    """
    maps = files_of(context).maps
    asked = [_asked(id, maps) for id in ids]
    wanted = WantedPart(offset=offset, limit=limit, pages=_range(pages), format=format)
    return await show_documents(asked, wanted, context)


def _range(pages: str) -> PageRange | None:
    first, _, last = pages.partition("-")
    return PageRange(first=int(first), last=int(last or first)) if first else None


def _asked(id: str, maps: FileMaps) -> DocumentRequest:
    if id in maps.documents:
        return DocumentRequest(id=id, file=maps.documents[id])
    if id in maps.files:
        kind = maps.files[id].kind
        return DocumentRequest(id=id, file=f"{id} is no document but of type {kind}, which has no text to read.")
    # The newest are the most likely to be meant.
    known = ", ".join(list(maps.documents)[-KNOWN_SHOWN:]) or "none"
    return DocumentRequest(id=id, file=f"there is no file {id[:NAME_SHOWN]!r} here. The newest documents are: {known}.")


@tool(safe_to_repeat=True)
async def file_read(
    file_indexes: Annotated[list[int], Field(min_length=1, max_length=MOST_FILES)], context: ToolContext
) -> str:
    """Read the text of documents by their numbers."""
    documents = numbered(files_of(context).turns)
    asked = [_asked_by_number(index, documents) for index in file_indexes]
    return await show_documents(asked, WantedPart(), context)


def numbered(turns: Sequence[Sequence[InputFile]]) -> Sequence[InputFile]:
    """Return the documents in counting order: the current turn's, then earlier ones from the oldest, each name once."""
    first: dict[str, InputFile] = {}
    for turn in (*turns[-1:], *turns[:-1]):
        for one in turn:
            if one.kind == "document":
                first.setdefault(one.name, one)
    return tuple(first.values())


def _asked_by_number(index: int, documents: Sequence[InputFile]) -> DocumentRequest:
    if 1 <= index <= len(documents):
        one = documents[index - 1]
        return DocumentRequest(id=one.id, file=one)
    count = f"they are counted from 1 to {len(documents)}" if documents else "there are none"
    return DocumentRequest(id=str(index), file=f"there is no document {index}; {count}.")


async def show_documents(
    asked: Sequence[DocumentRequest], wanted: WantedPart, context: ToolContext, report_seconds: float = REPORT_SECONDS
) -> str:
    """Return JSON `[{"id","name","content"}]` in the requested order. A failure affects only its own entry (F5)."""

    async def take(document: Document) -> _Taken:
        return _Taken(document=document, part=await take_part(document, wanted, context.characters))

    files = {one.id: one.file for one in asked if isinstance(one.file, InputFile)}
    read = await read_each(tuple(files.values()), take, files_of(context), context.report, report_seconds)
    known = dict(zip(files, read, strict=True))
    rows = [_row(one, known) for one in asked]
    limit = _fitting(rows, wanted, context.characters)
    return _answer([await _placed(row, wanted, limit) for row in rows], wanted, limit)


def _row(asked: DocumentRequest, known: dict[str, _Taken | Unread]) -> _Row:
    if isinstance(asked.file, str):
        return _Row(id=asked.id[:NAME_SHOWN], name="", read=failure(asked.file))
    read = known[asked.id]
    name = neutralise(asked.file.name[:NAME_SHOWN], FRAME_TAGS)
    return _Row(id=asked.id, name=name, read=failure(read.reason) if isinstance(read, Unread) else read)


def _fitting(rows: Sequence[_Row], wanted: WantedPart, most: int) -> int:
    """Return the longest part length that fits, at most the requested one."""
    fits, fails = 0, wanted.widest(most)
    if len(_answer(rows, wanted, fails)) <= most:
        return fails
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if len(_answer(rows, wanted, middle)) <= most else (fits, middle)
    if not fits:
        raise ToolError(NO_ROOM.format(count=len(rows), most=most))
    return fits


def _answer(rows: Sequence[_Row], wanted: WantedPart, limit: int) -> str:
    answer: Json = [{"id": row.id, "name": row.name, "content": _content(row, wanted, limit)} for row in rows]
    return dump(answer).decode()


def _content(row: _Row, wanted: WantedPart, limit: int) -> str:
    match row.read:
        case str() as said:
            return said
        case _Taken(part=part):
            return part if isinstance(part, str) else content_of(row.id, part, wanted, limit)


async def _placed(row: _Row, wanted: WantedPart, limit: int) -> _Row:
    """Return the row with the page its text ends on. It is known only now, and never later than before."""
    match row.read:
        case _Taken(document=document, part=TextPart(place=place) as part) if place and not wanted.pages:
            count = part.shown(limit, wanted).count
            try:
                last = (await document.characters(part.start, count)).last_page
            except (FileRefused, StorageDown):
                last = None
            there = None if last is None else replace(place, last=last)
            return replace(row, read=_Taken(document=document, part=replace(part, place=there)))
        case _:
            return row
