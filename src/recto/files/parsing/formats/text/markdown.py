"""Elements of a text in Markdown, block by block. What it does not know is a paragraph as it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recto.conversation.document import Element
from recto.files.parsing.formats.tables import table_elements, trimmed

_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+\S")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_CELLS = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|[\s:|-]+\|\s*")
# Two line ends that are meant, one after the other, set apart what a blank line does.
_BLANK = ("", "\\")
# The end of a line that is meant, not only due to its length; two of these are a mark that is meant.
_MEANT = re.compile(r"(?<!\\)((?:\\\\)*+)\\$")
_MADE = re.compile(r"\s*\n\s*")
# One link that its program has written as two.
_TORN_LINK = re.compile(r"\]\(([^()\s]+)\)\[([^\[\]]*\]\(\1\))")
_INNER_LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(#[^()\s]*\)")


def blocks(text: str) -> Iterator[Element]:
    """The elements of a Markdown text."""
    waiting: list[str] = []
    fence = ""
    for line in text.split("\n"):
        opens = _FENCE.match(line)
        if fence:
            waiting.append(line)
            if line.strip().startswith(fence):
                yield Element(kind="code", text="\n".join(waiting))
                waiting, fence = [], ""
        elif opens:
            yield from _block(waiting)
            waiting, fence = [line], opens[1]
        elif (is_blank := line.strip() in _BLANK) or _begins(line, waiting):
            yield from _block(waiting)
            waiting = [] if is_blank else [line]
        else:
            waiting.append(line)
    yield from _block(waiting)


def _begins(line: str, waiting: list[str]) -> bool:
    """Whether a line begins a block of its own."""
    if not waiting:
        return False
    is_row = line.startswith("|")
    return is_row != waiting[0].startswith("|") or bool(_HEADING.match(line)) or bool(_ITEM.match(line))


def _block(lines: list[str]) -> Iterator[Element]:
    if not lines:
        return
    if lines[0].startswith("|"):
        rows = [
            [cell.strip().replace("\\|", "|") for cell in _CELLS.split(line.strip().strip("|").strip())]
            for line in lines
        ]
        cells = [row for row, line in zip(rows, lines, strict=True) if not _RULE.fullmatch(line)]
        yield from table_elements(trimmed(cells))
        return
    text = _INNER_LINK.sub(r"\1", _joined(lines))
    text = _TORN_LINK.sub(r" \2", text)
    if found := _HEADING.fullmatch(text):
        yield Element(kind="heading", text=text, level=len(found[1]))
    elif found := _ITEM.match(lines[0]):
        level = len(found[1].expandtabs(4)) // 2 + 1
        inner = "\n" + "  " * level
        yield Element(kind="item", text="  " * (level - 1) + text.replace("\n", inner), level=level)
    else:
        yield Element(kind="paragraph", text=text)


def _joined(lines: list[str]) -> str:
    """Lines of a block as one, but for those that end where they are meant to."""
    ended = [_MEANT.sub("\\1\n", line.strip()) for line in lines]
    return _MADE.sub("\n", " ".join(ended)).strip()
