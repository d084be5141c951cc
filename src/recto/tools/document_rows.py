"""Parts of documents as JSON that is never cut: where it would be too long, all parts are shorter. Chooses no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recto.errors import FileRefused, StorageDown, ToolError
from recto.page.canonical import Json, dump
from recto.page.input_files import InputFile
from recto.page.reminder import FRAME_TAGS, neutralise
from recto.tools.document_parts import Part, TextPart, Wanted, content_of
from recto.tools.document_takes import take_part
from recto.tools.documents import NAME_SHOWN, TELL_SECONDS, Unread, failure, files_of, read_each
from recto.tools.ports import Document, ToolContext

NO_ROOM = "Even a part of each of these {count} files does not fit into {most} characters. Ask for fewer at a time."


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A document that is asked for, or, in the place of the file, why there is none."""

    id: str
    file: InputFile | str


@dataclass(frozen=True, kw_only=True)
class _Taken:
    """A document with what was taken of it, or with what there is to say instead."""

    document: Document
    part: Part | str


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A file as it is answered. A part that is not said in words has its document beside it."""

    id: str
    name: str
    read: _Taken | str


async def show_documents(
    asked: Sequence[Asked], wanted: Wanted, context: ToolContext, tell_seconds: float = TELL_SECONDS
) -> str:
    """JSON `[{"id","name","content"}]` in the order asked. What cannot be read says why, and spoils no other (F5)."""

    async def take(document: Document) -> _Taken:
        return _Taken(document=document, part=await take_part(document, wanted, context.characters))

    files = {one.id: one.file for one in asked if isinstance(one.file, InputFile)}
    read = await read_each(tuple(files.values()), take, files_of(context), context.tell, tell_seconds)
    known = dict(zip(files, read, strict=True))
    rows = [_row(one, known) for one in asked]
    limit = _fitting(rows, wanted, context.characters)
    return _answer([await _placed(row, wanted, limit) for row in rows], wanted, limit)


def _row(asked: Asked, known: dict[str, _Taken | Unread]) -> _Row:
    if isinstance(asked.file, str):
        return _Row(id=asked.id[:NAME_SHOWN], name="", read=failure(asked.file))
    read = known[asked.id]
    name = neutralise(asked.file.name[:NAME_SHOWN], FRAME_TAGS)
    return _Row(id=asked.id, name=name, read=failure(read.reason) if isinstance(read, Unread) else read)


def _fitting(rows: Sequence[_Row], wanted: Wanted, most: int) -> int:
    """How long the parts may be: as asked for, or, where that is too much, the longest found that fits."""
    fits, fails = 0, wanted.widest(most)
    if len(_answer(rows, wanted, fails)) <= most:
        return fails
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if len(_answer(rows, wanted, middle)) <= most else (fits, middle)
    if not fits:
        raise ToolError(NO_ROOM.format(count=len(rows), most=most))
    return fits


def _answer(rows: Sequence[_Row], wanted: Wanted, limit: int) -> str:
    answer: Json = [{"id": row.id, "name": row.name, "content": _content(row, wanted, limit)} for row in rows]
    return dump(answer).decode()


def _content(row: _Row, wanted: Wanted, limit: int) -> str:
    match row.read:
        case str() as said:
            return said
        case _Taken(part=part):
            return part if isinstance(part, str) else content_of(row.id, part, wanted, limit)


async def _placed(row: _Row, wanted: Wanted, limit: int) -> _Row:
    """The row with the page its text ends on. Which that is shows only now; it is never a later one than before."""
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
