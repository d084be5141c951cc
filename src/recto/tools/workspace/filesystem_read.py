"""The filesystem-read tool (R15): numbered lines and symbols of files, and folder listings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from recto.config.run_settings import FileToolSettings
from recto.conversation.messages import Text
from recto.errors import ToolError
from recto.page.prompt.reminder import FRAME_TAGS, neutralise
from recto.tools.daemon_thread import run_in_thread
from recto.tools.mark import tool
from recto.tools.ports import ToolContext, ToolResult
from recto.tools.text.encodings import HEAD_BYTES, UTF8, TextEncoding, detect_encoding
from recto.tools.text.line_range import LineRange, NumberedLines, read_lines
from recto.tools.text.symbol_process import find_symbols
from recto.tools.text.symbols import Symbol
from recto.tools.workspace.open_path import OpenPath, errors_begin_so, names_in, open_path, roots_of, workspace_in
from recto.tools.workspace.visible_files import Entry, find_visible, open_inner
from recto.tools.workspace.workspace_files import CONTROLS, refuse_gone
from recto.tools.workspace.workspaces import Workspace

# Of a folder in the one that is listed, so many are shown, while there is room.
INNER_SHOWN = 20
NOTHING = "There is nothing in it."
EMPTY_WORKSPACE = "The workspace is empty."
LEFT_OUT = "[{count:,} more entries are not shown. Read a folder in it, or search by name.]"
NAME = "filesystem-read"
PIECE_BYTES = 1_048_576
# Counting the lines of a larger file takes longer than a call may.
MOST_BYTES = 2**32
# The share of the room for symbols, and the room for header and note.
SYMBOLS_SHARE, BESIDE = 0.2, 200
LEAST_ROOM = 100
CLOSE_NAMES = 3
LOOKED_AT = 5_000
HEADER = "📄 {path} (lines {first}-{last}/{total}){encoding}"
FOLDER_HEADER = "📁 {path}/"
EMPTY_FILE = "The file is empty."
READ_ON = "[Lines {first}-{last} did not fit. Read on with startLine {first}.]"
SYMBOLS = "Symbols:"
TOO_MANY = "filePath names {count:,} files, and {most:,} can be read in one call. Read the others in another."


def list_folder(workspace: Workspace, names: tuple[str, ...], room: int) -> str:
    """The entries of a folder, of these names, and what is in its folders, within `room` characters. It blocks."""
    most = workspace.limits.listing_entries
    try:
        with open_inner(str(workspace.folder)) as top:
            visible = find_visible(workspace.folder, workspace.hidden, workspace.search.seconds, names)
            entries = [(one, _line(one)) for one in visible.entries(top, under=names, depth=1)]
            inner = _inner(visible.entries(top, under=names, depth=2), len(names), most - len(entries))
    except FileNotFoundError:
        refuse_gone(workspace)
        return EMPTY_WORKSPACE
    except TimeoutError as error:
        raise ToolError(str(error)) from error
    if not entries:
        return NOTHING if names else EMPTY_WORKSPACE
    shown = sorted(entries, key=lambda entry: not entry[0].is_folder)[:most]
    lines = [line for one, text in shown for line in (text, *inner.get(one.path, ()))]
    return _bounded(lines, len(entries) - len(shown), room)


def _inner(entries: Iterable[Entry], depth: int, room: int) -> Mapping[str, Sequence[str]]:
    """What is in each folder that is `depth` deep, as lines, until there are so many."""
    inner = dict[str, list[tuple[bool, str]]]()
    for one in entries:
        if one.path.count("/") > depth:
            inner.setdefault(one.path.rpartition("/")[0], []).append((not one.is_folder, f"  {_line(one)}"))
        elif sum(min(len(lines), INNER_SHOWN + 1) for lines in inner.values()) >= room:
            break
    return {path: _cut(lines) for path, lines in inner.items()}


def _cut(lines: Sequence[tuple[bool, str]]) -> Sequence[str]:
    ordered = [line for _, line in sorted(lines, key=lambda line: line[0])]
    more = len(ordered) - INNER_SHOWN
    return [*ordered[:INNER_SHOWN], f"  and {more:,} more"] if more > 0 else ordered


def _line(one: Entry) -> str:
    if one.is_folder:
        return f"{_printable(one.name)}/"
    if one.is_file:
        return f"{_printable(one.name)} ({one.stat.st_size:,} bytes)"
    # What is gone by now leads nowhere.
    with suppress(OSError):
        return f"{_printable(one.name)} -> {_printable(os.readlink(one.name, dir_fd=one.folder))}"
    return f"{_printable(one.name)} (no file)"


def _printable(name: str) -> str:
    """A name on one line, whatever bytes are in it."""
    return neutralise(CONTROLS.sub("?", os.fsencode(name).decode(errors="replace")), FRAME_TAGS)


def _bounded(lines: Sequence[str], more: int, room: int) -> str:
    shown, left = list[str](), room - len(LEFT_OUT) - 10
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            more += len(lines) - len(shown)
            break
        shown.append(line)
    return "\n".join([*shown, *([LEFT_OUT.format(count=more)] if more else [])])


class FileLines(TypedDict):
    """A file, and which lines of it."""

    path: str
    startLine: NotRequired[int | None]
    endLine: NotRequired[int | None]


@dataclass(frozen=True, kw_only=True)
class WantedLines:
    """A path as given, and the requested lines, counted from 1."""

    path: str
    start: int | None = None
    end: int | None = None


@tool(name=NAME, safe_to_repeat=True, reads=True)
async def filesystem_read(
    filePath: Annotated[
        str | FileLines | Annotated[list[str | FileLines], Field(min_length=1)],
        Field(
            description="A file or folder of the workspace, such as src/main.py; or a list of them, each with lines of "
            "its own if need be: {path, startLine?, endLine?}."
        ),
    ],
    context: ToolContext,
    *,
    startLine: Annotated[int | None, Field(description="The first line to show, from 1 on.")] = None,
    endLine: Annotated[int | None, Field(description="The last line to show.")] = None,
) -> ToolResult:
    """Read files of the workspace: lines as `12→text`, the number before the arrow is not part of the line, and the
    classes and functions with their lines. A folder is listed. Read several at once as a list.
    """
    with errors_begin_so():
        workspace = workspace_in(context)
        if isinstance(filePath, list):
            if len(filePath) > workspace.limits.read_files:
                raise ToolError(TOO_MANY.format(count=len(filePath), most=workspace.limits.read_files))
            wanted = [_wanted(one, startLine, endLine) for one in filePath]
            parts = await run_in_thread(partial(_read_each, workspace, wanted, context.characters), name=NAME)
        else:
            one = _wanted(filePath, startLine, endLine)
            parts = (await run_in_thread(partial(_read, workspace, one, context.characters), name=NAME),)
    return ToolResult(parts=parts)


def _wanted(given: str | FileLines, start: int | None, end: int | None) -> WantedLines:
    if isinstance(given, str):
        return WantedLines(path=given, start=start, end=end)
    own = given.get("startLine"), given.get("endLine")
    start, end = own if own != (None, None) else (start, end)
    return WantedLines(path=given["path"], start=start, end=end)


def _read_each(workspace: Workspace, wanted: Sequence[WantedLines], room: int) -> tuple[Text, ...]:
    """Read each path into its own part. Unused room passes to the next; an error affects only its own part."""
    parts = list[Text]()
    for place, one in enumerate(wanted):
        share = room // (len(wanted) - place)
        try:
            with errors_begin_so():
                part = _read(workspace, one, share - 1)
        except ToolError as error:
            part = Text(text=str(error)[:share], path=one.path)
        parts.append(part)
        room -= len(part.text)
    return tuple(parts)


def _read(workspace: Workspace, wanted: WantedLines, room: int) -> Text:
    names = names_in(wanted.path, roots_of(workspace.folder))
    path = neutralise("/".join(names) or ".", FRAME_TAGS)
    with open_path(workspace, names) as found:
        if found.missing:
            raise ToolError(missing_text(found, path, workspace))
        if found.is_folder:
            header = FOLDER_HEADER.format(path=path)
            listed = list_folder(workspace, found.names, room - len(header) - 1)
            return Text(text=f"{header}\n{listed}", path=path)
        if found.descriptor is None:
            raise ToolError(f"{path} cannot be read.")
        text = _file_text(found.descriptor, path, _range(wanted), room, workspace.limits)
        return Text(text=text, path=path)


def _range(wanted: WantedLines) -> LineRange:
    first = max(1, wanted.start or 1)
    if wanted.end is not None and wanted.end < first:
        raise ToolError(f"endLine {wanted.end} comes before startLine {first}. Lines are counted from 1.")
    return LineRange(first=first, last=wanted.end)


def missing_text(found: OpenPath, path: str, workspace: Workspace) -> str:
    """Return the message for a missing path: similar names, and where to look."""
    if found.folder is None:
        return f"There is no {path}: the workspace is empty."
    above = found.names[: -len(found.missing)]
    with os.scandir(found.folder) as entries:
        there = [entry.name for entry, _ in zip(entries, range(LOOKED_AT), strict=False)]
    seen = [name for name in there if "/".join((*above, name)) not in workspace.hidden]
    lower = {name.lower(): name for name in sorted(seen)}
    close = get_close_matches(found.missing[0].lower(), lower, n=CLOSE_NAMES)
    folder = "/".join(above) or "."
    hint = f"Close to it: {', '.join('/'.join((*above, lower[name])) for name in close)}. " if close else ""
    return neutralise(f"There is no {path} in the workspace. {hint}Read {folder} to see what is there.", FRAME_TAGS)


def _file_text(descriptor: int, path: str, wanted: LineRange, room: int, limits: FileToolSettings) -> str:
    size = os.fstat(descriptor).st_size
    if size > MOST_BYTES:
        raise ToolError(f"{path} has {size:,} bytes, too many to read here. Take a part of it with a command.")
    has_symbols = size <= limits.symbol_bytes
    head = os.read(descriptor, max(HEAD_BYTES, size if has_symbols else 0))
    encoding = detect_encoding(head[:HEAD_BYTES])
    if isinstance(encoding, str):
        raise ToolError(f"{path} is {encoding}, {size:,} bytes. It has no lines to show.")
    found = find_symbols(b"".join(encoding.as_utf8([head])), path, limits) if has_symbols else ()
    symbols = _symbols_text(found, wanted, int(room * SYMBOLS_SHARE))
    left = max(LEAST_ROOM, room - len(symbols) - len(path) - BESIDE)
    taken = read_lines(encoding.as_utf8(_pieces(descriptor, head, size)), wanted, left, limits.line_characters)
    if wanted.first > max(1, taken.total):
        raise ToolError(f"{path} has {taken.total:,} lines, so there is none at startLine {wanted.first}.")
    return "\n".join(_shown(taken, wanted, path, encoding, symbols))


def _pieces(descriptor: int, head: bytes, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file up to its size at the start: a growing file has an end too."""
    yield head
    left = size - len(head)
    while left > 0 and (piece := os.read(descriptor, min(left, PIECE_BYTES))):
        yield piece
        left -= len(piece)


def _shown(taken: NumberedLines, wanted: LineRange, path: str, encoding: TextEncoding, symbols: str) -> Iterator[str]:
    is_utf8 = encoding == TextEncoding(name=UTF8)
    name = "" if is_utf8 else f" [{encoding.name}{' with a mark' if encoding.mark else ''}]"
    first = wanted.first if taken.lines else 0
    yield HEADER.format(path=path, first=first, last=taken.last, total=taken.total, encoding=name)
    yield from taken.lines or (EMPTY_FILE,)
    last = min(taken.total, wanted.last or taken.total)
    if taken.last < last:
        yield "\n" + READ_ON.format(first=taken.last + 1, last=last)
    if symbols:
        yield "\n" + symbols


def _symbols_text(found: Sequence[Symbol], wanted: LineRange, room: int) -> str:
    """Return the symbols of these lines, one per line, indented by depth."""
    inside = [one for one in found if one.last >= wanted.first and (wanted.last is None or one.first <= wanted.last)]
    lines = [SYMBOLS]
    for place, symbol in enumerate(inside):
        line = _symbol_line(symbol)
        room -= len(line) + 1
        if room < BESIDE // 2:
            lines.append(f"and {len(inside) - place:,} more")
            break
        lines.append(line)
    return "\n".join(lines) if inside else ""


def _symbol_line(symbol: Symbol) -> str:
    return f"{'  ' * symbol.depth}{symbol.kind} {neutralise(symbol.name, FRAME_TAGS)} {symbol.first}-{symbol.last}"
