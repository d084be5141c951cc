"""Documents as a tool answers them: their texts a page at a time, in JSON that is never cut. It chooses no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from recto.errors import FileRefused, StorageDown, ToolError
from recto.page.boundary import boundary
from recto.page.canonical import Json, dump
from recto.page.input_files import InputFile
from recto.tools.file_text import text_of_file
from recto.tools.ports import FilesAtHand, ToolContext

PAGE_CHARACTERS = 20_000
# About as long as the line that says what part it is: leaving out less would make it longer.
NEVER_CUT = 150
NAME_SHOWN = 200
NO_TEXT = "[there is no text in this file]"
NO_FILES = "This server keeps no files, so there are none to read."
NO_ROOM = "Even a part of each of these {count} files does not fit into {most} characters. Ask for fewer at a time."
STORAGE_DOWN = "the storage of files cannot be used at present. Try again later, or tell the user."


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A document that is asked for, or, in the place of the file, why there is none."""

    id: str
    file: InputFile | str


@dataclass(frozen=True, kw_only=True)
class Span:
    """Which characters of each text are asked for."""

    offset: int = 0
    limit: int = PAGE_CHARACTERS


@dataclass(frozen=True, kw_only=True)
class _Excerpt:
    """The wanted part of a text of `total` characters, from `start` on, and a character more if there is one."""

    text: str
    start: int
    total: int


_Read: TypeAlias = _Excerpt | str


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A file as it is answered, with what was read of it or why nothing was."""

    id: str
    name: str
    read: _Read


def files_of(context: ToolContext) -> FilesAtHand:
    """The files of the thread."""
    if context.files is None:
        raise ToolError(NO_FILES)
    return context.files


async def read_documents(asked: Sequence[Asked], span: Span, context: ToolContext) -> str:
    """JSON `[{"id","name","content"}]` in the order asked. What cannot be read says why, and spoils no other (F5)."""
    files = files_of(context)
    # No more than this can be shown, whatever is asked for.
    widest = min(span.limit, context.characters)
    known: dict[str, _Read] = {}
    rows: list[_Row] = []
    # One after the other: each is in memory whole while its part is taken.
    for one in asked:
        if one.id not in known:
            known[one.id] = await _read(one.file, span.offset, widest, files)
        name = one.file.name if isinstance(one.file, InputFile) else ""
        rows.append(_Row(id=one.id[:NAME_SHOWN], name=name[:NAME_SHOWN], read=known[one.id]))
    return _fitted(rows, span, context.characters)


async def _read(file: InputFile | str, offset: int, widest: int, files: FilesAtHand) -> _Read:
    if isinstance(file, str):
        return failure(file)
    try:
        return _excerpt(await text_of_file(file, files), offset, widest)
    except FileRefused as error:
        return failure(str(error))
    except StorageDown:
        return failure(STORAGE_DOWN)


def failure(reason: str) -> str:
    """A content that is none, told apart from every text of a file that begins otherwise."""
    return f"Error: {reason}"


def _excerpt(text: str, offset: int, widest: int) -> _Read:
    if not text.strip():
        return NO_TEXT
    if offset >= len(text):
        return failure(f"offset {offset} is past the end: this text has {len(text)} characters.")
    # It begins where it was told to: going back to a better place could show the same page again and again.
    return _Excerpt(text=text[offset : offset + widest + 1], start=offset, total=len(text))


def _fitted(rows: Sequence[_Row], span: Span, most: int) -> str:
    """The answer with pages as long as asked for; where that is too much, all are cut to the same shorter length."""
    fits, fails = 0, min(span.limit, most)
    whole = _answer(rows, span, fails)
    if len(whole) <= most:
        return whole
    best = ""
    while fails - fits > 1:
        middle = (fits + fails) // 2
        tried = _answer(rows, span, middle)
        if len(tried) <= most:
            best, fits = tried, middle
        else:
            fails = middle
    if not best:
        raise ToolError(NO_ROOM.format(count=len(rows), most=most))
    return best


def _answer(rows: Sequence[_Row], span: Span, limit: int) -> str:
    answer: Json = [{"id": row.id, "name": row.name, "content": _content(row, span, limit)} for row in rows]
    return dump(answer).decode()


def _content(row: _Row, span: Span, limit: int) -> str:
    match row.read:
        case str() as said:
            return said
        case _Excerpt(text=text, start=0, total=total) if total <= max(limit, min(span.limit, NEVER_CUT)):
            return text
        case excerpt:
            return _part(row.id, excerpt, span, limit)


def _part(id: str, excerpt: _Excerpt, span: Span, limit: int) -> str:
    """A page of a text, after a line that says which one it is and how to get the next."""
    end = limit if excerpt.start + limit >= excerpt.total else boundary(excerpt.text, limit) or limit
    shown = excerpt.text[:end]
    until = excerpt.start + len(shown)
    line = f"characters {excerpt.start + 1}-{until} of {excerpt.total}"
    if until < excerpt.total:
        more: dict[str, Json] = {"ids": [id], "offset": until}
        if span.limit != PAGE_CHARACTERS:
            more["limit"] = span.limit
        line += f"; for more: read_files({dump(more).decode()})"
    return f"[{line}]\n{shown}"
