"""The filesystem-edit tool (R15): search and replace in a file of the workspace; the answer is a diff.

No concurrent change is lost: the old file is compared with what was read right before it is replaced.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from recto.errors import ToolError
from recto.tools.daemon_thread import run_in_thread
from recto.tools.mark import tool
from recto.tools.ports import ToolContext
from recto.tools.text.encodings import HEAD_BYTES, UTF8, TextEncoding, detect_encoding
from recto.tools.text.line_diff import build_line_diff
from recto.tools.text.nearest_text import find_near_lines
from recto.tools.text.replacement import EditedText, TextEdit, edit_text
from recto.tools.workspace.filesystem_create import write_file
from recto.tools.workspace.filesystem_read import describe_missing
from recto.tools.workspace.open_path import (
    PLAIN_FILE,
    names_in,
    open_path,
    prefix_errors,
    roots_of,
    workspace_in,
)
from recto.tools.workspace.workspace_files import reject_change
from recto.tools.workspace.workspaces import Workspace, lock_of

NAME = "filesystem-edit"
# The most growth of a file since the read that is examined.
NEW_BYTES = 2**20
HEADER = "Changed {path}.{note}"
LOOSELY = " Found with other blanks or another indentation, to which the replacement was brought."
LOOSELY_SOME = " Edits {numbers} were found with other blanks or another indentation, to which they were brought."
UNCHANGED = "{path} was not changed: {problem}"
MEANWHILE = "{path} was not changed: somebody else changed it meanwhile. {now}"
NOW, READ_AGAIN = "{near}\nEdit what is there now.", "Read it again, and edit what is there now."
TOO_MANY = "There are {count:,} edits, and {most:,} can be made in one call. Make the others in another; none was made."
NO_EDITS = "Give searchContent and replaceContent, or edits as a list of them, and not both."


class SearchReplace(TypedDict):
    """One of several edits of a file."""

    searchContent: str
    replaceContent: str
    occurrence: NotRequired[Annotated[int, Field(ge=1)] | None]


@dataclass(frozen=True, kw_only=True)
class _OriginalText:
    """A text file as it was read: real path, content and stat."""

    names: tuple[str, ...]
    data: bytes
    about: os.stat_result


@tool(name=NAME, changes="files")
async def filesystem_edit(
    filePath: Annotated[str, Field(description="A file of the workspace, such as src/main.py.")],
    context: ToolContext,
    *,
    searchContent: Annotated[
        str | None, Field(description="Text of the file, as a read shows it without line numbers.")
    ] = None,
    replaceContent: Annotated[str | None, Field(description="What takes its place.")] = None,
    occurrence: Annotated[
        int | None, Field(ge=1, description="Which one, from 1 on, where the text is there several times.")
    ] = None,
    edits: Annotated[
        list[SearchReplace] | None,
        Field(description="Several changes at once in the place of one; all are made or none."),
    ] = None,
) -> str:
    """Change a file of the workspace: text in it is searched for and replaced, and the answer is the diff. The text has
    to be there exactly once; blanks, and the indentation of whole lines, may differ where it is clear what is meant.
    """
    with prefix_errors():
        workspace = workspace_in(context)
        text_edits = _parse_edits(searchContent, replaceContent, occurrence, edits)
        if len(text_edits) > workspace.limits.edits:
            raise ToolError(TOO_MANY.format(count=len(text_edits), most=workspace.limits.edits))
        async with lock_of(workspace.folder):
            return await run_in_thread(
                partial(edit_file, workspace, filePath, text_edits, context.characters), name=NAME
            )


def _parse_edits(
    search: str | None, replace: str | None, occurrence: int | None, edits: Sequence[SearchReplace] | None
) -> Sequence[TextEdit]:
    if search is not None and replace is not None and not edits:
        return (TextEdit(search=search, replace=replace, occurrence=occurrence),)
    if not edits or search is not None or replace is not None or occurrence is not None:
        raise ToolError(NO_EDITS)
    return [
        TextEdit(search=one["searchContent"], replace=one["replaceContent"], occurrence=one.get("occurrence"))
        for one in edits
    ]


def edit_file(workspace: Workspace, path: str, edits: Sequence[TextEdit], room: int) -> str:
    """Make the edits and return the diff in at most `room` characters. Blocks."""
    names = names_in(path, roots_of(workspace.folder))
    label = "/".join(names) or "."
    original = _open(workspace, names, label)
    encoding = detect_encoding(original.data[:HEAD_BYTES])
    if isinstance(encoding, str):
        raise ToolError(UNCHANGED.format(path=label, problem=f"it is {encoding}, and no text."))
    if encoding.name != UTF8 and not _is_reversible(original.data, encoding):
        problem = "it is not certain which encoding it is in, so an edit could damage it. Change it with a command."
        raise ToolError(UNCHANGED.format(path=label, problem=problem))
    text = encoding.decode(original.data)
    try:
        result = edit_text(text, edits)
    except ToolError as error:
        raise ToolError(UNCHANGED.format(path=label, problem=error)) from error
    data = _encoded(result, encoding, label)
    line = text.count("\n", 0, result.spans[0].start)
    check = partial(_reject_changed, original, label, lambda now: find_near_lines(now, edits[0].search, line) or "")
    write_file(workspace, original.names, data, check, like=original.about)
    header = HEADER.format(path=label, note=_note(result, len(edits)))
    longest = workspace.limits.line_characters
    return f"{header}\n{build_line_diff(text, result.spans, label, room - len(header) - 100, longest)}"


def _open(workspace: Workspace, names: tuple[str, ...], label: str) -> _OriginalText:
    with open_path(workspace, names) as place:
        if place.missing:
            raise ToolError(describe_missing(place, label, workspace))
        if place.is_folder or place.descriptor is None:
            raise ToolError(f"{label} is a folder. Name a file in it.")
        reject_change(place.names, workspace)
        # The content is in memory several times.
        about, most = os.fstat(place.descriptor), workspace.limits.edit_bytes
        if about.st_size > most:
            problem = f"it has {about.st_size:,} bytes, and {most:,} are allowed. Change it with a command."
            raise ToolError(UNCHANGED.format(path=label, problem=problem))
        return _OriginalText(names=place.names, data=_read(place.descriptor, most), about=about)


def _read(descriptor: int, most: int) -> bytes:
    """Read at most `most` bytes and one more."""
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(most + 1)


def _is_reversible(data: bytes, encoding: TextEncoding) -> bool:
    try:
        return encoding.encode(encoding.decode(data)) == data
    except UnicodeError:
        return False


def _encoded(result: EditedText, encoding: TextEncoding, path: str) -> bytes:
    try:
        return encoding.encode(result.text)
    except UnicodeEncodeError as error:
        problem = (
            f"it is in {encoding.name}, which has no {result.text[error.start]!r}. Write it with other characters."
        )
        raise ToolError(UNCHANGED.format(path=path, problem=problem)) from error


def _reject_changed(
    original: _OriginalText, path: str, near: Callable[[str], str], folder: int, there: os.stat_result | None
) -> None:
    """Raise ToolError, with the current text near the edit, if the file changed since it was read."""
    current = _read_now(folder, original.names[-1], len(original.data) + NEW_BYTES) if there else None
    if current != original.data:
        raise ToolError(MEANWHILE.format(path=path, now=_describe_current(current, near)))


def _describe_current(data: bytes | None, near: Callable[[str], str]) -> str:
    encoding = detect_encoding(data[:HEAD_BYTES]) if data else ""
    if data is None or isinstance(encoding, str):
        return READ_AGAIN
    return NOW.format(near=near(encoding.decode(data)))


def _read_now(folder: int, name: str, most: int) -> bytes | None:
    descriptor = os.open(name, PLAIN_FILE, dir_fd=folder)
    try:
        return _read(descriptor, most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    finally:
        os.close(descriptor)


def _note(result: EditedText, count: int) -> str:
    if not result.loosely:
        return ""
    return LOOSELY if count == 1 else LOOSELY_SOME.format(numbers=", ".join(map(str, result.loosely)))
