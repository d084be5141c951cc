"""The filesystem-edit tool (R15): search and replace in a file of the workspace; the answer is a diff.

Right before the replacement, the file is compared with the content that was read, so no concurrent change is lost.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from recto.errors import ToolError
from recto.page.prompt.reminder import FRAME_TAGS, neutralise
from recto.tools.daemon_thread import run_in_thread
from recto.tools.mark import tool
from recto.tools.ports import ToolContext
from recto.tools.text.encodings import HEAD_BYTES, UTF8, detect_encoding
from recto.tools.text.line_range import LONGEST_LINE
from recto.tools.text.replacement import TextEdit, TextSpan, apply_spans, edit_text, find_near_lines
from recto.tools.workspace.filesystem_create import write_file
from recto.tools.workspace.filesystem_read import describe_missing
from recto.tools.workspace.open_path import PLAIN_FILE, names_in, open_path, prefix_errors, roots_of, workspace_in
from recto.tools.workspace.workspace_files import reject_change
from recto.tools.workspace.workspaces import Workspace, lock_of

NAME = "filesystem-edit"
# Bytes to read beyond the original size when looking for a concurrent change.
NEW_BYTES = 2**20
HEADER = "Changed {path}.{note}"
LOOSELY = " Found with other blanks or another indentation, to which the replacement was brought."
LOOSELY_SOME = " Edits {numbers} were found with other blanks or another indentation, to which they were brought."
UNCHANGED = "{path} was not changed: {problem}"
MEANWHILE = "{path} was not changed: somebody else changed it meanwhile. {now}"
NOW, READ_AGAIN = "{near}\nEdit what is there now.", "Read it again, and edit what is there now."
TOO_MANY = "There are {count:,} edits, and {most:,} can be made in one call. Make the others in another; none was made."
NO_EDITS = "Give searchContent and replaceContent, or edits as a list of them, and not both."

CONTEXT = 3
# Beyond this many line pairs, the diff shows all old lines as removed and all new ones as added.
MOST_PAIRS = 250_000
NO_END = "\\ No newline at end of file"
LEFT_OUT = "[{count:,} more lines of the diff are left out. Read the file for the rest.]"


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
    try:
        is_reversible = encoding.name == UTF8 or encoding.encode(encoding.decode(original.data)) == original.data
    except UnicodeError:
        is_reversible = False
    if not is_reversible:
        problem = "it is not certain which encoding it is in, so an edit could damage it. Change it with a command."
        raise ToolError(UNCHANGED.format(path=label, problem=problem))
    text = encoding.decode(original.data)
    try:
        result = edit_text(text, edits)
        data = encoding.encode(result.text)
    except ToolError as error:
        raise ToolError(UNCHANGED.format(path=label, problem=error)) from error
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        problem = f"it is in {encoding.name}, which has no {letter!r}. Write it with other characters."
        raise ToolError(UNCHANGED.format(path=label, problem=problem)) from error
    line = text.count("\n", 0, result.spans[0].start)
    check = partial(_reject_changed, original, label, lambda now: find_near_lines(now, edits[0].search, line) or "")
    write_file(workspace, original.names, data, check, like=original.about)
    note = LOOSELY if len(edits) == 1 else LOOSELY_SOME.format(numbers=", ".join(map(str, result.loosely)))
    header = HEADER.format(path=label, note=note if result.loosely else "")
    longest = workspace.limits.line_characters
    return f"{header}\n{build_line_diff(text, result.spans, label, room - len(header) - 100, longest)}"


def _open(workspace: Workspace, names: tuple[str, ...], label: str) -> _OriginalText:
    with open_path(workspace, names) as place:
        if place.missing:
            raise ToolError(describe_missing(place, label, workspace))
        if place.is_folder or place.descriptor is None:
            raise ToolError(f"{label} is a folder. Name a file in it.")
        reject_change(place.names, workspace)
        # Limit the size, because the content is in memory several times.
        about, most = os.fstat(place.descriptor), workspace.limits.edit_bytes
        if about.st_size > most:
            problem = f"it has {about.st_size:,} bytes, and {most:,} are allowed. Change it with a command."
            raise ToolError(UNCHANGED.format(path=label, problem=problem))
        return _OriginalText(names=place.names, data=_read(place.descriptor, most), about=about)


def _read(descriptor: int, most: int) -> bytes:
    """Read at most `most` bytes, and one more to detect a longer file."""
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(most + 1)


def _reject_changed(
    original: _OriginalText, path: str, near: Callable[[str], str], folder: int, there: os.stat_result | None
) -> None:
    """Raise ToolError, with the current text near the edit, if the file changed since it was read."""
    current: bytes | None = None
    if there:
        descriptor = os.open(original.names[-1], PLAIN_FILE, dir_fd=folder)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                current = _read(descriptor, len(original.data) + NEW_BYTES)
        finally:
            os.close(descriptor)
    if current == original.data:
        return
    now = READ_AGAIN
    if current and not isinstance(encoding := detect_encoding(current[:HEAD_BYTES]), str):
        now = NOW.format(near=near(encoding.decode(current)))
    raise ToolError(MEANWHILE.format(path=path, now=now))


def build_line_diff(old: str, spans: Sequence[TextSpan], path: str, room: int, longest: int = LONGEST_LINE) -> str:
    """Return the unified diff of replacing ordered spans in a text, cut to `room` characters.

    Lines of more than `longest` characters are cut. The cost depends on the changed lines, not on the whole text.
    """
    # Regions of whole lines, each with its spans.
    regions = list[tuple[int, int, tuple[TextSpan, ...]]]()
    for span in spans:
        start, end, others = _context_before(old, span.start), _context_after(old, span.end), ()
        if regions and start <= regions[-1][1]:
            start, _, others = regions.pop()
        regions.append((start, end, (*others, span)))
    lines = [f"--- a/{path}", f"+++ b/{path}"]
    line, at, shift = 1, 0, 0
    for start, end, region_spans in regions:
        line += old.count("\n", at, start)
        at = start
        before, after = _lines(old[start:end]), _lines(apply_spans(old, region_spans, start, end))
        lines += _hunks(before, after, line, line + shift, longest)
        shift += len(after) - len(before)
    texts, remaining = [neutralise(line, FRAME_TAGS) for line in lines], room
    for place, text in enumerate(texts):
        remaining -= len(text) + 1
        if remaining < 0:
            return "\n".join((*texts[:place], LEFT_OUT.format(count=len(texts) - place)))
    return "\n".join(texts)


def _context_before(text: str, at: int) -> int:
    for _ in range(CONTEXT + 1):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return at + 1


def _context_after(text: str, at: int) -> int:
    for _ in range(CONTEXT + 1):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _lines(text: str) -> list[str]:
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _hunks(before: Sequence[str], after: Sequence[str], old_line: int, new_line: int, longest: int) -> Iterator[str]:
    groups: Iterable[Sequence[tuple[str, int, int, int, int]]] = [[("replace", 0, len(before), 0, len(after))]]
    if len(before) * len(after) <= MOST_PAIRS:
        groups = SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT)
    for group in groups:
        (_, old_first, _, new_first, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        old_range = _range(old_line + old_first, old_end - old_first)
        yield f"@@ -{old_range} +{_range(new_line + new_first, new_end - new_first)} @@"
        for operation, first, end, new_from, new_to in group:
            if operation == "equal":
                yield from _format_lines(" ", before[first:end], longest)
            else:
                yield from _format_lines("-", before[first:end], longest)
                yield from _format_lines("+", after[new_from:new_to], longest)


def _range(first: int, count: int) -> str:
    """Format a range of lines as diffs do. An empty range names the line before it."""
    return f"{first if count else first - 1},{count}"


def _format_lines(sign: str, lines: Sequence[str], longest: int) -> Iterator[str]:
    for line in lines:
        text = line.rstrip("\n").removesuffix("\r")
        yield sign + (f"{text[:longest]} [...]" if len(text) > longest else text)
        if not line.endswith("\n"):
            yield NO_END
