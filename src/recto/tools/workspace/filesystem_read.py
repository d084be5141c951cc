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
from recto.tools.text.encodings import HEAD_BYTES, TextEncoding, detect_encoding
from recto.tools.text.line_range import LineRange, read_lines
from recto.tools.text.symbol_process import find_symbols
from recto.tools.text.symbols import Symbol
from recto.tools.workspace.open_path import OpenPath, names_in, open_path, prefix_errors, roots_of, workspace_in
from recto.tools.workspace.ripgrep import TooManyFiles
from recto.tools.workspace.visible_files import FolderEntry, find_visible, open_inner
from recto.tools.workspace.workspace_files import CONTROLS, require_folder
from recto.tools.workspace.workspaces import Workspace

# Entries to show of each inner folder.
INNER_SHOWN = 20
NOTHING = "There is nothing in it."
EMPTY_WORKSPACE = "The workspace is empty."
LEFT_OUT = "[{count:,} more entries are not shown. Read a folder in it, or search by name.]"
NAME = "filesystem-read"
PIECE_BYTES = 1_048_576
# Largest file to read, because counting the lines of a larger one takes longer than a call may.
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
    """Return the entries of a folder and of its folders as lines, within `room` characters. Blocks."""
    most = workspace.limits.listing_entries
    try:
        with open_inner(str(workspace.folder)) as top:
            try:
                visible = find_visible(workspace.folder, workspace.hidden, workspace.search.seconds, names, depth=2)
            except (OSError, TooManyFiles) as error:
                raise ToolError(str(error)) from error
            entries = [(one, _line(one)) for one in visible.entries(top, under=names, depth=1)]
            inner = _inner(visible.entries(top, under=names, depth=2), len(names), most - len(entries))
    except FileNotFoundError:
        require_folder(workspace)
        return EMPTY_WORKSPACE
    if not entries:
        return NOTHING if names else EMPTY_WORKSPACE
    first_entries = sorted(entries, key=lambda entry: not entry[0].is_folder)[:most]
    lines = [line for one, text in first_entries for line in (text, *inner.get(one.path, ()))]
    more = len(entries) - len(first_entries)
    shown_lines, remaining = list[str](), room - len(LEFT_OUT) - 10
    for line in lines:
        remaining -= len(line) + 1
        if remaining < 0:
            more += len(lines) - len(shown_lines)
            break
        shown_lines.append(line)
    return "\n".join([*shown_lines, *([LEFT_OUT.format(count=more)] if more else [])])


def _inner(entries: Iterable[FolderEntry], depth: int, room: int) -> Mapping[str, Sequence[str]]:
    """Return the entries of each folder `depth` deep as lines, until there are `room` of them."""
    inner = dict[str, list[tuple[bool, str]]]()
    for one in entries:
        if one.path.count("/") > depth:
            inner.setdefault(one.path.rpartition("/")[0], []).append((not one.is_folder, f"  {_line(one)}"))
        elif sum(min(len(lines), INNER_SHOWN + 1) for lines in inner.values()) >= room:
            break
    result = dict[str, Sequence[str]]()
    for path, lines in inner.items():
        texts = [text for _, text in sorted(lines, key=lambda line: line[0])]
        more = len(texts) - INNER_SHOWN
        result[path] = [*texts[:INNER_SHOWN], f"  and {more:,} more"] if more > 0 else texts
    return result


def _line(one: FolderEntry) -> str:
    if one.is_folder:
        return f"{_printable(one.name)}/"
    if one.is_file:
        return f"{_printable(one.name)} ({one.stat.st_size:,} bytes)"
    # This fails for a link that is gone, and for anything but a link.
    with suppress(OSError):
        return f"{_printable(one.name)} -> {_printable(os.readlink(one.name, dir_fd=one.folder))}"
    return f"{_printable(one.name)} (no file)"


def _printable(name: str) -> str:
    """Return a name as one line of valid text."""
    return neutralise(CONTROLS.sub("?", os.fsencode(name).decode(errors="replace")), FRAME_TAGS)


class FileLines(TypedDict):
    """A file, and which lines of it."""

    path: str
    startLine: NotRequired[int | None]
    endLine: NotRequired[int | None]


@dataclass(frozen=True, kw_only=True)
class LineRequest:
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
    with prefix_errors():
        workspace = workspace_in(context)
        if isinstance(filePath, list):
            if len(filePath) > workspace.limits.read_files:
                raise ToolError(TOO_MANY.format(count=len(filePath), most=workspace.limits.read_files))
            requests = [_parse_request(one, startLine, endLine) for one in filePath]
            parts = await run_in_thread(partial(_read_each, workspace, requests, context.characters), name=NAME)
        else:
            one = _parse_request(filePath, startLine, endLine)
            parts = (await run_in_thread(partial(_read, workspace, one, context.characters), name=NAME),)
    return ToolResult(parts=parts)


def _parse_request(item: str | FileLines, start: int | None, end: int | None) -> LineRequest:
    if isinstance(item, str):
        return LineRequest(path=item, start=start, end=end)
    own = item.get("startLine"), item.get("endLine")
    start, end = own if own != (None, None) else (start, end)
    return LineRequest(path=item["path"], start=start, end=end)


def _read_each(workspace: Workspace, requests: Sequence[LineRequest], room: int) -> tuple[Text, ...]:
    """Read each path into its own part. Unused room passes to the next; an error affects only its own part."""
    parts = list[Text]()
    for place, one in enumerate(requests):
        share = room // (len(requests) - place)
        try:
            with prefix_errors():
                part = _read(workspace, one, share - 1)
        except ToolError as error:
            part = Text(text=str(error)[:share], path=one.path)
        parts.append(part)
        room -= len(part.text)
    return tuple(parts)


def _read(workspace: Workspace, request: LineRequest, room: int) -> Text:
    names = names_in(request.path, roots_of(workspace.folder))
    path = neutralise("/".join(names) or ".", FRAME_TAGS)
    with open_path(workspace, names) as place:
        if place.missing:
            raise ToolError(describe_missing(place, path, workspace))
        if place.is_folder:
            header = FOLDER_HEADER.format(path=path)
            listing = list_folder(workspace, place.names, room - len(header) - 1)
            return Text(text=f"{header}\n{listing}", path=path)
        if place.descriptor is None:
            raise ToolError(f"{path} cannot be read.")
        first = max(1, request.start or 1)
        if request.end is not None and request.end < first:
            raise ToolError(f"endLine {request.end} comes before startLine {first}. Lines are counted from 1.")
        text = _file_text(place.descriptor, path, LineRange(first=first, last=request.end), room, workspace.limits)
        return Text(text=text, path=path)


def describe_missing(place: OpenPath, path: str, workspace: Workspace) -> str:
    """Return the message for a missing path: similar names, and where to look."""
    if place.folder is None:
        return f"There is no {path}: the workspace is empty."
    above = place.names[: -len(place.missing)]
    with os.scandir(place.folder) as entries:
        there = [entry.name for entry, _ in zip(entries, range(LOOKED_AT), strict=False)]
    visible_names = [name for name in there if "/".join((*above, name)) not in workspace.hidden]
    lower = {name.lower(): name for name in sorted(visible_names)}
    close = get_close_matches(place.missing[0].lower(), lower, n=CLOSE_NAMES)
    folder = "/".join(above) or "."
    hint = f"Close to it: {', '.join('/'.join((*above, lower[name])) for name in close)}. " if close else ""
    return neutralise(f"There is no {path} in the workspace. {hint}Read {folder} to see what is there.", FRAME_TAGS)


def _file_text(descriptor: int, path: str, request: LineRange, room: int, limits: FileToolSettings) -> str:
    size = os.fstat(descriptor).st_size
    if size > MOST_BYTES:
        raise ToolError(f"{path} has {size:,} bytes, too many to read here. Take a part of it with a command.")
    has_symbols = size <= limits.symbol_bytes
    head = os.read(descriptor, max(HEAD_BYTES, size if has_symbols else 0))
    encoding = detect_encoding(head[:HEAD_BYTES])
    if isinstance(encoding, str):
        raise ToolError(f"{path} is {encoding}, {size:,} bytes. It has no lines to show.")
    symbols = find_symbols(b"".join(encoding.to_utf8([head])), path, limits) if has_symbols else ()
    symbols_text = _symbols_text(symbols, request, int(room * SYMBOLS_SHARE))
    remaining = max(LEAST_ROOM, room - len(symbols_text) - len(path) - BESIDE)
    lines = read_lines(encoding.to_utf8(_pieces(descriptor, head, size)), request, remaining, limits.line_characters)
    if request.first > max(1, lines.total):
        raise ToolError(f"{path} has {lines.total:,} lines, so there is none at startLine {request.first}.")
    name = f" [{encoding.name}{' with a mark' if encoding.mark else ''}]" if encoding != TextEncoding() else ""
    first = request.first if lines.lines else 0
    header = HEADER.format(path=path, first=first, last=lines.last, total=lines.total, encoding=name)
    last = min(lines.total, request.last or lines.total)
    rest = ["\n" + READ_ON.format(first=lines.last + 1, last=last)] if lines.last < last else []
    return "\n".join([header, *(lines.lines or (EMPTY_FILE,)), *rest, *(["\n" + symbols_text] if symbols_text else [])])


def _pieces(descriptor: int, head: bytes, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file up to its initial size, because a growing file might never end."""
    yield head
    remaining = size - len(head)
    while remaining > 0 and (piece := os.read(descriptor, min(remaining, PIECE_BYTES))):
        yield piece
        remaining -= len(piece)


def _symbols_text(symbols: Sequence[Symbol], request: LineRange, room: int) -> str:
    """Return the symbols of these lines, one per line, indented by depth."""
    inside = [
        one for one in symbols if one.last >= request.first and (request.last is None or one.first <= request.last)
    ]
    lines = [SYMBOLS]
    for place, symbol in enumerate(inside):
        line = f"{'  ' * symbol.depth}{symbol.kind} {neutralise(symbol.name, FRAME_TAGS)} {symbol.first}-{symbol.last}"
        room -= len(line) + 1
        if room < BESIDE // 2:
            lines.append(f"and {len(inside) - place:,} more")
            break
        lines.append(line)
    return "\n".join(lines) if inside else ""
