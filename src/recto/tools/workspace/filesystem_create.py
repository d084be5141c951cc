"""The filesystem-create tool (R15): writes a new file into the workspace. It replaces none."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from typing import Annotated

from pydantic import Field

from recto.errors import ToolError
from recto.tools.daemon_thread import run_in_thread
from recto.tools.mark import tool
from recto.tools.ports import ToolContext
from recto.tools.workspace.open_path import names_of_file, open_path, prefix_errors, workspace_in
from recto.tools.workspace.workspace_files import EXISTS, NewFile, PlaceCheck
from recto.tools.workspace.workspaces import ABANDONED_SECONDS, Workspace, lock_of, remove_part_files

NAME = "filesystem-create"


@tool(name=NAME, changes="files")
async def filesystem_create(
    filePath: Annotated[
        str, Field(description="Where: a path in the workspace with the file's name, such as src/main.py.")
    ],
    content: Annotated[str, Field(description="All that the file is to hold.")],
    context: ToolContext,
) -> str:
    """Make a new file in the workspace. Missing folders are made; a file that is there is not replaced."""
    with prefix_errors():
        workspace = workspace_in(context)
        async with lock_of(workspace.folder):
            return await run_in_thread(partial(_create, workspace, filePath, content), name=NAME)


def _create(workspace: Workspace, path: str, content: str) -> str:
    names = names_of_file(path, workspace)
    label = "/".join(names)
    with open_path(workspace, names) as place:
        real = place.names
        if not place.missing:
            raise ToolError(
                f"{label} is a folder. Choose another path." if place.is_folder else EXISTS.format(path=label)
            )

    def reject_existing(_: int, there: os.stat_result | None) -> None:
        if there is not None:
            raise ToolError(EXISTS.format(path=label))

    data = content.encode()
    write_file(workspace, real, data, reject_existing)
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    return f"Created {label}: {lines:,} line{'s' * (lines != 1)}, {len(data):,} bytes."


def write_file(
    workspace: Workspace, names: tuple[str, ...], data: bytes, check: PlaceCheck, like: os.stat_result | None = None
) -> None:
    """Write a file completely or not at all. `check` may reject it until the end. Without `like`, replace no file."""
    new = new_file(workspace, names, like)
    try:
        new.begin()
        new.write(data)
        new.finish(check, is_new=like is None)
    finally:
        new.abandon()


def new_file(workspace: Workspace, names: tuple[str, ...], like: os.stat_result | None = None) -> NewFile:
    """Prepare a file. In a folder from the operator, first remove abandoned part files: the workspace sweep skips such
    folders.
    """
    if not workspace.is_own:
        with suppress(OSError):
            remove_part_files(workspace.folder, time.time() - ABANDONED_SECONDS)
    return NewFile(workspace, names, like=like)
