"""The one place that bounds what tools answer: too much text is cut in the middle, and the cut says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from recto.page.canonical import scrub
from recto.page.messages import Text, ToolPart
from recto.tools.ports import LIMIT_CHARACTERS, ToolResult

# Below this the mark would have no room.
LEAST_CHARACTERS = 200
MARK = "\n[{count} of {total} characters left out here. Ask for less at a time: a range, a filter, fewer items.]\n"


def bound(result: ToolResult, *, limit_characters: int = LIMIT_CHARACTERS) -> ToolResult:
    """The result with at most so many characters of text: head and tail stay, files are untouched."""
    parts = tuple(map(_scrubbed, result.parts))
    total = sum(len(part.text) for part in parts if isinstance(part, Text))
    limit = max(limit_characters, LEAST_CHARACTERS)
    if total > limit:
        parts = tuple(_cut(parts, total, limit))
    return result if parts == result.parts else replace(result, parts=parts)


def _scrubbed(part: ToolPart) -> ToolPart:
    if not isinstance(part, Text):
        return part
    text = scrub(part.text)
    return part if text == part.text else replace(part, text=text)


def _cut(parts: Sequence[ToolPart], total: int, limit: int) -> Iterator[ToolPart]:
    """The parts without the characters from `start` to `end`, counted over all texts, and the mark in their place."""
    room = limit - len(MARK.format(count=total, total=total))
    start = room - room // 2
    end = total - room // 2
    mark = MARK.format(count=end - start, total=total)
    offset = 0
    for part in parts:
        if not isinstance(part, Text):
            yield part
            continue
        head = part.text[: max(start - offset, 0)]
        tail = part.text[max(end - offset, 0) :]
        starts_here = offset <= start < offset + len(part.text)
        offset += len(part.text)
        if offset <= start:
            yield part
        elif starts_here:
            yield replace(part, text=head + mark + tail)
        elif tail:
            yield replace(part, text=tail)
