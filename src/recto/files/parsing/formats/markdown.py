"""Markdown, and Jupyter notebooks, whose cells contain Markdown and code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from recto.conversation.document import Element
from recto.conversation.json import Json, load_object
from recto.files.parsing.formats.plain_text import split_text
from recto.files.parsing.formats.tables import table_elements, trim_rows

_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+\S")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_CELLS = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|[\s:|-]+\|\s*")
# Lines that end a block: a blank line, or a hard line break without text.
_BLANK = ("", "\\")
# A hard line break; two backslashes are an escaped one.
_HARD_BREAK = re.compile(r"(?<!\\)((?:\\\\)*+)\\$")
_LINE_BREAK = re.compile(r"\s*\n\s*")
# One link that is written as two adjacent links.
_TORN_LINK = re.compile(r"\]\(([^()\s]+)\)\[([^\[\]]*\]\(\1\))")
_INNER_LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(#[^()\s]*\)")


def parse_markdown(text: str) -> Iterator[Element]:
    """Yield the elements of Markdown text."""
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
        elif (is_blank := line.strip() in _BLANK) or (
            waiting
            and (line.startswith("|") != waiting[0].startswith("|") or _HEADING.match(line) or _ITEM.match(line))
        ):
            yield from _block(waiting)
            waiting = [] if is_blank else [line]
        else:
            waiting.append(line)
    yield from _block(waiting)


def _block(lines: list[str]) -> Iterator[Element]:
    if not lines:
        return
    if lines[0].startswith("|"):
        rows = [
            [cell.strip().replace("\\|", "|") for cell in _CELLS.split(line.strip().strip("|").strip())]
            for line in lines
        ]
        cells = [row for row, line in zip(rows, lines, strict=True) if not _RULE.fullmatch(line)]
        yield from table_elements(trim_rows(cells))
        return
    # Join the lines of a block, except at hard line breaks
    lines_with_breaks = [_HARD_BREAK.sub("\\1\n", line.strip()) for line in lines]
    text = _INNER_LINK.sub(r"\1", _LINE_BREAK.sub("\n", " ".join(lines_with_breaks)).strip())
    text = _TORN_LINK.sub(r" \2", text)
    if match := _HEADING.fullmatch(text):
        yield Element(kind="heading", text=text, level=len(match[1]))
    elif match := _ITEM.match(lines[0]):
        level = len(match[1].expandtabs(4)) // 2 + 1
        inner = "\n" + "  " * level
        yield Element(kind="item", text="  " * (level - 1) + text.replace("\n", inner), level=level)
    else:
        yield Element(kind="paragraph", text=text)


# Escape sequences of terminals, such as colours.
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_FENCES = re.compile(r"`{3,}")


def parse_notebook(text: str) -> Iterator[Element]:
    """Yield text cells unchanged, and code cells with their output in fences. Any other file is plain text."""
    whole = load_object(text) or {}
    cells = whole.get("cells")
    if not isinstance(cells, list):
        yield from split_text([text])
        return
    metadata = whole.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    language = name if isinstance(name, str) and name.isalnum() else ""
    for cell in cells:
        if isinstance(cell, dict):
            yield from _cell(cell, language)


def _cell(cell: Mapping[str, Json], language: str) -> Iterator[Element]:
    source = _text(cell.get("source"))
    if cell.get("cell_type") == "markdown":
        yield from parse_markdown(source)
    elif cell.get("cell_type") != "code":
        yield from _fenced(source, "")
    else:
        yield from _fenced(source, language)
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else []:
            if not isinstance(output, dict):
                continue
            # A traceback, a displayed value or printed text.
            data = output.get("data")
            text = _text(data.get("text/plain") if isinstance(data, dict) else output.get("text"))
            text = _text(output["traceback"], "\n") if "traceback" in output else text
            yield from _fenced(_ESCAPES.sub("", text), "output")


def _text(value: Json, between: str = "") -> str:
    """Return a text that a notebook stores as a string or as lines."""
    if isinstance(value, str):
        return value
    return between.join(line for line in value if isinstance(line, str)) if isinstance(value, list) else ""


def _fenced(text: str, word: str) -> Iterator[Element]:
    if text.strip():
        fence = "`" * (1 + max(map(len, _FENCES.findall(text)), default=2))
        yield Element(kind="code", text=f"{fence}{word}\n{text.strip(chr(10))}\n{fence}")
