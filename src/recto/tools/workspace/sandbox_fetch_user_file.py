"""The sandbox_fetch_user_file tool (F9): copies an upload into the thread's workspace. It fetches nothing else."""

from __future__ import annotations

import os
from contextlib import aclosing
from functools import partial
from typing import Annotated

from pydantic import Field

from recto.conversation.message_files import InputFile
from recto.errors import FileRefused, StorageDown, ToolError
from recto.tools.daemon_thread import run_in_thread
from recto.tools.documents.read_many import NAME_SHOWN, STORAGE_DOWN, require_files
from recto.tools.mark import tool
from recto.tools.ports import ToolContext, ToolFiles
from recto.tools.workspace.filesystem_create import new_file
from recto.tools.workspace.open_path import names_of_file, open_path
from recto.tools.workspace.workspace_files import NewFile, WrittenFile
from recto.tools.workspace.workspaces import Workspace, lock_of

NO_WORKSPACE = "This server gives threads no workspace, so there is nowhere to put a file."
KNOWN_SHOWN = 10
WRITING = "workspace"


@tool(safe_to_repeat=True, changes="files")
async def sandbox_fetch_user_file(
    file_index: Annotated[str, Field(description="The id of a file of any type, as # Input Files has it.")],
    target_path: Annotated[
        str, Field(description="Where to put it: a path in the workspace, such as data/table.csv, with its name.")
    ],
    context: ToolContext,
) -> dict[str, str | int | bool]:
    """Put a file the user attached into the workspace. Missing folders are made; a file that is there is replaced."""
    files = require_files(context)
    workspace = context.workspace
    if workspace is None:
        raise ToolError(NO_WORKSPACE)
    names = names_of_file(target_path, workspace)
    file = files.maps.files.get(file_index)
    if file is None:
        # Name the newest, because the model most likely means one of them.
        ids = ", ".join(list(files.maps.files)[-KNOWN_SHOWN:]) or "none"
        raise ToolError(f"There is no file {file_index[:NAME_SHOWN]!r} here. The newest are: {ids}.")
    try:
        # Add one file at a time, because two files that fit alone may not fit together.
        async with lock_of(workspace.folder):
            new = await run_in_thread(partial(_new, workspace, names), name=WRITING)
            result = await _put(file, files, new)
    except FileRefused as error:
        raise ToolError(f"{file.name} cannot be read: {error}") from error
    except StorageDown as error:
        raise ToolError(f"{file.name} cannot be read: {STORAGE_DOWN}") from error
    return {"path": result.path, "bytes": result.size, "replaced": result.is_replaced}


def _new(workspace: Workspace, names: tuple[str, ...]) -> NewFile:
    """Prepare the new file at the resolved path, with the permissions and owner of an existing file there."""
    with open_path(workspace, names) as place:
        if place.is_folder:
            raise ToolError(f"{'/'.join(names)} is a folder. Choose another path.")
        like = None if place.descriptor is None else os.fstat(place.descriptor)
        return new_file(workspace, place.names, like)


async def _put(file: InputFile, files: ToolFiles, new: NewFile) -> WrittenFile:
    try:
        await run_in_thread(new.begin, name=WRITING)
        async with aclosing(files.read(file)) as pieces:
            async for piece in pieces:
                await run_in_thread(partial(new.write, piece), name=WRITING)
        return await run_in_thread(new.finish, name=WRITING)
    finally:
        # Clean up in a thread, which runs to its end even after a cancel.
        await run_in_thread(new.abandon, name=WRITING)
