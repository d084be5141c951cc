"""In-memory files of a thread, and calls of tools with them."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import cast

from recto.conversation.message_files import FileMaps, InputFile, file_maps
from recto.conversation.messages import File, FileKind, Key, ToolCall
from recto.tools.call import ToolLimits, call_tool
from recto.tools.function import Function, make_tool
from recto.tools.ports import Document, ToolResult
from recto.tools.registry import Registry
from recto.tools.workspace.workspaces import Workspace
from tests.tools.growing_document import Growing, a_text
from tests.tools.runs import context, text_of

PIECE = 7
# Making a tool takes longer than most calls of it.
tool_of = cache(make_tool)


def a_file(id: str, name: str = "", kind: FileKind = "document") -> InputFile:
    """Return a file whose id is its key too."""
    name = name or f"{id}.txt"
    return InputFile(id=id, name=name, kind=kind, url="", file=File(kind=kind, source=Key(key=id), name=name))


@dataclass(frozen=True, kw_only=True)
class FakeFiles:
    """Fake files by turn, with their contents by id. An error in place of bytes is raised after the first piece.

    `opened` are those that were asked for as documents, in that order.
    """

    turns: Sequence[Sequence[InputFile]]
    holds: Mapping[str, bytes | Exception | Growing]
    piece: int = 65_536
    closed: list[str] = field(default_factory=list[str])
    opened_ids: list[str] = field(default_factory=list[str])
    max_files: int = 10

    @property
    def maps(self) -> FileMaps:
        return file_maps(one for turn in self.turns for one in turn)

    async def document(self, file: InputFile) -> Document:
        self.opened_ids.append(file.id)
        match self.holds[file.id]:
            case Exception() as error:
                raise error
            case Growing() as document:
                return document
            case bytes() as data:
                text = a_text(data.decode())
                return replace(text, read=len(text.all_elements))

    async def read(self, file: InputFile) -> AsyncGenerator[bytes]:
        document = self.holds[file.id]
        try:
            if not isinstance(document, bytes):
                yield b"x" * PIECE
                raise document if isinstance(document, Exception) else TypeError(document)
            for start in range(0, len(document), self.piece):
                yield document[start : start + self.piece]
        finally:
            self.closed.append(file.id)


def make_files(**holds: str | bytes | Exception | Growing) -> FakeFiles:
    """Return documents of the current turn by id, with their contents."""
    contents = {id: one.encode() if isinstance(one, str) else one for id, one in holds.items()}
    return FakeFiles(turns=[[a_file(id) for id in contents]], holds=contents)


def run(
    function: Function,
    files: FakeFiles | None,
    arguments: Mapping[str, object],
    *,
    characters: int = 50_000,
    workspace: Path | Workspace | None = None,
    workspace_bytes: int = 0,
) -> ToolResult:
    """Call a tool and return its bounded answer."""
    tool = tool_of(function)
    call = ToolCall(id="c1", name=tool.name, arguments=json.dumps(arguments))
    place = Workspace(folder=workspace, most_bytes=workspace_bytes) if isinstance(workspace, Path) else workspace
    own_context = replace(context(), files=files, workspace=place)
    return asyncio.run(call_tool(Registry([tool]), call, own_context, ToolLimits(characters=characters)))


def rows_of(result: ToolResult) -> list[dict[str, str]]:
    """Parse the JSON of an answer, which is never cut."""
    assert result.error is None, text_of(result)
    return cast("list[dict[str, str]]", json.loads(text_of(result)))
