"""The tool that old logs read uploads with (F6): by number, counted from 1. No model is offered it any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from recto.page.input_files import InputFile
from recto.tools.document_parts import Wanted
from recto.tools.document_rows import Asked, show_documents
from recto.tools.documents import files_of
from recto.tools.mark import tool
from recto.tools.ports import ToolContext
from recto.tools.read_files import MOST_FILES


@tool(safe_to_repeat=True)
async def file_read(
    file_indexes: Annotated[list[int], Field(min_length=1, max_length=MOST_FILES)], context: ToolContext
) -> str:
    """Read the text of documents by their numbers."""
    documents = numbered(files_of(context).turns)
    asked = [_asked_by_number(index, documents) for index in file_indexes]
    return await show_documents(asked, Wanted(), context)


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


def _asked_by_number(index: int, documents: Sequence[InputFile]) -> Asked:
    if 1 <= index <= len(documents):
        one = documents[index - 1]
        return Asked(id=one.id, file=one)
    count = f"they are counted from 1 to {len(documents)}" if documents else "there are none"
    return Asked(id=str(index), file=f"there is no document {index}; {count}.")
