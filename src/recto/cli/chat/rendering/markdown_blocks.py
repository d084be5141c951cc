"""Splitting of streamed Markdown into complete blocks. Pure.

Long blocks are released in pieces, so the incomplete rest stays short.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
HEADING = re.compile(r"^ {0,3}#{1,6}(\s|$)")
LIST_ITEM = re.compile(r"^ {0,3}([-*+]|\d{1,9}[.)])\s")
INDENTED = re.compile(r"^(\t| {2,})\S")
TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
# Size of an incomplete block from which on its beginning is released.
MOST_LINES, MOST_CHARACTERS = 40, 4_000

Kind: TypeAlias = Literal["fence", "table", "list", "heading", "paragraph"]
# Number of first lines that each piece of a long block repeats.
OPENING_LINES: Mapping[Kind, int] = {"fence": 1, "table": 2}


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Complete Markdown. With `joins`, it continues the previous chunk."""

    text: str
    joins: bool = False


@dataclass(frozen=True, kw_only=True)
class Tail:
    """Incomplete Markdown. `opening` repeats the first lines of a block whose beginning was released."""

    text: str = ""
    opening: str = ""
    joins: bool = False

    @property
    def visible_text(self) -> str:
        """Text to display until the block is complete."""
        return self.opening + self.text

    def append(self, text: str) -> Tail:
        """Append text."""
        return Tail(text=self.text + text, opening=self.opening, joins=self.joins)


def split_complete(tail: Tail) -> tuple[tuple[Chunk, ...], Tail]:
    """Return the complete blocks at the beginning, and the rest."""
    chunks: list[Chunk] = []
    while True:
        block = _first_block(tail)
        if block is None:
            return tuple(chunks), tail
        chunk, tail = block
        if chunk.text.strip():
            chunks.append(chunk)


def split_all(tail: Tail) -> tuple[Chunk, ...]:
    """Return all blocks, once the text is complete."""
    chunks, rest = split_complete(tail.append("\n"))
    text = _close_fence(rest.visible_text.lstrip("\n")) if rest.text.strip() else ""
    return (*chunks, Chunk(text=text, joins=rest.joins)) if text else chunks


def _first_block(tail: Tail) -> tuple[Chunk, Tail] | None:
    """Return the first complete block, or the beginning of a long one."""
    if not tail.opening:
        tail = Tail(text=tail.text.lstrip("\n"), joins=tail.joins)
    lines = tail.text.splitlines(keepends=True)
    whole = lines if tail.text.endswith("\n") else lines[:-1]
    kind = _kind(tail.opening.splitlines() + whole)
    end = _end(kind, whole, tail.opening) if whole else None
    if end is not None:
        rest = "".join(lines[end:])
        return Chunk(text=_close_fence(tail.opening + "".join(lines[:end])), joins=tail.joins), Tail(text=rest)
    is_long = len(tail.text) > MOST_CHARACTERS
    opening_lines = 0 if tail.opening else OPENING_LINES.get(kind, 0)
    # The rest repeats the opening of the block.
    opening = tail.opening or "".join(lines[: OPENING_LINES.get(kind, 0)])
    if len(whole) >= MOST_LINES or (is_long and kind != "paragraph" and len(whole) > opening_lines):
        # Release the complete lines; cut a list between two items.
        starts = (at for at in range(len(whole) - 1, 0, -1) if kind == "list" and LIST_ITEM.match(lines[at]))
        cut = next(starts, len(whole))
        text, rest = "".join(lines[:cut]), "".join(lines[cut:])
    elif is_long:
        # Release a part of a long line, up to the last space unless in code.
        blank = -1 if kind == "fence" else max(tail.text.rfind(" "), tail.text.rfind("\n"))
        text, rest = (tail.text[: blank + 1], tail.text[blank + 1 :]) if blank >= 0 else (tail.text, "")
    else:
        return None
    chunk = Chunk(text=_close_fence(tail.opening + text), joins=tail.joins)
    return chunk, Tail(text=rest, opening=opening, joins=True)


def _kind(lines: list[str]) -> Kind:
    first = lines[0] if lines else ""
    if FENCE.match(first):
        return "fence"
    if HEADING.match(first):
        return "heading"
    if "|" in first and len(lines) > 1 and TABLE_RULE.match(lines[1]):
        return "table"
    return "list" if LIST_ITEM.match(first) else "paragraph"


def _end(kind: Kind, lines: list[str], opening: str) -> int | None:
    """Return the number of lines in the block, or None if its end is not among them."""
    match kind:
        case "heading":
            return 1
        case "fence":
            mark = FENCE.match(opening or lines[0])
            closes = (place + 1 for place, line in enumerate(lines) if (place or opening) and _closes(line, mark))
            return next(closes, None)
        case "list":
            return next((at for at in range(1, len(lines)) if _ends_list(lines, at)), None)
        case "table":
            return next((at for at, line in enumerate(lines) if "|" not in line), None)
        case "paragraph":
            starts = (FENCE, HEADING, LIST_ITEM)
            ends = (not line.strip() or any(start.match(line) for start in starts) for line in lines[1:])
            return next((at for at, is_end in enumerate(ends, 1) if is_end), None)


def _closes(line: str, opening: re.Match[str] | None) -> bool:
    match = FENCE.match(line.rstrip("\n"))
    # A closing fence uses the marker of the opening fence and is at least as long.
    return bool(match and opening and not match[2].strip() and match[1].startswith(opening[1]))


def _ends_list(lines: list[str], at: int) -> bool:
    line, before = lines[at], lines[at - 1]
    if not line.strip() or LIST_ITEM.match(line) or INDENTED.match(line):
        return False
    return not before.strip() or bool(FENCE.match(line) or HEADING.match(line))


def _close_fence(text: str) -> str:
    """Close an open fence."""
    lines = text.splitlines()
    mark = FENCE.match(lines[0]) if lines else None
    if mark is None or (len(lines) > 1 and _closes(lines[-1], mark)):
        return text
    return f"{text.rstrip(chr(10))}\n{mark[1]}\n"
