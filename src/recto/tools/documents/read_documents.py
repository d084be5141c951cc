"""The read_documents tool (D4, D5): reads all documents of a thread at once. Images are not documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from recto.conversation.locale import language
from recto.conversation.message_files import InputFile
from recto.errors import ToolError
from recto.page.prompt.quote import CUT_DOCUMENT, ParsedDocument, choose_documents, join_documents
from recto.page.prompt.reminder import escape
from recto.page.text.cut import Try, shorten, widest
from recto.tools.documents.read_many import (
    NAME_SHOWN,
    NO_TEXT,
    REPORT_SECONDS,
    Unread,
    failure,
    read_each,
    require_files,
)
from recto.tools.mark import tool
from recto.tools.ports import Document, ToolContext

MOST_URLS = 20
NO_DOCUMENTS = "[there are no documents in this conversation]"
UNKNOWN_URL = "no file of this conversation has this url or id. Use those that # Input Files has."
NO_ROOM = (
    "Even the beginnings of these {count} documents do not fit into {most} characters. "
    "Read them with read_files, fewer at a time."
)


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


async def read_thread(urls: Sequence[str], context: ToolContext, report_seconds: float = REPORT_SECONDS) -> str:
    """Return the thread's documents as one text, newest first. Unknown urls get a block of their own."""
    files = require_files(context)
    turns = files.turns
    if urls and turns:
        # Only the named files of the current turn. Earlier turns stay (D4).
        turns = (*turns[:-1], [one for one in turns[-1] if not _names(one).isdisjoint(urls)])
    files_to_read = choose_documents(turns, files.max_files)

    async def take(document: Document) -> tuple[str, str]:
        most = context.characters
        excerpt = await document.characters(0, most + 1)
        if len(excerpt.text) <= most:
            return (excerpt.text if excerpt.text.strip() else NO_TEXT), ""
        # Do not wait for its end: a long document would delay the others.
        return excerpt.text, f"{excerpt.extent.characters}{'' if excerpt.extent.is_whole else '+'}"

    read = await read_each(files_to_read, take, files, context.report, report_seconds)
    blocks = list[tuple[ParsedDocument, str]]()
    for file, result in zip(files_to_read, read, strict=True):
        if isinstance(result, Unread):
            blocks.append((_failed_document(file.name, result.reason), ""))
        else:
            blocks.append((ParsedDocument(name=file.name[:NAME_SHOWN], content=result[0]), result[1]))
    known_names = {name for one in files.maps.files.values() for name in _names(one)}
    unknown = [url for url in dict.fromkeys(urls) if url not in known_names]
    blocks += [(_failed_document(url, UNKNOWN_URL), "") for url in unknown]
    return _join_blocks(blocks, context.characters, CUT_DOCUMENT[language(context.locale)])


def _names(file: InputFile) -> set[str]:
    """Return the names that a model may use for a file: id, url, and the url as the reminder spells it."""
    return {file.id, file.url, escape(file.url)} - {""}


def _failed_document(name: str, reason: str) -> ParsedDocument:
    return ParsedDocument(name=name[:NAME_SHOWN], content=failure(reason), failed=True)


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
        raise ToolError(NO_ROOM.format(count=len(blocks), most=most))
    return widest(bare, whole, most, attempt).text
