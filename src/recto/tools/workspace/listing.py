"""What is in a folder of a workspace, as text: folders first, sizes, without what `.gitignore` names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from recto.errors import ToolError
from recto.page.prompt.reminder import FRAME_TAGS, neutralise
from recto.tools.workspace.visible_files import Entry, find_visible, open_inner
from recto.tools.workspace.workspace_files import CONTROLS, Workspace, refuse_gone

# Of a folder in the one that is listed, so many are shown, while there is room.
INNER_SHOWN = 20
NOTHING = "There is nothing in it."
EMPTY_WORKSPACE = "The workspace is empty."
LEFT_OUT = "[{count:,} more entries are not shown. Read a folder in it, or search by name.]"


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
