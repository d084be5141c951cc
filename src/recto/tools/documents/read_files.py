"""The tool that reads uploads (F5): documents of the thread by file id, a part at a time. It reads nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from recto.conversation.input_files import FileMaps, InputFile
from recto.tools.documents.document_parts import PAGE_CHARACTERS, PageRange, PartFormat, WantedPart
from recto.tools.documents.document_rows import DocumentRequest, show_documents
from recto.tools.documents.read_many import NAME_SHOWN, files_of
from recto.tools.mark import tool
from recto.tools.ports import ToolContext

MOST_FILES = 20
KNOWN_SHOWN = 10
PAGES = r"^([1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?)?$"


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
    # The newest are the likeliest to be meant.
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
    """The documents in the order they are counted: the current turn's, then earlier ones from the oldest, each name
    once.
    """
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
