"""The read_files tool (F5), which reads documents part by part, and read_documents (D4, D5), which reads all at once.

The JSON answer of read_files is never cut; if it would be too long, all parts get shorter. Images are not documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import AfterValidator, Field

from recto.conversation.json import Json, dump
from recto.conversation.locale import language
from recto.conversation.message_files import FileMaps, InputFile
from recto.errors import FileRefused, StorageDown, ToolError
from recto.page.prompt.quote import CUT_DOCUMENT, ParsedDocument, choose_documents, join_documents
from recto.page.prompt.reminder import FRAME_TAGS, escape, neutralise
from recto.page.text.cut import Try, shorten, widest
from recto.tools.documents import document_parts, read_many
from recto.tools.documents.document_parts import PAGE_CHARACTERS, DocumentPart, PageRange, PartFormat, PartRequest
from recto.tools.mark import tool
from recto.tools.ports import Document, ToolContext

MOST_FILES = 20
KNOWN_SHOWN = 10
PAGES = r"^([1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?)?$"
NO_ROOM = "Even a part of each of these {count} files does not fit into {most} characters. Ask for fewer at a time."
MOST_URLS = 20
NO_DOCUMENTS = "[there are no documents in this conversation]"
UNKNOWN_URL = "no file of this conversation has this url or id. Use those that # Input Files has."
NO_ROOM_FOR_ALL = (
    "Even the beginnings of these {count} documents do not fit into {most} characters. "
    "Read them with read_files, fewer at a time."
)


@dataclass(frozen=True, kw_only=True)
class DocumentRequest:
    """A requested document, or the reason why there is none."""

    id: str
    file: InputFile | str


@dataclass(frozen=True, kw_only=True)
class _DocumentResult:
    """A document with its requested part, or with the reason why there is none."""

    document: Document
    part: DocumentPart | str


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A row of the answer. `read` is a document with its part, or the text of a failure."""

    id: str
    name: str
    read: _DocumentResult | str


def _check_order(pages: str) -> str:
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
        AfterValidator(_check_order),
    ] = "",
    format: Annotated[
        PartFormat, Field(description="text, or elements: its pages, headings, tables as JSON, with the cells.")
    ] = "text",
) -> str:
    """Read the text of documents the user attached, in this turn or an earlier one. Read a file before you speak of
    what is in it. Long texts come a part at a time, and say how to get the next.
    """
    maps = read_many.require_files(context).maps
    requests = [_find_document(id, maps) for id in ids]
    first, _, last = pages.partition("-")
    part_request = PartRequest(
        offset=offset,
        limit=limit,
        pages=PageRange(first=int(first), last=int(last or first)) if first else None,
        format=format,
    )
    return await show_documents(requests, part_request, context)


def _find_document(id: str, maps: FileMaps) -> DocumentRequest:
    if id in maps.documents:
        return DocumentRequest(id=id, file=maps.documents[id])
    if id in maps.files:
        kind = maps.files[id].kind
        return DocumentRequest(id=id, file=f"{id} is no document but of type {kind}, which has no text to read.")
    # Name the newest, because the model most likely means one of them.
    names = ", ".join(list(maps.documents)[-KNOWN_SHOWN:]) or "none"
    label = repr(id[: read_many.NAME_SHOWN])
    return DocumentRequest(id=id, file=f"there is no file {label} here. The newest documents are: {names}.")


@tool(safe_to_repeat=True)
async def file_read(
    file_indexes: Annotated[list[int], Field(min_length=1, max_length=MOST_FILES)], context: ToolContext
) -> str:
    """Read the text of documents by their numbers."""
    documents = number_documents(read_many.require_files(context).turns)
    count = f"they are counted from 1 to {len(documents)}" if documents else "there are none"
    requests = list[DocumentRequest]()
    for index in file_indexes:
        file = documents[index - 1] if 1 <= index <= len(documents) else f"there is no document {index}; {count}."
        requests.append(DocumentRequest(id=str(index) if isinstance(file, str) else file.id, file=file))
    return await show_documents(requests, PartRequest(), context)


def number_documents(turns: Sequence[Sequence[InputFile]]) -> Sequence[InputFile]:
    """Return the documents in counting order: the current turn's, then earlier ones from the oldest, each name once."""
    first: dict[str, InputFile] = {}
    for turn in (*turns[-1:], *turns[:-1]):
        for one in turn:
            if one.kind == "document":
                first.setdefault(one.name, one)
    return tuple(first.values())


async def show_documents(
    requests: Sequence[DocumentRequest],
    part_request: PartRequest,
    context: ToolContext,
    report_seconds: float = read_many.REPORT_SECONDS,
) -> str:
    """Return JSON `[{"id","name","content"}]` in the requested order. A failure affects only its own entry (F5)."""

    async def take(document: Document) -> _DocumentResult:
        return _DocumentResult(
            document=document, part=await document_parts.extract_part(document, part_request, context.characters)
        )

    files = {one.id: one.file for one in requests if isinstance(one.file, InputFile)}
    thread_files = read_many.require_files(context)
    read = await read_many.read_each(tuple(files.values()), take, thread_files, context.report, report_seconds)
    results = dict(zip(files, read, strict=True))
    rows = list[_Row]()
    for one in requests:
        if isinstance(one.file, str):
            rows.append(_Row(id=one.id[: read_many.NAME_SHOWN], name="", read=read_many.failure(one.file)))
            continue
        result, name = results[one.id], neutralise(one.file.name[: read_many.NAME_SHOWN], FRAME_TAGS)
        content = read_many.failure(result.reason) if isinstance(result, read_many.Unread) else result
        rows.append(_Row(id=one.id, name=name, read=content))
    limit = _find_limit(rows, part_request, context.characters)
    return _answer([await _with_last_page(row, part_request, limit) for row in rows], part_request, limit)


def _find_limit(rows: Sequence[_Row], part_request: PartRequest, most: int) -> int:
    """Return the longest part length that fits, at most the requested one."""
    fits, fails = 0, part_request.widest(most)
    if len(_answer(rows, part_request, fails)) <= most:
        return fails
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if len(_answer(rows, part_request, middle)) <= most else (fits, middle)
    if not fits:
        raise ToolError(NO_ROOM.format(count=len(rows), most=most))
    return fits


def _answer(rows: Sequence[_Row], part_request: PartRequest, limit: int) -> str:
    answer = list[Json]()
    for row in rows:
        content = row.read if isinstance(row.read, str) else row.read.part
        if not isinstance(content, str):
            content = document_parts.format_content(row.id, content, part_request, limit)
        answer.append({"id": row.id, "name": row.name, "content": content})
    return dump(answer).decode()


async def _with_last_page(row: _Row, part_request: PartRequest, limit: int) -> _Row:
    """Return the row with the page that its shown text ends on. That page is known only after the limit is chosen."""
    match row.read:
        case _DocumentResult(document=document, part=document_parts.TextPart(place=place) as part) if (
            place and not part_request.pages
        ):
            count = part.render(limit, part_request).count
            try:
                last = (await document.characters(part.start, count)).last_page
            except (FileRefused, StorageDown):
                last = None
            there = None if last is None else replace(place, last=last)
            return replace(row, read=_DocumentResult(document=document, part=replace(part, place=there)))
        case _:
            return row


@tool(safe_to_repeat=True)
async def read_documents(
    context: ToolContext,
    urls: Annotated[
        tuple[str, ...],
        Field(description="Of this turn's files only these, by url or id. Leave it out for all.", max_length=MOST_URLS),
    ] = (),
) -> str:
    """解析对话中所有上传的文档，并返回对应文档内容"""
    return await read_thread(urls, context)


async def read_thread(
    urls: Sequence[str], context: ToolContext, report_seconds: float = read_many.REPORT_SECONDS
) -> str:
    """Return the thread's documents as one text, newest first. Each unknown URL gets its own block."""
    files = read_many.require_files(context)
    turns = files.turns
    if urls and turns:
        # Of the current turn, keep only the named files. Files of earlier turns stay (D4).
        turns = (*turns[:-1], [one for one in turns[-1] if not _names(one).isdisjoint(urls)])
    files_to_read = choose_documents(turns, files.max_files)

    async def take(document: Document) -> tuple[str, str]:
        most = context.characters
        excerpt = await document.characters(0, most + 1)
        if len(excerpt.text) <= most:
            return (excerpt.text if excerpt.text.strip() else read_many.NO_TEXT), ""
        # Do not wait for the end of the document, because a long one would delay the others.
        return excerpt.text, f"{excerpt.extent.characters}{'' if excerpt.extent.is_whole else '+'}"

    read = await read_many.read_each(files_to_read, take, files, context.report, report_seconds)
    blocks = list[tuple[ParsedDocument, str]]()
    for file, result in zip(files_to_read, read, strict=True):
        if isinstance(result, read_many.Unread):
            blocks.append((_failed_document(file.name, result.reason), ""))
        else:
            blocks.append((ParsedDocument(name=file.name[: read_many.NAME_SHOWN], content=result[0]), result[1]))
    known_names = {name for one in files.maps.files.values() for name in _names(one)}
    unknown = [url for url in dict.fromkeys(urls) if url not in known_names]
    blocks += [(_failed_document(url, UNKNOWN_URL), "") for url in unknown]
    return _join_blocks(blocks, context.characters, CUT_DOCUMENT[language(context.locale)])


def _names(file: InputFile) -> set[str]:
    """Return the names that a model may use for a file: id, url, and the url as the reminder spells it."""
    return {file.id, file.url, escape(file.url)} - {""}


def _failed_document(name: str, reason: str) -> ParsedDocument:
    return ParsedDocument(name=name[: read_many.NAME_SHOWN], content=read_many.failure(reason), failed=True)


def _join_blocks(blocks: Sequence[tuple[ParsedDocument, str]], most: int, mark: str) -> str:
    """Join the blocks. If the text is too long, cut the longest ones to the same length."""
    if not blocks:
        return NO_DOCUMENTS

    def attempt(limit: int) -> Try:
        cut = [replace(one, content=shorten(one.content, limit, mark, total)) for one, total in blocks]
        text = join_documents(cut)
        return Try(limit, text, len(text))

    whole, bare = attempt(max(len(one.content) for one, _ in blocks)), attempt(0)
    if whole.size <= most:
        return whole.text
    if bare.size > most:
        raise ToolError(NO_ROOM_FOR_ALL.format(count=len(blocks), most=most))
    return widest(bare, whole, most, attempt).text
