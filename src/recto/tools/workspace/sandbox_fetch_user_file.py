"""The tool that puts an upload of any kind into the thread's workspace (F9). It fetches nothing from elsewhere."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import Annotated

from pydantic import Field

from recto.conversation.input_files import InputFile
from recto.errors import FileRefused, StorageDown, ToolError
from recto.tools.blocking import in_thread
from recto.tools.documents.read_many import NAME_SHOWN, STORAGE_DOWN, files_of
from recto.tools.mark import tool
from recto.tools.ports import FilesAtHand, ToolContext
from recto.tools.workspace.workspace_files import NewFile, WrittenFile, path_parts
from recto.tools.workspace.workspaces import lock_of

NO_WORKSPACE = "This server gives threads no workspace, so there is nowhere to put a file."
KNOWN_SHOWN = 10
WRITING = "workspace"


@tool(safe_to_repeat=True)
async def sandbox_fetch_user_file(
    file_index: Annotated[str, Field(description="The id of a file of any type, as # Input Files has it.")],
    target_path: Annotated[
        str, Field(description="Where to put it: a path in the workspace, such as data/table.csv, with its name.")
    ],
    context: ToolContext,
) -> dict[str, str | int | bool]:
    """Put a file the user attached into the workspace. Missing folders are made; a file that is there is replaced."""
    files = files_of(context)
    if context.workspace is None:
        raise ToolError(NO_WORKSPACE)
    parts = path_parts(target_path)
    file = _file(file_index, files)
    try:
        # One at a time: two that fit by themselves may not fit together.
        async with lock_of(context.workspace):
            written = await _put(file, files, NewFile(context.workspace, parts, most=context.workspace_bytes))
    except FileRefused as error:
        raise ToolError(f"{file.name} cannot be read: {error}") from error
    except StorageDown as error:
        raise ToolError(f"{file.name} cannot be read: {STORAGE_DOWN}") from error
    return {"path": written.path, "bytes": written.size, "replaced": written.is_replaced}


def _file(id: str, files: FilesAtHand) -> InputFile:
    file = files.maps.files.get(id)
    if file is None:
        # The newest are the likeliest to be meant.
        known = ", ".join(list(files.maps.files)[-KNOWN_SHOWN:]) or "none"
        raise ToolError(f"There is no file {id[:NAME_SHOWN]!r} here. The newest are: {known}.")
    return file


async def _put(file: InputFile, files: FilesAtHand, new: NewFile) -> WrittenFile:
    try:
        await in_thread(new.begin, name=WRITING)
        async with aclosing(files.read(file)) as pieces:
            async for piece in pieces:
                await in_thread(partial(new.write, piece), name=WRITING)
        return await in_thread(new.finish, name=WRITING)
    finally:
        # A thread of its own runs to its end even where nobody waits for it any more.
        await in_thread(new.abandon, name=WRITING)
