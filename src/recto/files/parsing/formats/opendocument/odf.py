"""Words, lists, tables and charts of OpenDocument XML. Knows of no pages, and draws nothing."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from xml.etree import ElementTree

from recto.conversation.document import Element
from recto.files.parsing.formats.archive import Archive
from recto.files.parsing.formats.package import part
from recto.files.parsing.formats.tables import table_elements, trimmed
from recto.files.parsing.formats.xberg_nodes import link

_SPACE = "{urn:oasis:names:tc:opendocument:xmlns:"
TEXT, TABLE, OFFICE = (f"{_SPACE}{name}:1.0}}" for name in ("text", "table", "office"))
CHART = f"{_SPACE}chart:1.0}}"
HREF = "{http://www.w3.org/1999/xlink}href"
_PARAGRAPHS = (f"{TEXT}p", f"{TEXT}h")
_ITEMS = (f"{TEXT}list-item", f"{TEXT}list-header")
_CELLS = (f"{TABLE}table-cell", f"{TABLE}covered-table-cell")
# What stands within words and is none of them.
_NO_WORDS = (f"{OFFICE}annotation", f"{TEXT}note")
_INDENT = "  "
# Cells that repeat to the end of a sheet say nothing.
_MOST_REPEATED = 100
_NOT_A_NUMBER = ("NaN", "1.#NAN")


def written(box: ElementTree.Element, level: int = 0) -> Iterator[Element]:
    """The paragraphs and the lists in a box, in their order."""
    for one in box:
        if one.tag in _PARAGRAPHS and (text := words(one).strip()):
            item = Element(kind="item", text=f"{_INDENT * (level - 1)}- {text}", level=level)
            yield item if level else Element(kind="paragraph", text=text)
        elif one.tag == f"{TEXT}list":
            for item in one:
                yield from written(item, level + 1) if item.tag in _ITEMS else ()


def words(paragraph: ElementTree.Element) -> str:
    """The words of a paragraph with their links."""
    return (paragraph.text or "") + "".join(_within(one) + (one.tail or "") for one in paragraph)


def _within(one: ElementTree.Element) -> str:
    match one.tag.removeprefix(TEXT):
        case "s":
            count = one.get(f"{TEXT}c", "1")
            return " " * min(_MOST_REPEATED, int(count) if count.isdecimal() else 1)
        case "tab":
            return "\t"
        case "line-break":
            return "\n"
        case "a":
            return link(words(one), one.get(HREF, ""))
        case _:
            return "" if one.tag in _NO_WORDS else words(one)


def table(one: ElementTree.Element) -> Iterator[Element]:
    """A table. What spans several cells stands in the first."""
    rows = (
        [text for cell in row if cell.tag in _CELLS for text in _cell(cell)] for row in one.iter(f"{TABLE}table-row")
    )
    yield from table_elements(trimmed(rows))


def _cell(cell: ElementTree.Element) -> Iterator[str]:
    times = cell.get(f"{TABLE}number-columns-repeated", "1")
    text = "\n".join(words(one) for one in cell.iter() if one.tag in _PARAGRAPHS)
    for _ in range(min(_MOST_REPEATED, int(times) if times.isdecimal() else 1)):
        yield "" if text in _NOT_A_NUMBER else text


def chart(archive: Archive, href: str) -> Iterator[Element]:
    """A chart within a document as the table that it was drawn from; nothing where something else is there."""
    root = part(archive, posixpath.normpath(f"{href}/content.xml"))
    drawn = next(root.iter(f"{CHART}chart"), None) if root is not None else None
    if drawn is None:
        return
    title = drawn.find(f"{CHART}title")
    named = " ".join(" ".join(words(one) for one in title).split()) if title is not None else ""
    yield Element(kind="paragraph", text=f"[chart: {named}]" if named else "[chart]")
    for one in drawn.iter(f"{TABLE}table"):
        yield from table(one)
