"""The tool that reads uploads (F5): documents of the thread by file id, a page at a time. It reads nothing else."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from recto.page.input_files import FileMaps
from recto.tools.documents import NAME_SHOWN, PAGE_CHARACTERS, Asked, Span, files_of, read_documents
from recto.tools.mark import tool
from recto.tools.ports import ToolContext

MOST_FILES = 20
KNOWN_SHOWN = 10


@tool(safe_to_repeat=True)
async def read_files(
    ids: Annotated[
        list[str],
        Field(description="Ids of documents, as # Input Files has them.", min_length=1, max_length=MOST_FILES),
    ],
    context: ToolContext,
    offset: Annotated[int, Field(description="How many characters of each text to leave out.", ge=0)] = 0,
    limit: Annotated[int, Field(description="How many characters of each text to show.", ge=1)] = PAGE_CHARACTERS,
) -> str:
    """Read the text of documents the user attached, in this turn or an earlier one. Read a file before you speak of
    what is in it. Long texts come a page at a time, and say how to get the next.
    """
    maps = files_of(context).maps
    asked = [_asked(id, maps) for id in ids]
    return await read_documents(asked, Span(offset=offset, limit=limit), context)


def _asked(id: str, maps: FileMaps) -> Asked:
    if id in maps.documents:
        return Asked(id=id, file=maps.documents[id])
    if id in maps.files:
        kind = maps.files[id].kind
        return Asked(id=id, file=f"{id} is no document but of type {kind}, which has no text to read.")
    # The newest are the likeliest to be meant.
    known = ", ".join(list(maps.documents)[-KNOWN_SHOWN:]) or "none"
    return Asked(id=id, file=f"there is no file {id[:NAME_SHOWN]!r} here. The newest documents are: {known}.")
